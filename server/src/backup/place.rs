//! Where a set is kept: a folder, or a bucket with a folder on this machine for the copy that is made or restored.

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::bucket::BackupBucket;
use super::files;

/// Where a set is kept.
#[derive(Clone, Debug)]
pub enum Place {
    Folder(PathBuf),
    Bucket {
        bucket: BackupBucket,
        /// The folder below which the set is staged.
        staging: PathBuf,
    },
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::Bucket { bucket, .. } => f.write_str(bucket.url()),
        }
    }
}

/// The folder with everything that a backup to a bucket or a restore from one keeps on this machine.
const STAGING: &str = "backup-staging";
/// The set.
const SET: &str = "set";
/// Is locked while a command uses the folder. Contains the URL of the upload, once it has begun.
const LOCK: &str = "lock";

/// A staged set. It is deleted at the end, also after a failure. The next command deletes what a killed one has left.
pub(super) struct Staging {
    folder: PathBuf,
    lock: File,
}

impl Staging {
    /// Locks the folder.
    pub(super) fn take(below: &Path) -> anyhow::Result<Self> {
        let folder = below.join(STAGING);
        files::make_folder(&folder)?;
        let path = folder.join(LOCK);
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        // A command that ends deletes the file, maybe after this one has opened it.
        let is_current = || fs::metadata(&path).is_ok_and(|found| is_same(&found, &lock));
        anyhow::ensure!(
            lock.try_lock().is_ok() && is_current(),
            "another backup or restore uses {}: wait until it has ended, or choose another folder (--staging)",
            folder.display()
        );
        Ok(Self { folder, lock })
    }

    /// The folder of the set.
    pub(super) fn set(&self) -> PathBuf {
        self.folder.join(SET)
    }

    /// Returns the files that a killed backup has left, and the URL to which it uploaded them.
    pub(super) fn left(&self) -> anyhow::Result<Option<(String, Vec<PathBuf>)>> {
        let mut url = String::new();
        let read = (&self.lock).read_to_string(&mut url);
        read.with_context(|| format!("cannot read {}", self.folder.join(LOCK).display()))?;
        let files = files::files_below(&self.set())?;
        Ok((!url.is_empty()).then_some((url, files)))
    }

    /// Deletes what a killed command has left, and creates an empty folder for a set.
    pub(super) fn renew(&self) -> anyhow::Result<()> {
        let set = self.set();
        files::remove_folder(&set)?;
        self.lock
            .set_len(0)
            .with_context(|| format!("cannot write {}", self.folder.join(LOCK).display()))?;
        files::make_folder(&set)
    }

    /// Remembers that the set is being uploaded.
    pub(super) fn uploads_to(&self, url: &str) -> anyhow::Result<()> {
        let path = self.folder.join(LOCK);
        let written = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path)
            .and_then(|mut file| file.write_all(url.as_bytes()).map(|()| file))
            .and_then(|file| file.sync_all());
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    fn remove(&self) -> anyhow::Result<()> {
        files::remove_folder(&self.set())?;
        fs::remove_file(self.folder.join(LOCK))?;
        Ok(fs::remove_dir(&self.folder)?)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            tracing::warn!(
                error = format!("{error:#}"),
                folder = %self.folder.display(),
                "the next backup deletes this folder"
            );
        }
    }
}

fn is_same(found: &fs::Metadata, file: &File) -> bool {
    let own = file.metadata();
    own.is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_command_left_is_known_and_deleted_by_the_next() -> std::io::Result<()> {
        let below = tempfile::tempdir()?;
        let killed = Staging::take(below.path()).unwrap();
        killed.renew().unwrap();
        fs::write(killed.set().join("secret"), "x")?;
        killed.uploads_to("s3://backups/one").unwrap();
        assert!(Staging::take(below.path()).is_err(), "taken twice");
        killed.lock.unlock()?;

        let next = Staging::take(below.path()).unwrap();
        let left = ("s3://backups/one".to_owned(), vec![PathBuf::from("secret")]);
        assert_eq!(next.left().unwrap(), Some(left));
        next.renew().unwrap();
        assert_eq!(next.left().unwrap(), None);
        assert_eq!(files::files_below(&next.set()).unwrap().len(), 0);
        drop(next);
        assert_eq!(fs::read_dir(below.path())?.count(), 0);
        Ok(())
    }
}
