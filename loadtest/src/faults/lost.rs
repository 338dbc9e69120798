//! Files of the data folder that are missing, old, or cannot be written.

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
use crate::faults::rig::{Rig, Trial};
use crate::faults::site::run;
use crate::faults::verdict::cannot_check;
use crate::faults::wait::eventually;

const LEDGER: &str = "drain.json";

/// The data folder is copied, used, and replaced by the copy. ClickHouse runs separately and keeps all rows.
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

/// Sends batches so far apart that each becomes a range of its own. The same log records are then cut into the same ranges again.
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

/// The embedded engine as a separate server: `unjank engine`. Dropping it ends the engine.
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
            .context("starting the engine")?;
        let output = child.stdout.take().context("the engine has no stdout")?;
        let engine = Self(child);
        // The engine prints a line when it accepts queries.
        let mut line = String::new();
        BufReader::new(output)
            .read_line(&mut line)
            .context("waiting for the engine")?;
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

/// The log folder is deleted after the log was drained and the server was stopped.
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

/// The ledger is deleted after an orderly stop, after kills under load, and while a large range waits for its roll-up.
pub(super) async fn ledger(trial: &Trial) -> Result<String> {
    let mut rig = trial.rig().await?;
    rig.devices.send(Size::Small, 5).await?;
    rig.balanced().await.context("before the ledger was lost")?;
    rig.site.server.stop().await?;
    lose_ledger(&rig)?;
    rig.site.start_again().await?;
    rig.devices.send(Size::Small, 5).await?;
    rig.balanced().await.context("lost after an orderly stop")?;
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
            Err(cannot_check(format!("the server has no {LEDGER}")))
        }
        removed => removed.context("removing the ledger"),
    }
}

/// A folder blocks the path to which the ledger's next version is written. After the failed save, ranges must not stay smaller
/// forever.
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
    std::fs::create_dir_all(&obstacle).context("blocking the ledger's path")?;
    let failed = eventually(Duration::from_secs(25), async || {
        Ok(rig.site.metric(failures).await? > failed_before)
    })
    .await;
    std::fs::remove_dir(&obstacle).context("unblocking the ledger's path")?;
    ensure!(
        failed?,
        cannot_check("the ledger was saved although its path was blocked")
    );
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

/// Returns the number of ranges that small batches are stored in during [`RATED_S`] seconds.
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

/// Fills the log while the engine is suspended. A range ends at 48 MiB; from 32 MiB on, the writer does not wait for more
/// records.
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

/// Returns the number of records of the range that is being stored.
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
    fn the_range_length_is_read_from_the_ledger() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(range_length(folder.path()), 0);
        let write = |text| std::fs::write(folder.path().join(LEDGER), text).unwrap();
        write(r#"{"done":3,"range":null}"#);
        assert_eq!(range_length(folder.path()), 0);
        write(r#"{"done":3,"range":{"first":4,"last":40}}"#);
        assert_eq!(range_length(folder.path()), 36);
    }
}
