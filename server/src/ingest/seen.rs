//! Which batches arrived lately: a device's retry is answered as a duplicate and stored once.
//!
//! The memory is bounded: the latest batches, at a start filled from the ingest log and the `batches` table. A retry it does
//! not know (long ago, or taken by another replica) is acknowledged as new; the writer finds it before it inserts. So an
//! acknowledgement never waits for ClickHouse.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use crate::fingerprint::fingerprint;

pub enum Arrival {
    New(Ticket),
    Duplicate,
    /// Another request with the same batch is being made durable right now.
    InFlight,
}

/// The right to store one batch. Dropped without `stored`, the batch counts as never seen.
pub struct Ticket {
    key: Key,
    seen: Arc<Seen>,
}

impl Ticket {
    /// The batch is durable.
    pub fn stored(self) {
        self.seen.lock().remember(self.key, self.seen.most);
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
    young: HashSet<Key>,
    old: HashSet<Key>,
}

impl Seen {
    /// Remembers at least `most / 2` and at most `most` batches.
    pub fn new(most: usize) -> Self {
        Self {
            memory: Mutex::default(),
            most,
        }
    }

    pub fn arrive(self: &Arc<Self>, project: &str, batch_id: Uuid) -> Arrival {
        let key = Self::key(project, batch_id);
        let mut memory = self.lock();
        if memory.young.contains(&key) || memory.old.contains(&key) {
            return Arrival::Duplicate;
        }
        if !memory.in_flight.insert(key) {
            return Arrival::InFlight;
        }
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
        if self.young.len() >= most / 2 {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(seen: &Arc<Seen>, id: u128) -> Arrival {
        seen.arrive("shop", Uuid::from_u128(id))
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
        ticket.stored();
        assert!(matches!(arrive(&seen, 1), Arrival::Duplicate));
        assert!(matches!(
            seen.arrive("other", Uuid::from_u128(1)),
            Arrival::New(_)
        ));
    }

    #[test]
    fn the_memory_is_bounded_and_keeps_the_latest() {
        let seen = Arc::new(Seen::new(8));
        for id in 0..100 {
            if let Arrival::New(ticket) = arrive(&seen, id) {
                ticket.stored();
            }
        }
        let memory = seen.lock();
        assert!(memory.young.len() + memory.old.len() <= 8);
        drop(memory);
        assert!(matches!(arrive(&seen, 99), Arrival::Duplicate));
        assert!(matches!(arrive(&seen, 0), Arrival::New(_)));
    }
}
