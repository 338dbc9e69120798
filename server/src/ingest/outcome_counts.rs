//! Counts of events that never became a row: refused and duplicate batches. Written to the log every few seconds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::NO_BATCH;
use crate::store::{Count, Outcome, RecordBuilder};

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

    /// Takes the counts as records for the log, one a project.
    pub fn take(&self, now: i64) -> Vec<Vec<u8>> {
        let counts = std::mem::take(&mut *self.lock());
        counts
            .into_iter()
            .map(|(project, counts)| {
                let mut record = RecordBuilder::new(&project, NO_BATCH, now);
                for ((signal, outcome, reason), events) in counts {
                    record.count(Count {
                        signal,
                        outcome,
                        reason,
                        events,
                    });
                }
                record.finish()
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, HashMap<Key, u32>>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
