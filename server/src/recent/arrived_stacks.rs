//! New stacks that wait for symbolication. Their rows reach ClickHouse a moment after the batch is durable.
//!
//! The list is bounded and not durable: a stack that is not on it is found by the next pass over all stacks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The maximum number of stacks of a project on the list.
const MAX_PER_PROJECT: usize = 10_000;
/// A row that has not reached ClickHouse by then is found by the next pass.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivedStack {
    pub hash: u64,
    since: Instant,
}

#[derive(Default)]
pub struct ArrivedStacks(Mutex<HashMap<Arc<str>, Vec<ArrivedStack>>>);

impl ArrivedStacks {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Vec<ArrivedStack>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds stacks whose record is durable.
    pub fn add(&self, project: &Arc<str>, hashes: &[u64]) {
        if hashes.is_empty() {
            return;
        }
        let since = Instant::now();
        let stacks = hashes.iter().map(|&hash| ArrivedStack { hash, since });
        self.put_back(project, stacks.collect());
    }

    /// Returns stacks of a project for another attempt, except those that have waited for too long.
    pub fn put_back(&self, project: &Arc<str>, stacks: Vec<ArrivedStack>) {
        let mut projects = self.lock();
        let list = projects.entry(Arc::clone(project)).or_default();
        let stacks = stacks.into_iter();
        let recent = stacks.filter(|stack| stack.since.elapsed() < PATIENCE);
        list.extend(recent.take(MAX_PER_PROJECT.saturating_sub(list.len())));
        if list.is_empty() {
            projects.remove(project);
        }
    }

    pub fn has(&self, project: &str) -> bool {
        self.lock().contains_key(project)
    }

    /// Takes the first stacks of a project, at most `most`.
    pub fn take(&self, project: &str, most: usize) -> Vec<ArrivedStack> {
        let mut projects = self.lock();
        let Some(list) = projects.get_mut(project) else {
            return Vec::new();
        };
        let taken = list.drain(..most.min(list.len())).collect();
        if list.is_empty() {
            projects.remove(project);
        }
        taken
    }
}
