//! The latest device keys and tokens that this server refused. They show a person who sets up an app why nothing
//! arrives. Only hashes and the first characters are kept, in the memory of this server.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use unjank_database::SecretHash;
use unjank_foundation::clock::UnixTime;

use super::seed::shown;

/// The maximum number of refused keys. Beyond it, the least recently sent key is evicted.
const MOST: usize = 64;

/// A key or token that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedKey {
    /// The time of the latest request.
    pub at: UnixTime,
    /// The code of the problem.
    pub code: &'static str,
    /// `None`: the requests had no key.
    pub hash: Option<SecretHash>,
    /// The first characters, too few to use the key.
    pub prefix: String,
    pub requests: u64,
}

#[derive(Default)]
pub struct RefusedKeys(Mutex<VecDeque<RefusedKey>>);

impl RefusedKeys {
    pub fn add(&self, key: Option<&str>, code: &'static str, now: UnixTime) {
        let hash = key.map(SecretHash::new);
        let mut refused = self.refused();
        let known = refused
            .iter()
            .position(|one| one.hash == hash && one.code == code);
        let before = known.and_then(|index| refused.remove(index));
        refused.push_front(RefusedKey {
            at: now,
            code,
            hash,
            prefix: key.map(shown).unwrap_or_default(),
            requests: before.map_or(1, |one| one.requests.saturating_add(1)),
        });
        refused.truncate(MOST);
    }

    /// Returns the refused keys, most recently sent first.
    pub fn latest(&self) -> Vec<RefusedKey> {
        self.refused().iter().cloned().collect()
    }

    fn refused(&self) -> MutexGuard<'_, VecDeque<RefusedKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_keys_are_counted_and_their_number_is_bounded() {
        let refused = RefusedKeys::default();
        let at = UnixTime::from_secs;
        refused.add(Some("ujk_wrong-key-of-47-characters"), "key_unknown", at(1));
        refused.add(None, "key_missing", at(2));
        refused.add(Some("ujk_wrong-key-of-47-characters"), "key_unknown", at(3));
        let latest = refused.latest();
        let seen: Vec<_> = latest
            .iter()
            .map(|one| (one.at, one.code, one.prefix.as_str(), one.requests))
            .collect();
        assert_eq!(
            seen,
            [
                (at(3), "key_unknown", "ujk_wro…", 2),
                (at(2), "key_missing", "", 1)
            ]
        );
        for n in 0..1_000 {
            refused.add(Some(&n.to_string()), "key_unknown", at(4));
        }
        assert_eq!(refused.latest().len(), MOST);
    }
}
