//! SIGKILL at selected system calls.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;
use unjank_protocol::Signal as Kind;

use crate::faults::devices::Size;
use crate::faults::rig::{Rig, Trial};
use crate::faults::site::is_alive;
use crate::faults::strace::{self, Calls, Effect, Injected, Injection, When};
use crate::faults::verdict::cannot_check;
use crate::faults::wait::eventually;

/// Calls at which the engine is killed. `--quick` only tries the first six.
const ENGINE: [(Calls, u32); 18] = [
    (Calls::Rename, 2),
    (Calls::Rename, 7),
    (Calls::Sync, 3),
    (Calls::Write, 40),
    (Calls::Send, 1),
    (Calls::Rename, 12),
    (Calls::Rename, 1),
    (Calls::Rename, 4),
    (Calls::Rename, 5),
    (Calls::Rename, 6),
    (Calls::Rename, 9),
    (Calls::Rename, 16),
    (Calls::Sync, 10),
    (Calls::Sync, 30),
    (Calls::Write, 1),
    (Calls::Write, 120),
    (Calls::Send, 3),
    (Calls::Unlink, 1),
];

/// How long the process may take to reach the call.
const REACHED: Duration = Duration::from_secs(5);
/// Engine kills after which the server is restarted. The server doubles the wait before it restarts an engine that keeps dying; a
/// restart of the server resets the wait.
const KILLS_PER_SERVER_START: u32 = 3;

/// Kills the engine.
pub(super) async fn engine(trial: &Trial) -> Result<String> {
    strace::needed()?;
    let mut rig = trial.rig().await?;
    rig.devices.send(Size::Small, 2).await?;
    rig.balanced().await.context("before any kill")?;
    let (cases, mut kills) = (trial.choose(&ENGINE, 6), 0);
    for (calls, n) in cases {
        let case = format!("killed at {} {n}", calls.noun());
        let died = kill_engine(&mut rig, &trial.folder, *calls, *n).await;
        let died = died.context(case.clone())?;
        trial.say(&format!("{case}: {}", reached(died)));
        rig.balanced().await.context(case)?;
        kills += u32::from(died);
        if died && kills % KILLS_PER_SERVER_START == 0 {
            rig.site.restart().await?;
        }
    }
    summary(&rig, kills, cases.len()).await
}

async fn kill_engine(rig: &mut Rig, folder: &Path, calls: Calls, n: u32) -> Result<bool> {
    let pid = rig.site.engine().await?;
    rig.under_load(Size::Small, async |site| {
        let injected = Injected::attach(pid, &kill_at(calls, n, None), folder).await?;
        let died = eventually(REACHED, async || Ok(!is_alive(pid))).await?;
        drop(injected);
        site.engine().await?;
        Ok(died)
    })
    .await
}

/// Calls at which the server is killed. `--quick` only tries the first four.
const SERVER: [ServerKill; 10] = [
    (Calls::Rename, 1, On::AnyFile, With::Engine),
    (Calls::Rename, 2, On::AnyFile, With::Nothing),
    (Calls::Sync, 2, On::Log, With::Engine),
    (Calls::Write, 21, On::AnyFile, With::Nothing),
    (Calls::Rename, 3, On::AnyFile, With::Engine),
    (Calls::Sync, 1, On::AnyFile, With::Nothing),
    (Calls::Sync, 6, On::AnyFile, With::Engine),
    (Calls::Write, 3, On::Log, With::Nothing),
    (Calls::Write, 8, On::AnyFile, With::Engine),
    (Calls::Write, 70, On::AnyFile, With::Nothing),
];

type ServerKill = (Calls, u32, On, With);

#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    AnyFile,
    /// The newest segment of the ingest log.
    Log,
}

/// The process that is killed at the same moment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum With {
    Nothing,
    Engine,
}

/// Kills the server, in half of the cases together with its engine.
pub(super) async fn server(trial: &Trial) -> Result<String> {
    strace::needed()?;
    let mut rig = trial.rig().await?;
    rig.devices.send(Size::Small, 2).await?;
    rig.balanced().await.context("before any kill")?;
    let (cases, mut kills) = (trial.choose(&SERVER, 4), 0);
    for kill in cases {
        let case = describe(kill);
        let died = kill_server(&mut rig, &trial.folder, *kill).await;
        let died = died.context(case.clone())?;
        trial.say(&format!("{case}: {}", reached(died)));
        rig.balanced().await.context(case)?;
        kills += u32::from(died);
    }
    summary(&rig, kills, cases.len()).await
}

async fn kill_server(
    rig: &mut Rig,
    folder: &Path,
    (calls, n, on, with): ServerKill,
) -> Result<bool> {
    let segment = newest_segment(&rig.site.data_dir);
    rig.under_load(Size::Small, async |site| {
        let path = segment.as_deref().filter(|_| on == On::Log);
        let injection = kill_at(calls, n, path);
        let injected = Injected::attach(site.server.pid(), &injection, folder).await?;
        let died = eventually(REACHED, async || Ok(site.server.has_ended())).await?;
        if died && with == With::Engine {
            site.kill_both().await?;
        }
        drop(injected);
        if died {
            site.start_again().await?;
        }
        Ok(died)
    })
    .await
}

fn describe((calls, n, on, with): &ServerKill) -> String {
    let on = match on {
        On::AnyFile => "",
        On::Log => " of the log",
    };
    let with = match with {
        With::Nothing => "",
        With::Engine => ", with its engine",
    };
    format!("killed at {} {n}{on}{with}", calls.noun())
}

/// Returns the file that the ingest log appends to.
pub(super) fn newest_segment(data_dir: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(data_dir.join("log")).ok()?;
    let paths = entries.flatten().map(|entry| entry.path());
    let segment = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "segment");
    paths.filter(segment).max()
}

/// Kills the engine after it has stored a large range, and before the rows are rolled up.
pub(super) async fn engine_in_roll_up(trial: &Trial) -> Result<String> {
    strace::needed()?;
    let mut rig = trial.rig().await?;
    let (cases, mut kills) = (trial.choose(&[1, 3, 2, 4, 6], 2), 0);
    for n in cases {
        let pid = rig.site.engine().await?;
        send_large_range(&mut rig).await?;
        let mut died = false;
        if waits_for_roll_up(&rig).await? {
            let injection = kill_at(Calls::Rename, *n, None);
            let injected = Injected::attach(pid, &injection, &trial.folder).await?;
            died = eventually(REACHED * 2, async || Ok(!is_alive(pid))).await?;
            drop(injected);
        }
        let case = format!("killed at rename {n}");
        trial.say(&format!("{case}: {}", reached(died)));
        rig.site.engine().await?;
        rig.balanced().await.context(case)?;
        kills += u32::from(died);
        if died && kills % KILLS_PER_SERVER_START == 0 {
            rig.site.restart().await?;
        }
    }
    summary(&rig, kills, cases.len()).await
}

/// Sends enough spans that the server stores them as one large range: the engine is suspended until all are in the log.
pub(super) async fn send_large_range(rig: &mut Rig) -> Result<()> {
    rig.site.signal_engine(Signal::STOP)?;
    let sent = async {
        // The writer starts a range with the first batch, and cuts the next one when the engine resumes.
        rig.devices.send(Size::Spans, 1).await?;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        rig.devices.send_together(Size::Large, 7).await
    };
    let sent = sent.await;
    rig.site.signal_engine(Signal::CONT)?;
    sent
}

/// Waits until every span is stored. Returns whether some of them are not rolled up yet.
pub(super) async fn waits_for_roll_up(rig: &Rig) -> Result<bool> {
    let events = rig.devices.ledger.certain_rows(Kind::Spans);
    let mut waits = false;
    eventually(Duration::from_secs(40), async || {
        let Ok(counts) = rig.counts().await else {
            return Ok(false);
        };
        let spans = counts.count(Kind::Spans);
        waits = spans.daily != Some(events);
        Ok(spans.raw >= events)
    })
    .await?;
    Ok(waits)
}

fn kill_at(calls: Calls, n: u32, path: Option<&Path>) -> Injection<'_> {
    Injection {
        calls,
        when: When::Nth(n),
        effect: Effect::Kill,
        path,
    }
}

fn reached(died: bool) -> &'static str {
    if died { "killed" } else { "not reached" }
}

async fn summary(rig: &Rig, kills: u32, tries: usize) -> Result<String> {
    if kills == 0 {
        return Err(cannot_check("no kill was reached"));
    }
    let stored = rig.exactly_once().await?;
    Ok(format!("{kills} kills in {tries} tries; {stored}"))
}
