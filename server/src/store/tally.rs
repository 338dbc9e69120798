//! What became of the events of a range: the rows of `outcomes`, counted once, when it is known.

use std::collections::BTreeMap;

use unjank_protocol::Signal;

use super::columns::{FrameBuilder, Kind};
use super::dead_letter::{DeadLetter, hour_of};
use super::record::{Count, Outcome, Record};

/// Counts of outcomes of a range, in a fixed order.
#[derive(Default)]
pub(super) struct Tally {
    counts: BTreeMap<TallyKey, i64>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct TallyKey {
    hour: u32,
    project: String,
    signal: String,
    outcome: Outcome,
    reason: String,
}

impl Tally {
    /// The counts as a frame of `outcomes`, unless there are none.
    pub(super) fn frame(&self) -> Option<Vec<u8>> {
        if self.counts.is_empty() {
            return None;
        }
        let counts = || self.counts.iter();
        let mut frame = FrameBuilder::new("outcomes", self.counts.len());
        frame.fixed(
            Kind::DateTime,
            "hour",
            counts().map(|(key, _)| key.hour.to_le_bytes()),
        );
        frame.symbols("project", counts().map(|(key, _)| key.project.as_str()));
        frame.symbols("signal", counts().map(|(key, _)| key.signal.as_str()));
        frame.symbols("outcome", counts().map(|(key, _)| key.outcome.as_str()));
        frame.symbols("reason", counts().map(|(key, _)| key.reason.as_str()));
        frame.fixed(
            Kind::I64,
            "count",
            counts().map(|(_, events)| events.to_le_bytes()),
        );
        let mut bytes = Vec::new();
        frame.finish(&mut bytes);
        Some(bytes)
    }

    pub(super) fn add_record(&mut self, record: &Record<'_>, duplicate: bool) {
        for count in &record.outcomes {
            let count = if duplicate {
                Count {
                    outcome: Outcome::Duplicate,
                    reason: "batch",
                    ..*count
                }
            } else {
                *count
            };
            self.add(
                record.received_at,
                record.project,
                count,
                i64::from(count.events),
            );
        }
    }

    pub(super) fn move_to_dead_letter(&mut self, item: &DeadLetter) {
        // Only signals have outcomes; `stacks` and `batches` are not events.
        if Signal::from_name(&item.table) == Signal::Other {
            return;
        }
        let rows = i64::try_from(item.rows).unwrap_or(i64::MAX);
        let stored = Count {
            signal: &item.table,
            outcome: Outcome::Stored,
            reason: "",
            events: 0,
        };
        let refused = Count {
            outcome: Outcome::DeadLetter,
            reason: "refused_by_store",
            ..stored
        };
        self.add(item.received_at, &item.project, stored, -rows);
        self.add(item.received_at, &item.project, refused, rows);
    }

    fn add(&mut self, received_at: i64, project: &str, count: Count<'_>, events: i64) {
        let key = TallyKey {
            hour: hour_of(received_at),
            project: project.to_owned(),
            signal: count.signal.to_owned(),
            outcome: count.outcome,
            reason: count.reason.to_owned(),
        };
        *self.counts.entry(key).or_default() += events;
    }
}
