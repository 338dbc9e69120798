//! The secret of this installation: signs sessions, and encrypts stored data that must be recoverable, such as the
//! secrets of HS256 keys.
//!
//! The secret is in a file of the data folder or in a setting, but never in the database, so a copy of the database
//! alone is useless to an attacker.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The minimum number of characters. A shorter secret can be guessed.
const SHORTEST: usize = 32;

/// The keys for each purpose, derived from one secret. `Debug` does not reveal them.
pub struct InstanceSecret {
    signing: [u8; 32],
    succession: hmac::Key,
    sealing: RandomizedNonceKey,
}

impl std::fmt::Debug for InstanceSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InstanceSecret(***)")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(
        "the secret of the installation must have at least {SHORTEST} characters; `openssl rand -base64 48` generates one"
    )]
    TooShort,
    #[error("{0}")]
    File(String),
    #[error(
        "{0} is damaged: restore it from a backup. A new secret cannot read what was encrypted with the old one"
    )]
    Damaged(PathBuf),
    #[error("the data was encrypted with another installation secret, or is damaged")]
    Unsealed,
    #[error("the cryptographic library reported an error")]
    Refused,
}

impl InstanceSecret {
    /// Derives the keys from the setting, which must be the same on all replicas.
    pub fn from_text(text: &str) -> Result<Self, SecretError> {
        if text.len() < SHORTEST {
            return Err(SecretError::TooShort);
        }
        let key = Salt::new(HKDF_SHA256, b"unjank").extract(text.as_bytes());
        let derive = |purpose: &[u8]| -> Result<[u8; 32], SecretError> {
            let mut out = [0; 32];
            let info = [purpose];
            let expanded = key.expand(&info, HKDF_SHA256);
            expanded
                .and_then(|expanded| expanded.fill(&mut out))
                .map_err(|_| SecretError::Refused)?;
            Ok(out)
        };
        Ok(Self {
            signing: derive(b"sessions")?,
            succession: hmac::Key::new(hmac::HMAC_SHA256, &derive(b"succession")?),
            sealing: RandomizedNonceKey::new(&AES_256_GCM, &derive(b"sealing")?)
                .map_err(|_| SecretError::Refused)?,
        })
    }

    /// Derives the keys from a file that only its owner can read. Creates the file if it does not exist. Processes that do so at the same
    /// time have the same secret.
    pub fn from_file(path: &Path) -> Result<Self, SecretError> {
        let failed =
            |error: std::io::Error| SecretError::File(format!("{}: {error}", path.display()));
        if !path.try_exists().map_err(failed)? {
            let mut bytes = [0_u8; 48];
            aws_lc_rs::rand::fill(&mut bytes).map_err(|_| SecretError::Refused)?;
            create_private(path, &STANDARD.encode(bytes)).map_err(failed)?;
        }
        match std::fs::read_to_string(path) {
            Ok(text) if text.trim().len() < SHORTEST => Err(SecretError::Damaged(path.to_owned())),
            Ok(text) => Self::from_text(text.trim()),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                Err(SecretError::Damaged(path.to_owned()))
            }
            Err(error) => Err(failed(error)),
        }
    }

    pub(super) fn signing(&self) -> &[u8; 32] {
        &self.signing
    }

    /// Derives bytes from a text. Deterministic, but unpredictable without the secret.
    pub(super) fn successor(&self, text: &str) -> [u8; 32] {
        let mut bytes = [0; 32];
        let tag = hmac::sign(&self.succession, text.as_bytes());
        bytes.copy_from_slice(tag.as_ref());
        bytes
    }

    /// Encrypts a text for the database. `context` (such as the id of the row) is needed to decrypt it, so a sealed
    /// text that is moved to another row cannot be opened.
    pub fn seal(&self, context: &str, text: &str) -> Result<String, SecretError> {
        let mut bytes = text.as_bytes().to_vec();
        let nonce = self
            .sealing
            .seal_in_place_append_tag(Aad::from(context.as_bytes()), &mut bytes)
            .map_err(|_| SecretError::Refused)?;
        let mut sealed = nonce.as_ref().to_vec();
        sealed.append(&mut bytes);
        Ok(STANDARD.encode(sealed))
    }

    pub fn open(&self, context: &str, sealed: &str) -> Result<String, SecretError> {
        let sealed = STANDARD.decode(sealed).map_err(|_| SecretError::Unsealed)?;
        let (nonce, bytes) = sealed
            .split_at_checked(NONCE_LEN)
            .ok_or(SecretError::Unsealed)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SecretError::Unsealed)?;
        let mut bytes = bytes.to_vec();
        let opened = self
            .sealing
            .open_in_place(nonce, Aad::from(context.as_bytes()), &mut bytes)
            .map_err(|_| SecretError::Unsealed)?;
        String::from_utf8(opened.to_vec()).map_err(|_| SecretError::Unsealed)
    }
}

/// Creates the file, readable by its owner only, unless another process was first. The file has its name once all of it is on disk, so no
/// process reads a part of it, and sessions and sealed data survive a crash.
fn create_private(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let mut file = tempfile::Builder::new()
        .prefix(".secret-")
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {}
        other => drop(other?),
    }
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_text_opens_in_its_own_context_only() {
        let secret = InstanceSecret::from_text(&"s".repeat(32)).unwrap();
        let sealed = secret.seal("key-1", "the shop's secret").unwrap();
        assert!(!sealed.contains("shop"));
        assert_ne!(secret.seal("key-1", "the shop's secret").unwrap(), sealed);
        assert_eq!(secret.open("key-1", &sealed).unwrap(), "the shop's secret");
        assert!(secret.open("key-2", &sealed).is_err());
        let other = InstanceSecret::from_text(&"t".repeat(32)).unwrap();
        assert!(other.open("key-1", &sealed).is_err());
        assert!(secret.open("key-1", "").is_err());
        assert!(secret.open("key-1", "not base64!").is_err());
    }

    #[test]
    fn processes_that_start_at_the_same_time_have_the_same_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let together = std::sync::Barrier::new(8);
        let keys: Vec<[u8; 32]> = std::thread::scope(|scope| {
            let start = || {
                together.wait();
                *InstanceSecret::from_file(&path).unwrap().signing()
            };
            let started: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            let ended = started.into_iter().map(|thread| thread.join().unwrap());
            ended.collect()
        });
        assert!(keys.iter().all(|key| key == &keys[0]));
        // One that found no file just before another created it keeps the other's.
        create_private(&path, &"s".repeat(64)).unwrap();
        let kept = InstanceSecret::from_file(&path).unwrap();
        assert_eq!(kept.signing(), &keys[0]);
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, 1, "a temporary file is left");
    }

    #[test]
    fn the_file_is_private_and_reused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let first = InstanceSecret::from_file(&path).unwrap();
        let again = InstanceSecret::from_file(&path).unwrap();
        assert_eq!(first.signing(), again.signing());
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(&path).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
        assert!(!format!("{first:?}").contains(&std::fs::read_to_string(&path).unwrap()));
        for damage in [&b"short"[..], &[0xff; 64]] {
            std::fs::write(&path, damage).unwrap();
            let error = InstanceSecret::from_file(&path).unwrap_err().to_string();
            assert!(error.contains("secret is damaged"), "{error}");
        }
    }
}
