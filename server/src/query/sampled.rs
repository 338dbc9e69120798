//! Some sessions of what the filters leave, each read as a run: what distributions are compared by.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::recorded::{LONGEST_WAY, whole_run};
use super::{Ask, Unanswered};
use crate::stacks::Rules;
use crate::store::ClickHouse;
use crate::store::reads::{Grain, recorded_signals};
use crate::test_run::{Collector, Measured};

/// As many as a filter may have values.
const MOST_SESSIONS: u64 = 200;
/// Events of a signal, session by session: of more, the last sessions have none.
const MOST_EVENTS: u64 = 200_000;
/// What no comparison looks at.
const UNUSED: [&str; 2] = ["recompositions", "sdk_health"];

#[derive(Deserialize)]
struct OfSession {
    session_id: String,
}

/// Which sessions is decided by hash: the same ones each time, and none because of what it did.
pub async fn sampled_sessions(
    clickhouse: &ClickHouse,
    project: &str,
    ask: &Ask,
    now: i64,
    rules: &Rules,
) -> Result<Vec<Measured>, Unanswered> {
    let mut ask = whole_run(ask)?;
    let mut arrived = ask.single(project, "usage", now)?;
    // Batches have the time of their arrival, which is later than anything in them.
    arrived.span.to += LONGEST_WAY;
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

/// Stalls name their stacks, which stand elsewhere; how many there were and how long they took is told without.
fn without_stacks(line: &[u8]) -> Vec<u8> {
    let mut stall: Value = serde_json::from_slice(line).unwrap_or_default();
    stall["stack"] = json!([]);
    stall["samples"] = json!([]);
    stall.to_string().into_bytes()
}
