//! The batches that arrived recently, so that a device's retry is answered as a duplicate.
//!
//! At a start, the memory is filled from the ingest log and the table `batches`. A retry that it does not know (an old one, or one of a batch
//! that another server took) is acknowledged as new, and the writer drops it before the INSERT. So an acknowledgment never waits for ClickHouse.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unjank_foundation::fingerprint::fingerprint;
use unjank_protocol::Signal;
use uuid::Uuid;

pub enum Arrival {
    New(Ticket),
    Duplicate(Unstored),
    /// Another request is appending the same batch right now.
    InFlight,
}

/// What was not stored of a batch that is stored. Empty after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unstored {
    /// The signals that were held back.
    pub held_back: Box<[Signal]>,
    /// The signals with rejected events, and how many.
    pub rejected: Box<[(Signal, u32)]>,
}

impl Unstored {
    fn is_empty(&self) -> bool {
        self.held_back.is_empty() && self.rejected.is_empty()
    }
}

/// The right to store one batch. A ticket that is dropped without [`Ticket::stored`] leaves the batch unknown.
pub struct Ticket {
    key: Key,
    batches: Arc<RecentBatches>,
}

impl Ticket {
    /// Remembers the batch as durable, except for some of its events.
    pub fn stored(self, unstored: Unstored) {
        let mut memory = self.batches.lock();
        memory.remember(self.key, self.batches.capacity);
        if !unstored.is_empty() {
            memory.young.unstored.insert(self.key, unstored);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let was_in_flight = self.batches.lock().in_flight.remove(&self.key);
        debug_assert!(was_in_flight, "a batch has one ticket at a time");
    }
}

type Key = (u64, Uuid);

pub struct RecentBatches {
    memory: Mutex<Memory>,
    capacity: usize,
}

#[derive(Default)]
struct Memory {
    /// Bounded by the number of concurrent requests.
    in_flight: HashSet<Key>,
    young: Generation,
    old: Generation,
}

/// Half of the memory.
#[derive(Default)]
struct Generation {
    batches: HashSet<Key>,
    /// For the few batches that were not stored whole.
    unstored: HashMap<Key, Unstored>,
}

impl Generation {
    fn duplicate(&self, key: &Key) -> Option<Arrival> {
        let unstored = || self.unstored.get(key).cloned().unwrap_or_default();
        self.batches
            .contains(key)
            .then(|| Arrival::Duplicate(unstored()))
    }
}

impl RecentBatches {
    /// Remembers at least `capacity / 2` and at most `capacity` batches.
    pub fn new(capacity: usize) -> Self {
        Self {
            memory: Mutex::default(),
            capacity,
        }
    }

    /// Registers the arrival of a batch and of the batches it was split from. The writer drops a half whose whole batch is stored, because
    /// several servers may receive the halves and none of them the whole.
    pub fn arrive(self: &Arc<Self>, project: &str, batch_id: Uuid, split_from: &[Uuid]) -> Arrival {
        let key = Self::key(project, batch_id);
        let mut memory = self.lock();
        let generations = [&memory.young, &memory.old];
        if let Some(duplicate) = generations.iter().find_map(|one| one.duplicate(&key)) {
            return duplicate;
        }
        let mut all = std::iter::once(&batch_id).chain(split_from);
        if all.any(|id| memory.in_flight.contains(&Self::key(project, *id))) {
            return Arrival::InFlight;
        }
        memory.in_flight.insert(key);
        Arrival::New(Ticket {
            key,
            batches: Arc::clone(self),
        })
    }

    /// Remembers a batch that was stored before this server started.
    pub fn recall(&self, project: &str, batch_id: Uuid) {
        self.lock()
            .remember(Self::key(project, batch_id), self.capacity);
    }

    fn key(project: &str, batch_id: Uuid) -> Key {
        (fingerprint(&[project.as_bytes()]), batch_id)
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn remember(&mut self, key: Key, capacity: usize) {
        if self.young.batches.len() >= capacity / 2 {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.batches.clear();
            self.young.unstored.clear();
        }
        self.young.batches.insert(key);
        debug_assert!(
            self.young.batches.len() <= (capacity / 2).max(1),
            "the memory is bounded"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(batches: &Arc<RecentBatches>, id: u128) -> Arrival {
        batches.arrive("shop", Uuid::from_u128(id), &[])
    }

    #[test]
    fn a_stored_batch_is_a_duplicate_and_an_abandoned_one_is_not() {
        let batches = Arc::new(RecentBatches::new(8));
        let Arrival::New(ticket) = arrive(&batches, 1) else {
            panic!("new")
        };
        assert!(matches!(arrive(&batches, 1), Arrival::InFlight));
        drop(ticket);
        let Arrival::New(ticket) = arrive(&batches, 1) else {
            panic!("new again")
        };
        let unstored = Unstored {
            held_back: Box::from([Signal::Spans]),
            rejected: Box::from([(Signal::Janks, 2)]),
        };
        ticket.stored(unstored.clone());
        let again = arrive(&batches, 1);
        assert!(matches!(again, Arrival::Duplicate(again) if again == unstored));
        assert!(matches!(
            batches.arrive("other", Uuid::from_u128(1), &[]),
            Arrival::New(_)
        ));
    }

    #[test]
    fn a_half_waits_while_its_whole_batch_is_in_flight() {
        let batches = Arc::new(RecentBatches::new(8));
        let Arrival::New(whole) = arrive(&batches, 1) else {
            panic!("new")
        };
        let [whole_id, half_id] = [1, 2].map(Uuid::from_u128);
        let half = || batches.arrive("shop", half_id, &[whole_id]);
        assert!(
            matches!(half(), Arrival::InFlight),
            "the whole batch is in flight"
        );
        whole.stored(Unstored::default());
        assert!(matches!(half(), Arrival::New(_)));
    }

    #[test]
    fn the_memory_is_bounded_and_keeps_the_latest() {
        let batches = Arc::new(RecentBatches::new(8));
        for id in 0..100 {
            if let Arrival::New(ticket) = arrive(&batches, id) {
                ticket.stored(Unstored::default());
            }
        }
        let memory = batches.lock();
        assert!(memory.young.batches.len() + memory.old.batches.len() <= 8);
        drop(memory);
        assert!(matches!(arrive(&batches, 99), Arrival::Duplicate(_)));
        assert!(matches!(arrive(&batches, 0), Arrival::New(_)));
    }
}
