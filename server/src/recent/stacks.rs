//! The stacks that this process has stored: each distinct stack is stored once a week. A stack that was forgotten is stored again, and the
//! duplicate row is merged away.
//!
//! The rows of a stack in use are therefore never much older than the events that refer to it, and can expire with these events.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unjank_foundation::clock::{UnixTime, micros};
use unjank_foundation::fingerprint::fingerprint;
use unjank_stacks::RulesId;

const WEEK: Duration = Duration::from_secs(7 * 86_400);

/// A stack of a project, under its rules, in one week. It counts as new under other rules and in another week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackKey(u64);

impl StackKey {
    /// Weeks of different stacks begin at different times, to spread the rows.
    pub fn new(project: &str, rules: RulesId, stack_hash: u64, received_at: UnixTime) -> Self {
        let begins = Duration::from_micros(stack_hash % micros(WEEK).unsigned_abs());
        let week = (received_at + begins).number_of(WEEK);
        Self(fingerprint(&[
            project.as_bytes(),
            &rules.revision.to_le_bytes(),
            &rules.hash.to_le_bytes(),
            &stack_hash.to_le_bytes(),
            &week.to_le_bytes(),
        ]))
    }
}

/// Two generations: when the young one is full, it replaces the old one.
pub struct RecentStacks {
    generations: Mutex<[HashSet<StackKey>; 2]>,
    capacity: usize,
}

impl RecentStacks {
    /// Remembers at least `capacity / 2` and at most `capacity` stacks.
    pub fn new(capacity: usize) -> Self {
        Self {
            generations: Mutex::default(),
            capacity,
        }
    }

    pub fn contains(&self, key: StackKey) -> bool {
        let generations = self.lock();
        generations
            .iter()
            .any(|generation| generation.contains(&key))
    }

    /// Remembers stacks. Call this only once their rows are durable.
    pub fn insert(&self, keys: &[StackKey]) {
        let mut generations = self.lock();
        for key in keys {
            if generations[0].len() >= self.capacity / 2 {
                generations.swap(0, 1);
                generations[0].clear();
            }
            generations[0].insert(*key);
        }
    }

    /// Forgets all stacks, because an erasure may have deleted their rows.
    pub fn clear(&self) {
        self.lock().iter_mut().for_each(HashSet::clear);
    }

    fn lock(&self) -> MutexGuard<'_, [HashSet<StackKey>; 2]> {
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
