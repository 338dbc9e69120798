//! Secrets as they are stored: hashed, or encrypted by the caller. `Debug` does not reveal them.

use std::fmt;

use sha2::{Digest, Sha256};

use super::backend::{Row, Value};
use super::error::ControlError;

/// The SHA-256 of a key or token. These have 256 random bits, so a fast hash is as safe as a slow one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    #[must_use]
    pub fn new(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    pub(super) fn read(row: &Row, column: &str) -> Result<Self, ControlError> {
        row.hash(column).map(Self)
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(hidden)")
    }
}

impl From<SecretHash> for Value {
    fn from(hash: SecretHash) -> Self {
        Self::from(hash.0)
    }
}

/// A text that `Debug` must not reveal: a password's PHC string, or the material of a device key.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(pub String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hidden")
    }
}
