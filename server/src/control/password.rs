//! Passwords of people: argon2id, slow on purpose, so call it where blocking is allowed.

use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};

/// Shorter ones are guessed; there is no other rule, since rules make worse passwords (NIST SP 800-63B).
const SHORTEST: usize = 12;
/// Longer ones are somebody keeping the server busy, in bytes.
const LONGEST: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    #[error("a password has at least {SHORTEST} characters")]
    TooShort,
    #[error("a password has at most {LONGEST} bytes")]
    TooLong,
    #[error("the system gives no random numbers")]
    NoRandomness,
}

/// The hash to keep, in PHC form: salt and cost stand in it.
pub fn hash(password: &str) -> Result<String, PasswordError> {
    if password.chars().count() < SHORTEST {
        return Err(PasswordError::TooShort);
    }
    if password.len() > LONGEST {
        return Err(PasswordError::TooLong);
    }
    slow_hash(password)
}

/// Whether the password is the one behind `stored`. Without a stored hash it takes the same time, so that an answer does not
/// tell whether a user exists.
pub fn verify(password: &str, stored: Option<&str>) -> bool {
    /// Nobody's password, with the cost of everybody's.
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
    fn nobody_never_logs_in() {
        assert!(!verify("the password of nobody", None));
        assert!(!verify("correct horse battery", Some("not a hash")));
        assert!(!verify(&"x".repeat(LONGEST + 1), None));
    }

    #[test]
    fn short_and_endless_passwords_are_refused() {
        assert_eq!(hash("elevenchars"), Err(PasswordError::TooShort));
        assert_eq!(hash(&"ü".repeat(129)), Err(PasswordError::TooLong));
        assert!(hash("übergänge-äöü").is_ok());
    }
}
