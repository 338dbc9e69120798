//! Outcomes of events that leave no record: refused and duplicate batches. The server writes these counts to the log every few seconds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unjank_foundation::clock::UnixTime;

use crate::ingest::NO_BATCH;
use crate::records::{Count, Outcome, RecordBuilder};

type Key = (&'static str, Outcome, &'static str);

/// Bounded by the number of projects and the closed sets of signals and codes.
#[derive(Default)]
pub struct OutcomeCounts {
    counts: Mutex<HashMap<Arc<str>, HashMap<Key, u32>>>,
}

impl OutcomeCounts {
    pub fn add(&self, project: &Arc<str>, count: Count<'static>) {
        let key = (count.signal, count.outcome, count.reason);
        let mut counts = self.lock();
        let of_project = counts.entry(Arc::clone(project)).or_default();
        let events = of_project.entry(key).or_default();
        *events = events.saturating_add(count.events);
    }

    /// Takes the counts of all projects. [`Self::put_back`] returns those that could not be written.
    pub fn take(&self) -> Vec<ProjectCounts> {
        let counts = std::mem::take(&mut *self.lock());
        counts
            .into_iter()
            .map(|(project, counts)| ProjectCounts { project, counts })
            .collect()
    }

    /// Adds counts that could not be written to the current counts.
    pub fn put_back(&self, taken: ProjectCounts) {
        for ((signal, outcome, reason), events) in taken.counts {
            let count = Count {
                signal,
                outcome,
                reason,
                events,
            };
            self.add(&taken.project, count);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, HashMap<Key, u32>>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counts of one project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectCounts {
    project: Arc<str>,
    counts: HashMap<Key, u32>,
}

impl ProjectCounts {
    /// The counts as a record for the log.
    pub fn record(&self, now: UnixTime) -> Vec<u8> {
        let mut record = RecordBuilder::new(&self.project, NO_BATCH, &[], now);
        for ((signal, outcome, reason), events) in &self.counts {
            record.count(Count {
                signal,
                outcome: *outcome,
                reason,
                events: *events,
            });
        }
        record.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: Count<'static> = Count {
        signal: "batch",
        outcome: Outcome::Rejected,
        reason: "invalid_json",
        events: 1,
    };

    #[test]
    fn counts_that_could_not_be_written_are_added_to_newer_ones() {
        let (counts, project) = (OutcomeCounts::default(), Arc::from("shop"));
        counts.add(&project, REFUSED);
        counts.add(&project, REFUSED);
        let taken = counts.take();
        assert!(counts.take().is_empty());
        counts.add(&project, REFUSED);
        for taken in taken {
            counts.put_back(taken);
        }
        let all = counts.take();
        let three = Count {
            events: 3,
            ..REFUSED
        };
        counts.add(&project, three);
        assert_eq!(all, counts.take());
    }
}
