//! Reads a stored run as if it were a report file.

use std::time::Duration;

use serde_json::Value;
use unjank_foundation::clock::UnixTime;
use unjank_stacks::Rules;

use super::{InvalidQuery, NamedQuery, QueryError};
use crate::store::reads::{Dimension, Reading, StoredFrame, recorded_signals, subject};
use crate::store::{ClickHouse, Failure};
use crate::test_run::{Collector, TestRun};

/// Maximum number of events in a run, enough for a test of several hours. For more events, use tables and series.
pub const MOST_EVENTS: u64 = 300_000;
/// Maximum number of stalls in a run. Each is read with its stacks.
const MOST_STALLS: u64 = 20_000;
/// Batches wait on a device without a network. Batches of a session are searched this long after the requested period.
pub(super) const MAX_BATCH_DELAY: Duration = Duration::from_secs(8 * 86_400);

/// Reads the run that the filters select: by session, install, version or another dimension that all events have.
pub async fn stored_run(
    clickhouse: &ClickHouse,
    project: &str,
    ask: &NamedQuery,
    now: UnixTime,
    rules: &Rules,
) -> Result<TestRun, QueryError> {
    let source = Source {
        clickhouse,
        project,
        ask: check_run_filters(ask)?,
        now,
    };
    let mut collector = Collector::new(rules);
    let mut events = 0;
    for (name, signal) in recorded_signals() {
        let reading = source.reading(name)?;
        let before = events;
        if signal == "jank" {
            events += source.stalls(&reading, &mut collector).await?;
        } else {
            events += source
                .events(&reading, signal, MOST_EVENTS - events, &mut collector)
                .await?;
        }
        if events > before {
            source.devices(&reading, &mut collector).await?;
        }
    }
    if events > 0 {
        // The SDK of a device is stored with its batches, for as long as those are kept.
        source
            .devices(&source.reading("usage")?, &mut collector)
            .await?;
    }
    Ok(collector.finish())
}

/// Rejects filters on dimensions that some signals lack: they would silently select half a run.
pub(super) fn check_run_filters(ask: &NamedQuery) -> Result<NamedQuery, InvalidQuery> {
    let common = subject("spans").map_or(&[][..], |spans| spans.common());
    for (name, _) in &ask.filters {
        let plain = name.strip_prefix("contains.").unwrap_or(name);
        if !common.iter().any(|dimension| dimension.name() == plain) {
            let names: Vec<_> = common.iter().map(Dimension::name).collect();
            return Err(InvalidQuery(format!(
                "not every signal can be filtered by `{name}`: use one of {}",
                names.join(", ")
            )));
        }
    }
    Ok(NamedQuery {
        from: ask.from,
        to: ask.to,
        filters: ask.filters.clone(),
        ..NamedQuery::default()
    })
}

struct Source<'s> {
    clickhouse: &'s ClickHouse,
    project: &'s str,
    ask: NamedQuery,
    now: UnixTime,
}

impl Source<'_> {
    fn reading(&self, name: &str) -> Result<Reading, InvalidQuery> {
        let mut reading = self.ask.single(self.project, name, self.now)?;
        let of_session = self
            .ask
            .filters
            .iter()
            .any(|(name, _)| name == "session_id");
        if of_session && ["usage", "sdk_health"].contains(&name) {
            // These rows carry the time of arrival, which is later than the events of the session.
            reading.span.to += MAX_BATCH_DELAY;
        }
        Ok(reading)
    }

    async fn events(
        &self,
        reading: &Reading,
        signal: &str,
        most: u64,
        collector: &mut Collector<'_>,
    ) -> Result<u64, Failure> {
        let mut lines = self.clickhouse.events_as_json(reading, most + 1)?;
        let mut events = 0;
        while let Some(line) = lines.next().await? {
            events += 1;
            if events > most {
                return Err(too_many());
            }
            collector.event_of(signal, &line);
        }
        Ok(events)
    }

    /// Reads stalls and resolves their stacks, which are stored in another table.
    async fn stalls(
        &self,
        reading: &Reading,
        collector: &mut Collector<'_>,
    ) -> Result<u64, Failure> {
        let mut lines = self.clickhouse.events_as_json(reading, MOST_STALLS + 1)?;
        let mut stalls: Vec<Value> = Vec::new();
        while let Some(line) = lines.next().await? {
            stalls.extend(serde_json::from_slice::<Value>(&line).ok());
        }
        let count = stalls.len() as u64;
        if count > MOST_STALLS {
            return Err(too_many());
        }
        let mut hashes: Vec<u64> = stalls.iter().flat_map(hashes).collect();
        hashes.sort_unstable();
        hashes.dedup();
        let stacks = self.clickhouse.stacks_of(self.project, &hashes).await?;
        let frames = |of: &Value| {
            hash(of)
                .and_then(|hash| stacks.get(&hash))
                .map_or(Value::Null, |stack| as_json(&stack.frames))
        };
        for mut stall in stalls {
            stall["stack"] = frames(&stall);
            for sample in stall["samples"].as_array_mut().into_iter().flatten() {
                sample["stack"] = frames(sample);
            }
            collector.event_of("jank", stall.to_string().as_bytes());
        }
        Ok(count)
    }

    async fn devices(
        &self,
        reading: &Reading,
        collector: &mut Collector<'_>,
    ) -> Result<(), Failure> {
        let mut lines = self.clickhouse.devices_as_json(reading)?;
        while let Some(line) = lines.next().await? {
            collector.event_of("resource", &line);
        }
        Ok(())
    }
}

fn hash(of: &Value) -> Option<u64> {
    of["stack_hash"].as_str()?.parse().ok()
}

fn hashes(stall: &Value) -> Vec<u64> {
    let samples = stall["samples"].as_array().into_iter().flatten();
    samples.chain([stall]).filter_map(hash).collect()
}

fn as_json(frames: &[StoredFrame]) -> Value {
    serde_json::to_value(frames).unwrap_or_default()
}

fn too_many() -> Failure {
    Failure::TooMuch(format!(
        "a report can hold at most {MOST_EVENTS} events and {MOST_STALLS} stalls: filter by session_id or choose a shorter period"
    ))
}
