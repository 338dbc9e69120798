//! Resolved configurations and their cache.

use std::fmt::Write as _;
use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;
use sha2::{Digest, Sha256};
use unjank_foundation::clock::UnixTime;
use unjank_protocol::config::Document;

/// The maximum number of overrides in a configuration.
pub(super) const MAX_OVERRIDES: usize = 1_024;
const WORDS: usize = MAX_OVERRIDES.div_ceil(64);
/// The maximum number of cached answers. Independent percentages produce many sets of matching overrides.
const MAX_ANSWERS: usize = 2_048;
/// The maximum total size of the cached bodies, in bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The configuration that a device receives.
#[derive(Debug)]
pub struct Resolved {
    /// The document as served: JSON.
    pub body: Arc<[u8]>,
    /// The strong `ETag` of the body, with quotes. Equal bodies have equal `ETag`s.
    pub etag: Arc<str>,
    /// The ids of the applied overrides, in order.
    pub matched: Box<[Arc<str>]>,
    /// When the first of the applied overrides expires. Until then the answer changes
    /// only if the configuration or the device does.
    pub changes_at: Option<UnixTime>,
    /// Whether any applied override depends on a percentage of installs.
    pub by_share: bool,
    /// The document itself.
    pub document: Document,
}

impl Resolved {
    pub(super) fn new(
        document: Document,
        matched: Box<[Arc<str>]>,
        changes_at: Option<UnixTime>,
        by_share: bool,
    ) -> Self {
        // Cannot fail: a document holds only numbers, strings and maps with string keys.
        let body = serde_json::to_vec(&document).unwrap_or_default();
        Self {
            etag: etag(&body),
            body: body.into(),
            matched,
            changes_at,
            by_share,
            document,
        }
    }
}

/// Returns the strong `ETag` of a body, with quotes: half of its SHA-256 in hex, which is enough to rule out collisions.
#[must_use]
pub fn etag(body: &[u8]) -> Arc<str> {
    let mut etag = String::with_capacity(34);
    etag.push('"');
    for byte in Sha256::digest(body).iter().take(16) {
        // Writing to a string does not fail.
        let _written = write!(etag, "{byte:02x}");
    }
    etag.push('"');
    etag.into()
}

/// A set of overrides, by index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Matched([u64; WORDS]);

impl Matched {
    pub(super) fn insert(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    pub(super) fn contains(&self, index: usize) -> bool {
        let word = self.0.get(index / 64);
        word.is_some_and(|word| word & (1 << (index % 64)) != 0)
    }
}

/// A cache of answers. When it is full, all entries are evicted: computing an answer takes microseconds, and the next
/// polls bring the common ones back.
#[derive(Debug, Default)]
pub(super) struct Answers(RwLock<Memory>);

#[derive(Debug, Default)]
struct Memory {
    answers: HashMap<Matched, Arc<Resolved>>,
    bytes: usize,
}

impl Answers {
    pub(super) fn get_or_make(
        &self,
        matched: Matched,
        make: impl FnOnce() -> Resolved,
    ) -> Arc<Resolved> {
        let memory = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = memory.answers.get(&matched) {
            return Arc::clone(known);
        }
        drop(memory);
        // Computed without the lock: two threads may compute the same answer, but neither waits for the other.
        let made = Arc::new(make());
        let mut memory = self.0.write().unwrap_or_else(PoisonError::into_inner);
        memory.keep(matched, Arc::clone(&made));
        made
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.read().unwrap().answers.len()
    }
}

impl Memory {
    fn keep(&mut self, matched: Matched, answer: Arc<Resolved>) {
        let bytes = answer.body.len();
        if self.answers.len() >= MAX_ANSWERS || self.bytes + bytes > MAX_BYTES {
            self.answers.clear();
            self.bytes = 0;
        }
        if self.answers.insert(matched, answer).is_none() {
            self.bytes += bytes;
        }
    }
}
