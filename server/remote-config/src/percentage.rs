//! Percentages of installs: selects the installs of a roll-out.

use sha2::{Digest, Sha256};

/// The number of buckets. The finest step of a percentage is 0.001.
pub const BUCKETS: u32 = 100_000;

/// Returns the bucket of an id: the first eight bytes (big-endian) of the SHA-256 of `{salt}.{id}`, modulo [`BUCKETS`].
///
/// A percentage holds if the bucket is below `percent` × 1,000. Raising it therefore keeps every install that was
/// selected, and different salts select independently. `client-sdk/protocol/tests/golden/percentages.json` has test
/// vectors for other languages.
#[must_use]
pub fn bucket(salt: &str, id: &str) -> u32 {
    Salted::new(salt).bucket(id)
}

/// A salt, hashed in advance.
#[derive(Clone, Debug)]
pub(super) struct Salted(Sha256);

impl Salted {
    pub(super) fn new(salt: &str) -> Self {
        Self(Sha256::new().chain_update(salt).chain_update("."))
    }

    pub(super) fn bucket(&self, id: &str) -> u32 {
        let digest = self.0.clone().chain_update(id).finalize();
        let first = digest
            .iter()
            .take(8)
            .fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        u32::try_from(first % u64::from(BUCKETS)).unwrap_or(BUCKETS)
    }
}

/// Returns how many buckets a percentage covers. Returns `None` if it is outside 0 to 100 or between two steps.
pub(super) fn buckets_of(percent: f64) -> Option<u32> {
    let buckets = percent * 1_000.0;
    let whole = buckets.round();
    // 0.001 has no exact binary representation, so the product is slightly off a whole number.
    let is_a_step = (buckets - whole).abs() < 1e-6;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked"
    )]
    ((0.0..=100_000.0).contains(&whole) && is_a_step).then_some(whole as u32)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Vector {
        salt: String,
        id: String,
        bucket: u32,
    }

    #[test]
    fn buckets_match_the_published_vectors() {
        let vectors: Vec<Vector> = serde_json::from_str(include_str!(
            "../../../client-sdk/protocol/tests/golden/percentages.json"
        ))
        .unwrap();
        assert!(vectors.len() >= 20);
        for Vector {
            salt,
            id,
            bucket: expected,
        } in vectors
        {
            assert_eq!(bucket(&salt, &id), expected, "{salt:?} {id:?}");
        }
    }

    #[test]
    fn percentages_are_multiples_of_a_thousandth() {
        for (percent, buckets) in [
            (0.0, Some(0)),
            (0.001, Some(1)),
            (0.1 + 0.2, Some(300)),
            (33.333, Some(33_333)),
            (100.0, Some(BUCKETS)),
            (0.0005, None),
            (100.001, None),
            (-0.001, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            assert_eq!(buckets_of(percent), buckets, "{percent}");
        }
        for step in 0..=BUCKETS {
            assert_eq!(buckets_of(f64::from(step) / 1_000.0), Some(step));
        }
    }
}
