//! Reads a sample of the selected sessions, each as a run, to compare distributions.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};
use unjank_foundation::clock::UnixTime;
use unjank_stacks::Rules;

use super::stored_run::{MAX_BATCH_DELAY, check_run_filters};
use super::{NamedQuery, QueryError};
use crate::store::ClickHouse;
use crate::store::reads::{Grain, recorded_signals};
use crate::test_run::{Collector, Measured};

/// The number of values that a filter accepts.
const MOST_SESSIONS: u64 = 200;
/// Maximum number of events per signal, in order of session. Beyond it, the last sessions have no events of the signal.
const MOST_EVENTS: u64 = 200_000;
/// Signals that no comparison uses.
const UNUSED: [&str; 2] = ["recompositions", "sdk_health"];

#[derive(Deserialize)]
struct OfSession {
    session_id: String,
}

/// Picks the sessions by hash: the same ones on every call, independent of their content.
pub async fn sampled_sessions(
    clickhouse: &ClickHouse,
    project: &str,
    ask: &NamedQuery,
    now: UnixTime,
    rules: &Rules,
) -> Result<Vec<Measured>, QueryError> {
    let mut ask = check_run_filters(ask)?;
    let mut arrived = ask.single(project, "usage", now)?;
    // Batches carry the time of arrival, which is later than their events.
    arrived.span.to += MAX_BATCH_DELAY;
    let sessions = clickhouse.some_sessions(&arrived, MOST_SESSIONS).await?;
    ask.filters.retain(|(name, _)| name != "session_id");
    if sessions.is_empty() {
        return Ok(Vec::new());
    }
    let sessions = sessions.into_iter();
    ask.filters
        .extend(sessions.map(|session| ("session_id".to_owned(), session)));
    let mut runs: HashMap<String, Collector<'_>> = HashMap::new();
    for (name, signal) in recorded_signals().filter(|(name, _)| !UNUSED.contains(name)) {
        let mut reading = ask.single(project, name, now)?;
        reading.grain = Grain::Raw;
        let mut lines = clickhouse.events_by_session(&reading, MOST_EVENTS)?;
        while let Some(line) = lines.next().await? {
            let Ok(of) = serde_json::from_slice::<OfSession>(&line) else {
                continue;
            };
            let run = runs
                .entry(of.session_id)
                .or_insert_with(|| Collector::new(rules));
            match signal {
                "jank" => run.event_of(signal, &without_stacks(&line)),
                _ => run.event_of(signal, &line),
            }
        }
    }
    let mut runs: Vec<_> = runs.into_iter().collect();
    runs.sort_by(|one, other| one.0.cmp(&other.0));
    let runs = runs.into_iter().map(|(_, run)| run.finish());
    Ok(runs
        .filter(|run| !run.is_empty())
        .map(|run| run.measured)
        .collect())
}

/// Removes the references to stacks, which are stored in another table. The number and duration of stalls do not need them.
fn without_stacks(line: &[u8]) -> Vec<u8> {
    let mut stall: Value = serde_json::from_slice(line).unwrap_or_default();
    stall["stack"] = json!([]);
    stall["samples"] = json!([]);
    stall.to_string().into_bytes()
}
