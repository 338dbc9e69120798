//! Short names for long things: 64 bits of SHA-256, the same in every version and on every machine.

use sha2::{Digest, Sha256};

/// The fingerprint of the parts, each kept apart from the next.
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
