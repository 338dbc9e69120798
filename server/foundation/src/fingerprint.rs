//! Short names for long values: 64 bits of SHA-256, the same in every version and on every machine.

use sha2::{Digest, Sha256};

/// Returns the fingerprint of a list of parts. Each part is hashed with its length, so that parts cannot run together.
#[must_use]
pub fn fingerprint(parts: &[&[u8]]) -> u64 {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let digest = hasher.finalize();
    digest
        .first_chunk::<8>()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
