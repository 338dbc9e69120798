//! Files of the data folder that are gone, old, or cannot be written.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;

use crate::clickhouse::{Access, Login, engine_login};
use crate::faults::devices::Size;
use crate::faults::kills::{send_large_range, waits_for_roll_up};
use crate::faults::rig::{Rig, Trial, eventually};
use crate::faults::site::run;
use crate::faults::verdict::cannot_check;

const LEDGER: &str = "drain.json";

/// The data folder is copied, used, and replaced by the copy. ClickHouse runs elsewhere and keeps everything.
pub(super) async fn restored_folder(trial: &Trial) -> Result<String> {
    let store = trial.folder.join("store");
    let engine = OwnEngine::start(&trial.server_bin, &store)?;
    let login = engine_login(&store)?;
    let settings = vec![
        ("UNJANK_CLICKHOUSE_URL", login.url.clone()),
        ("UNJANK_CLICKHOUSE_USER", login.user.clone()),
        ("UNJANK_CLICKHOUSE_PASSWORD", login.password.clone()),
    ];
    let access = Access::Server(Login { pid: None, ..login });
    let data = trial.folder.join("data");
    let mut rig = trial.rig_at(data.clone(), settings, Some(access)).await?;
    rig.devices.send(Size::Small, 3).await?;
    rig.balanced().await.context("before the copy")?;
    rig.site.server.stop().await?;
    let copy = trial.folder.join("copy");
    copy_folder(&data, &copy).await?;
    rig.site.start_again().await?;
    send_ranges(&mut rig).await?;
    rig.balanced().await.context("before the copy is used")?;
    rig.site.server.stop().await?;
    std::fs::remove_dir_all(&data).context("removing the data folder")?;
    copy_folder(&copy, &data).await?;
    rig.site.start_again().await?;
    send_ranges(&mut rig).await?;
    let stored = rig.exactly_once().await?;
    rig.site.server.stop().await?;
    drop(engine);
    Ok(stored)
}

/// Sends batches so far apart that each is a range of its own: the same records of the log are cut in the same way again.
async fn send_ranges(rig: &mut Rig) -> Result<()> {
    for _ in 0..4 {
        rig.devices.send(Size::Small, 1).await?;
        sleep(Duration::from_millis(2_500)).await;
    }
    Ok(())
}

async fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let (from, to) = (from.display().to_string(), to.display().to_string());
    run("cp", &["-a", &from, &to]).await
}

/// The embedded engine as a server of its own: `unjank engine`. Ended when dropped.
struct OwnEngine(Child);

impl OwnEngine {
    fn start(binary: &Path, data_dir: &Path) -> Result<Self> {
        let mut child = Command::new(binary)
            .args(["engine", "--listen", "127.0.0.1:0", "--until-stdin-ends"])
            .arg("--data-dir")
            .arg(data_dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting an engine")?;
        let output = child.stdout.take().context("an engine has an output")?;
        let engine = Self(child);
        // It prints a line when it answers.
        let mut line = String::new();
        BufReader::new(output)
            .read_line(&mut line)
            .context("waiting for an engine")?;
        ensure!(!line.is_empty(), "the engine did not start");
        Ok(engine)
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM).unwrap_or_default();
        }
        for _ in 0..100 {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.0.kill().unwrap_or_default();
        self.0.wait().ok();
    }
}

/// The log was drained and the server has ended when its folder is lost.
pub(super) async fn log(trial: &Trial) -> Result<String> {
    let mut rig = trial.rig().await?;
    rig.devices.send(Size::Small, 10).await?;
    rig.balanced().await.context("before the log was lost")?;
    rig.site.server.stop().await?;
    std::fs::remove_dir_all(rig.site.data_dir.join("log")).context("removing the log")?;
    rig.site.start_again().await?;
    rig.devices.send(Size::Small, 14).await?;
    rig.exactly_once().await
}

/// The ledger is lost after an orderly end, after kills under load, and while a large range waits for its roll-up.
pub(super) async fn ledger(trial: &Trial) -> Result<String> {
    let mut rig = trial.rig().await?;
    rig.devices.send(Size::Small, 5).await?;
    rig.balanced().await.context("before the ledger was lost")?;
    rig.site.server.stop().await?;
    lose_ledger(&rig)?;
    rig.site.start_again().await?;
    rig.devices.send(Size::Small, 5).await?;
    rig.balanced().await.context("lost after an orderly end")?;
    let kills = if trial.quick { 1 } else { 3 };
    for _ in 0..kills {
        trial.say("lost after a kill");
        kill_and_lose_ledger(&mut rig).await?;
        rig.balanced().await.context("lost after a kill")?;
    }
    send_large_range(&mut rig).await?;
    if waits_for_roll_up(&rig).await? {
        trial.say("lost before a roll-up");
        rig.site.server.kill()?;
        lose_ledger(&rig)?;
        rig.site.start_again().await?;
    }
    rig.balanced().await.context("lost before a roll-up")?;
    rig.exactly_once().await
}

async fn kill_and_lose_ledger(rig: &mut Rig) -> Result<()> {
    let ledger = rig.site.data_dir.join(LEDGER);
    rig.under_load(Size::Medium, async |site| {
        sleep(Duration::from_millis(2_300)).await;
        site.server.kill()?;
        std::fs::remove_file(&ledger).context("removing the ledger")?;
        site.start_again().await
    })
    .await
}

fn lose_ledger(rig: &Rig) -> Result<()> {
    match std::fs::remove_file(rig.site.data_dir.join(LEDGER)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(cannot_check(format!("the server keeps no {LEDGER}")))
        }
        removed => removed.context("removing the ledger"),
    }
}

/// A folder stands where the ledger's next version is to be written. Ranges must not be cut smaller for ever after.
pub(super) async fn unsaved_ledger(trial: &Trial) -> Result<String> {
    let mut rig = trial.rig().await?;
    let before = ranges(&mut rig).await?;
    send_much(&mut rig).await?;
    let cut = eventually(Duration::from_secs(20), async || {
        Ok(range_length(&rig.site.data_dir) > 20)
    });
    ensure!(cut.await?, cannot_check("no large range was cut"));
    let failures = "unjank_writer_failures_total";
    let failed_before = rig.site.metric(failures).await?;
    let obstacle = rig.site.data_dir.join("drain.new");
    std::fs::create_dir_all(&obstacle).context("standing in the ledger's way")?;
    let failed = eventually(Duration::from_secs(25), async || {
        Ok(rig.site.metric(failures).await? > failed_before)
    })
    .await;
    std::fs::remove_dir(&obstacle).context("leaving the ledger's way")?;
    ensure!(failed?, cannot_check("the ledger was saved all the same"));
    rig.balanced().await?;
    let after = ranges(&mut rig).await?;
    let stored = rig.exactly_once().await?;
    let rates = format!("{before:.0} ranges in {RATED_S} s before, {after:.0} after");
    if after > 2.0 * before.max(2.0) {
        bail!("{rates}; {stored}");
    }
    Ok(format!("{rates}; {stored}"))
}

const RATED_S: u64 = 6;

/// How many ranges small batches are stored in.
async fn ranges(rig: &mut Rig) -> Result<f64> {
    const RANGES: &str = "unjank_writer_ranges_total";
    let before = rig.site.metric(RANGES).await?;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(RATED_S) {
        rig.devices.send(Size::Spans, 1).await?;
        sleep(Duration::from_millis(100)).await;
    }
    Ok(rig.site.metric(RANGES).await? - before)
}

/// Fills the log while the engine stands still: a range ends at 48 MiB, and from 32 MiB on it is not waited for.
async fn send_much(rig: &mut Rig) -> Result<()> {
    const LOG_BYTES: u64 = 44 << 20;
    rig.site.signal_engine(Signal::STOP)?;
    let log = rig.site.data_dir.join("log");
    let full = eventually(Duration::from_secs(180), async || {
        rig.devices.send_together(Size::Large, 4).await?;
        Ok(bytes_in(&log) >= LOG_BYTES)
    })
    .await;
    rig.site.signal_engine(Signal::CONT)?;
    ensure!(full?, cannot_check("the log grew too slowly"));
    Ok(())
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| Some(entry.metadata().ok()?.len()));
    sizes.sum()
}

/// How many records the range on its way has.
fn range_length(data_dir: &Path) -> u64 {
    let text = std::fs::read_to_string(data_dir.join(LEDGER)).unwrap_or_default();
    let ledger: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let of = |name| ledger["range"][name].as_u64().unwrap_or_default();
    of("last").saturating_sub(of("first"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_range_is_read_from_the_ledger() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(range_length(folder.path()), 0);
        let write = |text| std::fs::write(folder.path().join(LEDGER), text).unwrap();
        write(r#"{"done":3,"range":null}"#);
        assert_eq!(range_length(folder.path()), 0);
        write(r#"{"done":3,"range":{"first":4,"last":40}}"#);
        assert_eq!(range_length(folder.path()), 36);
    }
}
