//! The hosts whose traffic layers count, so that the app does not count it again.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Maximum number of hosts.
const MOST: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Hosts(Mutex<HashSet<Box<str>>>);

impl Hosts {
    pub(crate) fn add(&self, host: &str) {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() < MOST && !hosts.contains(host) {
            hosts.insert(host.into());
        }
    }

    pub(crate) fn contains(&self, host: &str) -> bool {
        let hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.contains(host) || hosts.contains(host.to_ascii_lowercase().as_str())
    }
}
