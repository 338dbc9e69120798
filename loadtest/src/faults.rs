//! `unjank-loadtest faults`: breaks one thing at a time, then checks that every acknowledged event is stored exactly once.
//!
//! Each fault runs on a server of its own. `site` manages the server and its store, `devices` sends the batches, and `balance`
//! compares the batches with the store. `strace` and `image` are the tools that break things. The other modules contain the
//! faults, one family per file.

mod balance;
mod devices;
mod disks;
mod image;
mod kills;
mod lost;
mod outages;
mod power;
mod rig;
mod site;
mod strace;
mod tables;
mod verdict;
mod wait;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{Args, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinSet, LocalSet};

use crate::console;
use crate::faults::rig::Trial;
use crate::faults::verdict::Verdict;

#[derive(Clone, Debug, Args)]
pub(crate) struct FaultsArgs {
    /// Faults to try. Without a name, all of them.
    #[arg(value_enum, value_name = "NAME")]
    names: Vec<Fault>,
    /// Path of the `unjank` binary.
    #[arg(long)]
    server_bin: PathBuf,
    /// Test fewer points to kill at and fewer disks.
    #[arg(long)]
    quick: bool,
    /// Number of faults to try concurrently, each on a server of its own. Faults spend most of their time waiting.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    at_once: u16,
    /// Keep the data folder of each fault that falls short.
    #[arg(long)]
    keep: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    /// The engine gets SIGKILL at its n-th rename, write, sync, answer or deletion.
    EngineKilled,
    /// The server gets SIGKILL at its n-th rename, sync or write.
    ServerKilled,
    /// The engine gets SIGKILL at its n-th rename while it rolls up a large range.
    EngineKilledInRollUp,
    /// The disk keeps only synced data; afterwards the engine is killed.
    PowerCut,
    /// The disk fills up while batches arrive, and later has space again.
    DiskFull,
    /// Syncs, writes and renames of server and engine fail with EIO.
    DiskFailing,
    /// The engine hangs until requests time out, then resumes or is killed.
    EngineHung,
    /// The data folder is restored from an older copy, but ClickHouse is not.
    RestoredFolder,
    /// The folder of the ingest log is deleted.
    LostLog,
    /// The writer's ledger, `drain.json`, is deleted.
    LostLedger,
    /// Saving the writer's ledger fails once, after a large range.
    UnsavedLedger,
    /// An operator's materialized view rejects a row for its content after the raw rows are stored.
    RefusedAfterStore,
    /// A roll-up table is renamed, and renamed back some seconds later.
    RollUpAway,
    /// One roll-up fails for longer than the engine remembers deduplication tokens.
    OldFold,
}

impl Fault {
    fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }

    /// Returns what was verified, or an error that describes what fell short.
    async fn try_on(self, trial: &Trial) -> Result<String> {
        match self {
            Self::EngineKilled => Box::pin(kills::engine(trial)).await,
            Self::ServerKilled => Box::pin(kills::server(trial)).await,
            Self::EngineKilledInRollUp => Box::pin(kills::engine_in_roll_up(trial)).await,
            Self::PowerCut => Box::pin(power::cut(trial)).await,
            Self::DiskFull => Box::pin(disks::full(trial)).await,
            Self::DiskFailing => Box::pin(disks::failing(trial)).await,
            Self::EngineHung => Box::pin(outages::engine_hung(trial)).await,
            Self::RestoredFolder => Box::pin(lost::restored_folder(trial)).await,
            Self::LostLog => Box::pin(lost::log(trial)).await,
            Self::LostLedger => Box::pin(lost::ledger(trial)).await,
            Self::UnsavedLedger => Box::pin(lost::unsaved_ledger(trial)).await,
            Self::RefusedAfterStore => Box::pin(tables::refused_after_store(trial)).await,
            Self::RollUpAway => Box::pin(tables::roll_up_away(trial)).await,
            Self::OldFold => Box::pin(tables::old_fold(trial)).await,
        }
    }
}

/// Tries the faults and prints a line for each. Returns `false` if one fell short.
pub(crate) async fn run(args: &FaultsArgs) -> Result<bool> {
    ensure!(
        args.server_bin.is_file(),
        "{} is not a file: pass the path of the `unjank` binary to --server-bin",
        args.server_bin.display()
    );
    let mut terminate = signal(SignalKind::terminate()).context("waiting for SIGTERM")?;
    let here = LocalSet::new();
    // Interrupting drops the future, and the dropped guards unmount disks and end processes.
    tokio::select! {
        held = here.run_until(try_all(args)) => held,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}

async fn try_all(args: &FaultsArgs) -> Result<bool> {
    let faults = if args.names.is_empty() {
        Fault::value_variants()
    } else {
        &args.names
    };
    let mut waiting = faults.iter();
    let mut under_way = JoinSet::new();
    let mut tally = [0_u32; 3];
    loop {
        let room = usize::from(args.at_once).saturating_sub(under_way.len());
        for fault in waiting.by_ref().take(room) {
            under_way.spawn_local(judge(args.clone(), *fault));
        }
        let Some(judged) = under_way.join_next().await else {
            break;
        };
        match judged.context("a fault panicked")?? {
            Verdict::Holds(_) => tally[0] += 1,
            Verdict::FallsShort(_) => tally[1] += 1,
            Verdict::NotChecked(_) => tally[2] += 1,
        }
    }
    let [held, short, unchecked] = tally;
    console::print(&format!(
        "{held} held, {short} fell short, {unchecked} not checked"
    ));
    Ok(short == 0)
}

async fn judge(args: FaultsArgs, fault: Fault) -> Result<Verdict> {
    /// A fault that hangs must not block the others.
    const LONGEST: Duration = Duration::from_secs(1_200);
    let folder = tempfile::Builder::new()
        .prefix("unjank-fault-")
        .tempdir()
        .context("creating a folder for a server's data")?;
    let trial = Trial {
        fault: fault.name(),
        begun: Instant::now(),
        server_bin: args.server_bin.canonicalize()?,
        folder: folder.path().canonicalize()?,
        quick: args.quick,
    };
    let tried = tokio::time::timeout(LONGEST, fault.try_on(&trial)).await;
    let tried = tried.unwrap_or_else(|_| {
        Err(anyhow!(
            "timed out after {} minutes",
            LONGEST.as_secs() / 60
        ))
    });
    let verdict = Verdict::new(tried);
    console::print(&verdict.line(&trial.fault, trial.begun.elapsed()));
    if args.keep && matches!(verdict, Verdict::FallsShort(_)) {
        console::say(&format!("kept: {}", folder.keep().display()));
    }
    Ok(verdict)
}
