//! Which batches arrived lately: a device's retry is answered as a duplicate and stored once.
//!
//! The memory is bounded, and complete for batches received since it began. Whether a batch made before that was stored is
//! asked of the `batches` table. What slips through (a device's clock ahead, ClickHouse away, several replicas) the writer
//! finds before it inserts.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use crate::fingerprint::fingerprint;

pub enum Arrival {
    /// Not in memory. `look_up`: it may have been stored before the memory began.
    New {
        ticket: Ticket,
        look_up: bool,
    },
    Duplicate,
    /// Another request with the same batch is being made durable right now.
    InFlight,
}

/// The right to store one batch. Dropped without `stored`, the batch counts as never seen.
pub struct Ticket {
    key: Key,
    seen: Arc<Seen>,
    received_at: i64,
}

impl Ticket {
    /// The batch is durable.
    pub fn stored(self) {
        let mut memory = self.seen.lock();
        memory.remember(self.key, self.received_at, self.seen.most);
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

struct Memory {
    /// Bounded by the requests under way.
    in_flight: HashSet<Key>,
    young: Generation,
    old: Generation,
}

struct Generation {
    keys: HashSet<Key>,
    /// When its first batch was received, in microseconds since the epoch.
    since: i64,
}

impl Seen {
    /// Remembers at least `most / 2` and at most `most` batches. `now`: the memory knows nothing of before.
    pub fn new(most: usize, now: i64) -> Self {
        let empty = || Generation {
            keys: HashSet::new(),
            since: now,
        };
        Self {
            memory: Mutex::new(Memory {
                in_flight: HashSet::new(),
                young: empty(),
                old: empty(),
            }),
            most,
        }
    }

    pub fn arrive(self: &Arc<Self>, project: &str, batch_id: Uuid, now: i64) -> Arrival {
        let key = Self::key(project, batch_id);
        let mut memory = self.lock();
        if memory.young.keys.contains(&key) || memory.old.keys.contains(&key) {
            return Arrival::Duplicate;
        }
        if !memory.in_flight.insert(key) {
            return Arrival::InFlight;
        }
        let look_up = made_at(batch_id).is_none_or(|made| made < memory.old.since);
        Arrival::New {
            ticket: Ticket {
                key,
                seen: Arc::clone(self),
                received_at: now,
            },
            look_up,
        }
    }

    /// A batch found in the log at start, oldest first: the memory reaches back to it.
    pub fn recall(&self, project: &str, batch_id: Uuid, received_at: i64) {
        let mut memory = self.lock();
        if memory.old.keys.is_empty() && memory.young.keys.is_empty() {
            memory.young.since = received_at;
            memory.old.since = received_at;
        }
        memory.remember(Self::key(project, batch_id), received_at, self.most);
    }

    /// A batch found in the `batches` table: remembered, so that the next retry costs no look-up.
    pub fn found_stored(&self, project: &str, batch_id: Uuid, now: i64) {
        self.lock()
            .remember(Self::key(project, batch_id), now, self.most);
    }

    fn key(project: &str, batch_id: Uuid) -> Key {
        (fingerprint(&[project.as_bytes()]), batch_id)
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn remember(&mut self, key: Key, received_at: i64, most: usize) {
        if self.young.keys.len() >= most / 2 {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.keys.clear();
            self.young.since = received_at;
        }
        self.young.keys.insert(key);
    }
}

/// When a UUID v7 was made, in microseconds since the epoch; other ids do not say.
fn made_at(id: Uuid) -> Option<i64> {
    if id.get_version_num() != 7 {
        return None;
    }
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    i64::try_from(seconds)
        .ok()?
        .checked_mul(1_000_000)?
        .checked_add(i64::from(nanos / 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000_000;

    fn seen() -> Arc<Seen> {
        Arc::new(Seen::new(8, NOW))
    }

    fn arrive(seen: &Arc<Seen>, id: u128) -> Arrival {
        seen.arrive("shop", Uuid::from_u128(id), NOW)
    }

    #[test]
    fn a_stored_batch_is_a_duplicate_and_an_abandoned_one_is_not() {
        let seen = seen();
        let Arrival::New { ticket, .. } = arrive(&seen, 1) else {
            panic!("new")
        };
        assert!(matches!(arrive(&seen, 1), Arrival::InFlight));
        drop(ticket);
        let Arrival::New { ticket, .. } = arrive(&seen, 1) else {
            panic!("new again")
        };
        ticket.stored();
        assert!(matches!(arrive(&seen, 1), Arrival::Duplicate));
        assert!(matches!(
            seen.arrive("other", Uuid::from_u128(1), NOW),
            Arrival::New { .. }
        ));
    }

    #[test]
    fn the_memory_is_bounded_and_keeps_the_latest() {
        let seen = seen();
        for id in 0..100 {
            if let Arrival::New { ticket, .. } = arrive(&seen, id) {
                ticket.stored();
            }
        }
        let memory = seen.lock();
        assert!(memory.young.keys.len() + memory.old.keys.len() <= 8);
        drop(memory);
        assert!(matches!(arrive(&seen, 99), Arrival::Duplicate));
        assert!(matches!(
            arrive(&seen, 0),
            Arrival::New { look_up: true, .. }
        ));
    }

    #[test]
    fn only_ids_made_before_the_memory_began_are_looked_up() {
        let seen = seen();
        let at = |seconds: i64| {
            let time = uuid::Timestamp::from_unix(
                uuid::NoContext,
                (NOW / 1_000_000 + seconds).cast_unsigned(),
                0,
            );
            Uuid::new_v7(time)
        };
        assert!(matches!(
            seen.arrive("shop", at(3_600), NOW),
            Arrival::New { look_up: false, .. }
        ));
        assert!(matches!(
            seen.arrive("shop", at(-3_600), NOW),
            Arrival::New { look_up: true, .. }
        ));
    }
}
