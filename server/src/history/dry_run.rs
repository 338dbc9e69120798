//! Dry runs: compares the current and the proposed rules of a project on the stacks of the last days.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc;
use unjank_database::Actor;
use unjank_foundation::clock::{DAY, UnixTime};
use unjank_foundation::shares::Shares;
use unjank_stacks::{Comparison, Report, RuleSet, Rules, Usage};

use crate::access::rule_sets::{self, SaveError};
use crate::store::{ClickHouse, Failure, StoredStack};

/// The maximum number of stacks, the most frequent first. They take some 150 MB while they are read, and twice that if
/// each has many installs.
const MOST_STACKS: usize = 200_000;
/// The maximum length of a list in the report.
const MOST_ENTRIES: usize = 100;
/// Buffering between ClickHouse and the rules: the number of chunks, and of stacks in each.
const PIECES: usize = 2;
const PIECE: usize = 500;
/// The time limit. It is short, because a client waits for the response.
const LONGEST: Duration = Duration::from_secs(300);

/// A request for a dry run.
pub struct DryRun {
    pub project: String,
    /// The rules in force.
    pub current: Arc<RuleSet>,
    /// The proposed rules, as TOML.
    pub tried: String,
    /// The user or token that requests the dry run.
    pub actor: Actor,
    /// How far to look back from `now`.
    pub days: u16,
    pub now: UnixTime,
}

/// The result of a dry run.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = RulesTried)]
pub struct Tried {
    pub days: u16,
    /// Whether only the most frequent stacks were compared, because there were too many.
    pub truncated: bool,
    /// Warnings about the proposed rules.
    pub warnings: Vec<String>,
    #[serde(flatten)]
    pub report: Report,
}

#[derive(Debug, thiserror::Error)]
pub enum DryRunError {
    #[error(transparent)]
    Rules(#[from] SaveError),
    #[error(transparent)]
    Store(#[from] Failure),
    /// Other dry runs are in progress.
    #[error("another dry run is in progress; retry in a moment")]
    Busy,
}

/// Limits dry runs to two at a time, because each takes memory and ClickHouse capacity, and to one per user or token.
#[derive(Debug)]
pub struct DryRuns(Arc<Shares>);

impl Default for DryRuns {
    fn default() -> Self {
        Self(Shares::new(2, 1))
    }
}

impl DryRuns {
    pub async fn run(&self, clickhouse: &ClickHouse, run: DryRun) -> Result<Tried, DryRunError> {
        let turn = self.0.try_take(run.actor.holder(), 1);
        let _turn = turn.ok_or(DryRunError::Busy)?;
        let (tried, warnings) = rule_sets::compile(&run.tried, &run.actor).await?;
        let compared = tokio::time::timeout(LONGEST, on_stored_stacks(clickhouse, run, tried));
        let Ok(compared) = compared.await else {
            return Err(Failure::Later("the dry run took too long".to_owned()).into());
        };
        let (days, truncated, report) = compared?;
        Ok(Tried {
            days,
            truncated,
            warnings,
            report,
        })
    }
}

/// Cancel safe: dropping the future drops the cursor, which ends the query, and the sender, which ends the thread.
async fn on_stored_stacks(
    clickhouse: &ClickHouse,
    run: DryRun,
    tried: Rules,
) -> Result<(u16, bool, Report), Failure> {
    let DryRun {
        project,
        current,
        days,
        now,
        ..
    } = run;
    let since = (now - DAY * days.into()).max(UnixTime::default());
    let (usage, truncated) = clickhouse.stack_usage(&project, since, MOST_STACKS).await?;
    let mut cursor = clickhouse.stacks_in_use(&project, since)?;
    let (sender, receiver) = mpsc::channel(PIECES);
    let comparing = tokio::task::spawn_blocking(move || compare(&current, &tried, usage, receiver));
    loop {
        let stacks = cursor.next_chunk(PIECE).await?;
        if stacks.is_empty() || sender.send(stacks).await.is_err() {
            break;
        }
    }
    drop(sender);
    let report = comparing
        .await
        .map_err(|error| Failure::Later(error.to_string()))?;
    Ok((days, truncated, report))
}

/// Runs on a separate thread until the sender is dropped.
fn compare(
    current: &RuleSet,
    tried: &Rules,
    mut usage: HashMap<u64, Usage>,
    mut stacks: mpsc::Receiver<Vec<StoredStack>>,
) -> Report {
    let mut comparison = Comparison::default();
    while let Some(piece) = stacks.blocking_recv() {
        for stack in piece {
            // If a stack is stored twice, only the first copy counts.
            if let Some(usage) = usage.remove(&stack.hash) {
                let before = current.rules().classify(&stack.frames);
                comparison.add(&before, &tried.classify(&stack.frames), &usage);
            }
        }
    }
    comparison.report(MOST_ENTRIES)
}
