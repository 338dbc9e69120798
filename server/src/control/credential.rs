//! Credentials the server makes: ingest keys, API tokens, links. Random, shown once, kept as a hash.
//!
//! They carry 256 bits of randomness, so a fast hash is right: there is nothing to guess, and it stands on the hot path.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::store::control::SecretHash;

/// What a credential opens; its first letters say so to whoever finds one, and to secret scanners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    IngestKey,
    ApiToken,
    /// A link that sets a password, once.
    Invitation,
    /// What continues a login.
    Refresh,
}

impl CredentialKind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::IngestKey => "ujk_",
            Self::ApiToken => "ujt_",
            Self::Invitation => "uji_",
            Self::Refresh => "ujr_",
        }
    }
}

/// A new credential. Does not print.
pub struct Credential(String);

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}…", self.shown())
    }
}

impl Credential {
    /// # Errors
    /// When the system gives no random numbers.
    pub fn new(kind: CredentialKind) -> Result<Self, NoRandomness> {
        let mut bytes = [0_u8; 32];
        aws_lc_rs::rand::fill(&mut bytes).map_err(|_| NoRandomness)?;
        Ok(Self::of(kind, bytes))
    }

    /// From bytes that nobody can guess.
    pub(super) fn of(kind: CredentialKind, bytes: [u8; 32]) -> Self {
        let text = URL_SAFE_NO_PAD.encode(bytes);
        Self(format!("{}{text}", kind.prefix()))
    }

    /// The whole text, for its owner, once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Enough to tell one's keys apart, too little to use: the first eight characters.
    pub fn shown(&self) -> &str {
        self.0.get(..8).unwrap_or_default()
    }

    /// What is kept and looked up.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.0)
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandomness;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_differ_and_do_not_print() {
        let (one, other) = (
            Credential::new(CredentialKind::IngestKey).unwrap(),
            Credential::new(CredentialKind::IngestKey).unwrap(),
        );
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(one.reveal().len(), 4 + 43);
        assert!(one.reveal().starts_with("ujk_"));
        assert_eq!(one.hash(), SecretHash::of(one.reveal()));
        assert_eq!(format!("{one:?}"), format!("{}…", one.shown()));
    }
}
