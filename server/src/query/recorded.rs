//! What is stored of a run, read as if it were a report file.

use serde_json::Value;

use super::{Ask, AskError, Unanswered};
use crate::stacks::Rules;
use crate::store::reads::{Reading, StoredFrame, recorded_signals, subject};
use crate::store::{ClickHouse, Failure};
use crate::test_run::{Collector, TestRun};

/// Events of a run: a test of some hours. More than that is a question for tables and series.
pub const MOST_EVENTS: u64 = 300_000;
/// Stalls of a run: each is read with its stacks.
const MOST_STALLS: u64 = 20_000;
/// Batches wait on a device that has no network: those of a session are looked for so long after its end.
pub(super) const LONGEST_WAY: i64 = 8 * 86_400_000_000;

/// The run that the filters leave: by session, install, version, or whatever else every event has.
pub async fn recorded(
    clickhouse: &ClickHouse,
    project: &str,
    ask: &Ask,
    now: i64,
    rules: &Rules,
) -> Result<TestRun, Unanswered> {
    let source = Source {
        clickhouse,
        project,
        ask: whole_run(ask)?,
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
        // Who sent it stands with the batches, for as long as these are kept.
        source
            .devices(&source.reading("usage")?, &mut collector)
            .await?;
    }
    Ok(collector.finish())
}

/// A run is filtered by what every event has: half a run would be taken for a whole one.
pub(super) fn whole_run(ask: &Ask) -> Result<Ask, AskError> {
    let common = subject("spans").map_or(&[][..], |spans| spans.common());
    for (name, _) in &ask.filters {
        if !common.iter().any(|dimension| dimension.name == name) {
            let names: Vec<_> = common.iter().map(|dimension| dimension.name).collect();
            return Err(AskError(format!(
                "a report has no filter `{name}`: it is filtered by {}",
                names.join(", ")
            )));
        }
    }
    Ok(Ask {
        from: ask.from,
        to: ask.to,
        filters: ask.filters.clone(),
        ..Ask::default()
    })
}

struct Source<'s> {
    clickhouse: &'s ClickHouse,
    project: &'s str,
    ask: Ask,
    now: i64,
}

impl Source<'_> {
    fn reading(&self, name: &str) -> Result<Reading, AskError> {
        let mut reading = self.ask.single(self.project, name, self.now)?;
        let of_session = self
            .ask
            .filters
            .iter()
            .any(|(name, _)| name == "session_id");
        if of_session && ["usage", "sdk_health"].contains(&name) {
            // They have the time of their arrival, which is later than anything in the session.
            reading.span.to += LONGEST_WAY;
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

    /// Stalls name their stacks, which stand elsewhere.
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
        let frames = self.clickhouse.frames_of(self.project, &hashes).await?;
        let frames = |of: &Value| {
            hash(of)
                .and_then(|hash| frames.get(&hash))
                .map_or(Value::Null, as_json)
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

fn as_json(frames: &Vec<StoredFrame>) -> Value {
    serde_json::to_value(frames).unwrap_or_default()
}

fn too_many() -> Failure {
    Failure::TooMuch(format!(
        "a report is made of {MOST_EVENTS} events and {MOST_STALLS} stalls at most: filter by session_id, or say a shorter time"
    ))
}
