//! Which stacks this process has stored already: bounded, forgotten at restart. Forgetting costs a row that merges away.

use std::collections::HashSet;
use std::sync::Mutex;

use crate::fingerprint::fingerprint;
use crate::stacks::RulesId;

/// A stack of a project under its rules: others, and it is new again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackKey(u64);

impl StackKey {
    pub fn new(project: &str, rules: RulesId, stack_hash: u64) -> Self {
        Self(fingerprint(&[
            project.as_bytes(),
            &rules.revision.to_le_bytes(),
            &rules.hash.to_le_bytes(),
            &stack_hash.to_le_bytes(),
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

    fn lock(&self) -> std::sync::MutexGuard<'_, [HashSet<StackKey>; 2]> {
        self.generations
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
