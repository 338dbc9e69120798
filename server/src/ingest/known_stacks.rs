//! Which stacks this process has stored already: bounded, forgotten at restart. Forgetting costs a row that merges away.
//!
//! A stack in use is stored again each week. So its rows are never much older than the events that use it, and may go with them.

use std::collections::HashSet;
use std::sync::Mutex;

use crate::fingerprint::fingerprint;
use crate::stacks::RulesId;

const WEEK_US: i64 = 7 * 24 * 3_600_000_000;

/// A stack of a project under its rules in a week: with other rules, or in another week, it is new again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackKey(u64);

impl StackKey {
    /// `received_at` in microseconds since the epoch. Weeks of different stacks begin at different times.
    pub fn new(project: &str, rules: RulesId, stack_hash: u64, received_at: i64) -> Self {
        let begins = i64::try_from(stack_hash % WEEK_US.unsigned_abs()).unwrap_or(0);
        let week = received_at.saturating_add(begins).div_euclid(WEEK_US);
        Self(fingerprint(&[
            project.as_bytes(),
            &rules.revision.to_le_bytes(),
            &rules.hash.to_le_bytes(),
            &stack_hash.to_le_bytes(),
            &week.to_le_bytes(),
        ]))
    }
}

/// Two generations: when the young one is full it becomes the old one, and the old one goes.
pub struct KnownStacks {
    generations: Mutex<[HashSet<StackKey>; 2]>,
    most: usize,
}

impl KnownStacks {
    /// Remembers at least `most / 2` and at most `most` stacks.
    pub fn new(most: usize) -> Self {
        Self {
            generations: Mutex::default(),
            most,
        }
    }

    pub fn contains(&self, key: StackKey) -> bool {
        let generations = self.lock();
        generations
            .iter()
            .any(|generation| generation.contains(&key))
    }

    /// Only once their rows are durable.
    pub fn insert(&self, keys: &[StackKey]) {
        let mut generations = self.lock();
        for key in keys {
            if generations[0].len() >= self.most / 2 {
                generations.swap(0, 1);
                generations[0].clear();
            }
            generations[0].insert(*key);
        }
    }

    /// Stacks were erased: those that come again are stored again.
    pub fn clear(&self) {
        self.lock().iter_mut().for_each(HashSet::clear);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, [HashSet<StackKey>; 2]> {
        self.generations
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
