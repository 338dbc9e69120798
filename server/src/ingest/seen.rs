//! Which batches arrived lately: a device's retry is answered as a duplicate and stored once.
//!
//! The memory is bounded: the latest batches, at a start filled from the ingest log and the `batches` table. A retry it does
//! not know (long ago, or taken by another replica) is acknowledged as new; the writer finds it before it inserts. So an
//! acknowledgement never waits for ClickHouse.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unjank_protocol::Signal;
use uuid::Uuid;

use crate::fingerprint::fingerprint;

pub enum Arrival {
    New(Ticket),
    Duplicate {
        /// The signals that were held back when it was stored, as far as is remembered: not across a restart.
        held_back: Box<[Signal]>,
    },
    /// Another request with the same batch is being made durable right now.
    InFlight,
}

/// The right to store one batch. Dropped without `stored`, the batch counts as never seen.
pub struct Ticket {
    key: Key,
    seen: Arc<Seen>,
}

impl Ticket {
    /// The batch is durable, but for the events of these signals.
    pub fn stored(self, held_back: Box<[Signal]>) {
        let mut memory = self.seen.lock();
        memory.remember(self.key, self.seen.most);
        if !held_back.is_empty() {
            memory.young.held_back.insert(self.key, held_back);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.seen.lock().in_flight.remove(&self.key);
    }
}

type Key = (u64, Uuid);

pub struct Seen {
    memory: Mutex<Memory>,
    most: usize,
}

#[derive(Default)]
struct Memory {
    /// Bounded by the requests under way.
    in_flight: HashSet<Key>,
    young: Generation,
    old: Generation,
}

/// Half of what is remembered.
#[derive(Default)]
struct Generation {
    batches: HashSet<Key>,
    /// Of the few that were not stored whole.
    held_back: HashMap<Key, Box<[Signal]>>,
}

impl Generation {
    fn duplicate(&self, key: &Key) -> Option<Arrival> {
        self.batches.contains(key).then(|| Arrival::Duplicate {
            held_back: self.held_back.get(key).cloned().unwrap_or_default(),
        })
    }
}

impl Seen {
    /// Remembers at least `most / 2` and at most `most` batches.
    pub fn new(most: usize) -> Self {
        Self {
            memory: Mutex::default(),
            most,
        }
    }

    /// A batch, and those it was cut from. The writer finds a half whose whole is stored: several servers may have the halves, and then none
    /// of them stores the whole.
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
            seen: Arc::clone(self),
        })
    }

    /// A batch that was stored before this start.
    pub fn recall(&self, project: &str, batch_id: Uuid) {
        self.lock()
            .remember(Self::key(project, batch_id), self.most);
    }

    fn key(project: &str, batch_id: Uuid) -> Key {
        (fingerprint(&[project.as_bytes()]), batch_id)
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn remember(&mut self, key: Key, most: usize) {
        if self.young.batches.len() >= most / 2 {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.batches.clear();
            self.young.held_back.clear();
        }
        self.young.batches.insert(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(seen: &Arc<Seen>, id: u128) -> Arrival {
        seen.arrive("shop", Uuid::from_u128(id), &[])
    }

    #[test]
    fn a_stored_batch_is_a_duplicate_and_an_abandoned_one_is_not() {
        let seen = Arc::new(Seen::new(8));
        let Arrival::New(ticket) = arrive(&seen, 1) else {
            panic!("new")
        };
        assert!(matches!(arrive(&seen, 1), Arrival::InFlight));
        drop(ticket);
        let Arrival::New(ticket) = arrive(&seen, 1) else {
            panic!("new again")
        };
        ticket.stored(Box::from([Signal::Spans]));
        let again = arrive(&seen, 1);
        assert!(matches!(again, Arrival::Duplicate { held_back } if *held_back == [Signal::Spans]));
        assert!(matches!(
            seen.arrive("other", Uuid::from_u128(1), &[]),
            Arrival::New(_)
        ));
    }

    #[test]
    fn a_half_waits_while_its_whole_is_on_its_way() {
        let seen = Arc::new(Seen::new(8));
        let Arrival::New(whole) = arrive(&seen, 1) else {
            panic!("new")
        };
        let [whole_id, half_id] = [1, 2].map(Uuid::from_u128);
        let half = || seen.arrive("shop", half_id, &[whole_id]);
        assert!(
            matches!(half(), Arrival::InFlight),
            "the whole is on its way"
        );
        whole.stored(Box::default());
        assert!(matches!(half(), Arrival::New(_)));
    }

    #[test]
    fn the_memory_is_bounded_and_keeps_the_latest() {
        let seen = Arc::new(Seen::new(8));
        for id in 0..100 {
            if let Arrival::New(ticket) = arrive(&seen, id) {
                ticket.stored(Box::default());
            }
        }
        let memory = seen.lock();
        assert!(memory.young.batches.len() + memory.old.batches.len() <= 8);
        drop(memory);
        assert!(matches!(arrive(&seen, 99), Arrival::Duplicate { .. }));
        assert!(matches!(arrive(&seen, 0), Arrival::New(_)));
    }
}
