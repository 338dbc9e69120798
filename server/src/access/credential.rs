//! Credentials that the server generates: ingest keys, API tokens, links. They are random, shown once and stored as a hash.
//!
//! They have 256 bits of randomness and cannot be guessed, so a fast hash is safe; a slow one would cost too much on
//! the hot path.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use unjank_database::SecretHash;

/// The kind of a credential. Its prefix identifies the kind to people and secret scanners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    IngestKey,
    ApiToken,
    /// A single-use link that sets a password.
    Invitation,
    /// Creates the first user of an installation.
    SetUp,
    /// Extends a session.
    Refresh,
}

impl CredentialKind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::IngestKey => "ujk_",
            Self::ApiToken => "ujt_",
            Self::Invitation => "uji_",
            Self::SetUp => "ujs_",
            Self::Refresh => "ujr_",
        }
    }
}

/// A new credential. `Debug` does not reveal it.
pub struct Credential(String);

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}…", self.shown())
    }
}

impl Credential {
    /// # Errors
    /// If the system provides no random numbers.
    pub fn new(kind: CredentialKind) -> Result<Self, NoRandomness> {
        let mut bytes = [0_u8; 32];
        aws_lc_rs::rand::fill(&mut bytes).map_err(|_| NoRandomness)?;
        Ok(Self::of(kind, bytes))
    }

    /// Creates a credential from bytes that cannot be guessed.
    pub(super) fn of(kind: CredentialKind, bytes: [u8; 32]) -> Self {
        let text = URL_SAFE_NO_PAD.encode(bytes);
        Self(format!("{}{text}", kind.prefix()))
    }

    /// Returns the whole text. Show it to the owner once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the first eight characters: enough to identify a key, too few to use it.
    pub fn shown(&self) -> &str {
        self.0.get(..8).unwrap_or_default()
    }

    /// Returns the hash, which is stored and looked up.
    pub fn hash(&self) -> SecretHash {
        SecretHash::new(&self.0)
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the system provides no random numbers")]
pub struct NoRandomness;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_unique_and_hidden_from_debug_output() {
        let (one, other) = (
            Credential::new(CredentialKind::IngestKey).unwrap(),
            Credential::new(CredentialKind::IngestKey).unwrap(),
        );
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(one.reveal().len(), 4 + 43);
        assert!(one.reveal().starts_with("ujk_"));
        assert_eq!(one.hash(), SecretHash::new(one.reveal()));
        assert_eq!(format!("{one:?}"), format!("{}…", one.shown()));
    }
}
