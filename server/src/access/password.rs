//! Password hashing with argon2id. Slow on purpose, so call it only where blocking is allowed.

use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};

/// The minimum number of characters. There are no other rules, since they lead to worse passwords (NIST SP 800-63B).
const SHORTEST: usize = 12;
/// The maximum size in bytes, so that long passwords cannot be used to keep the server busy.
const LONGEST: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    #[error("a password must have at least {SHORTEST} characters")]
    TooShort,
    #[error("a password must have at most {LONGEST} bytes")]
    TooLong,
    #[error("the system provides no random numbers")]
    NoRandomness,
}

/// Hashes a password for storage, in PHC format, which includes salt and cost.
pub fn hash(password: &str) -> Result<String, PasswordError> {
    if password.chars().count() < SHORTEST {
        return Err(PasswordError::TooShort);
    }
    if password.len() > LONGEST {
        return Err(PasswordError::TooLong);
    }
    slow_hash(password)
}

/// Whether the password matches `stored`. Takes the same time without a stored hash, so that the response time does not
/// reveal whether a user exists.
pub fn verify(password: &str, stored: Option<&str>) -> bool {
    /// A hash for unknown users, with the same cost as any other.
    static NOBODY: LazyLock<Option<String>> =
        LazyLock::new(|| slow_hash("the password of nobody").ok());
    if password.len() > LONGEST {
        return false;
    }
    let hash = stored
        .or(NOBODY.as_deref())
        .and_then(|text| PasswordHash::new(text).ok());
    let matches = hash.is_some_and(|hash| {
        Argon2::default()
            .verify_password(password.as_bytes(), &hash)
            .is_ok()
    });
    matches && stored.is_some()
}

fn slow_hash(password: &str) -> Result<String, PasswordError> {
    Argon2::default()
        .hash_password(password.as_bytes())
        .map(|hash| hash.to_string())
        .map_err(|_| PasswordError::NoRandomness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_verifies_against_its_own_hash_only() {
        let stored = hash("correct horse battery").unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(verify("correct horse battery", Some(&stored)));
        assert!(!verify("correct horse batterz", Some(&stored)));
        assert_ne!(hash("correct horse battery").unwrap(), stored, "salted");
    }

    #[test]
    fn an_unknown_user_never_logs_in() {
        assert!(!verify("the password of nobody", None));
        assert!(!verify("correct horse battery", Some("not a hash")));
        assert!(!verify(&"x".repeat(LONGEST + 1), None));
    }

    #[test]
    fn short_and_overlong_passwords_are_rejected() {
        assert_eq!(hash("elevenchars"), Err(PasswordError::TooShort));
        assert_eq!(hash(&"ü".repeat(129)), Err(PasswordError::TooLong));
        assert!(hash("übergänge-äöü").is_ok());
    }
}
