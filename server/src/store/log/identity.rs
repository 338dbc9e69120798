//! The identity of a log: a random UUID in the file `identity` next to the segments. It is created before the first append.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context;
use uuid::Uuid;

use crate::store::durable_file::DurableFiles;

/// Reads the identity of the log in `dir`, or creates one. The caller holds the lock of the folder.
pub(super) fn load(files: &DurableFiles, dir: &Path) -> anyhow::Result<Uuid> {
    let path = dir.join("identity");
    match files.read(&path) {
        Ok(bytes) => parse(&bytes).with_context(|| {
            format!(
                "{} is damaged: it must hold the UUID of this ingest log. Restore it from a backup of the same folder, \
                 or delete it to give the log a new identity",
                path.display()
            )
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let random = uuid::Builder::from_random_bytes(files.random_bytes());
            let identity = random.into_uuid();
            files
                .replace(&path, format!("{identity}\n").as_bytes())
                .with_context(|| format!("{} cannot be written", path.display()))?;
            Ok(identity)
        }
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

fn parse(bytes: &[u8]) -> anyhow::Result<Uuid> {
    let identity: Uuid = std::str::from_utf8(bytes)?.trim().parse()?;
    anyhow::ensure!(!identity.is_nil(), "the UUID is nil");
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn load(dir: &Path) -> anyhow::Result<Uuid> {
        super::load(&DurableFiles::default(), dir)
    }

    #[test]
    fn the_identity_is_created_once_and_never_changes() {
        let folder = tempfile::tempdir().unwrap();
        let identity = load(folder.path()).unwrap();
        assert_eq!(load(folder.path()).unwrap(), identity);
        let text = fs::read_to_string(folder.path().join("identity")).unwrap();
        assert_eq!(text, format!("{identity}\n"));
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "a temporary file is left: {left:?}");
        let other = tempfile::tempdir().unwrap();
        assert_ne!(load(other.path()).unwrap(), identity);
    }

    #[test]
    fn a_temporary_file_left_by_a_crash_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("identity.new"), b"half a").unwrap();
        let identity = load(folder.path()).unwrap();
        assert_eq!(load(folder.path()).unwrap(), identity);
    }

    #[test]
    fn a_damaged_identity_is_an_error_with_instructions() {
        let folder = tempfile::tempdir().unwrap();
        let nil = Uuid::nil().to_string();
        for damaged in [&b""[..], b"\xff\xfe", b"not a uuid", nil.as_bytes()] {
            fs::write(folder.path().join("identity"), damaged).unwrap();
            let error = load(folder.path()).unwrap_err().to_string();
            assert!(error.contains("identity is damaged"), "{error}");
            assert!(error.contains("Restore it from a backup"), "{error}");
        }
    }
}
