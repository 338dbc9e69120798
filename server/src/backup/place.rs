//! Where a set is kept: a folder, or a bucket with a folder on this machine for the copy that is made or restored.

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::bucket::BackupBucket;
use super::claim::Claim;
use super::files;
use crate::store::DurableFiles;

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
/// Is locked while a command uses the folder.
const LOCK: &str = "lock";
/// The extension of the records of claims. They stay until the bucket is clean, so that no backup forgets what another one has left there.
const CLAIM: &str = "claim";
/// The extension of a record that was being written, see `DurableFiles`.
const UNFINISHED: &str = "new";

/// A staged set. It is deleted at the end, also after a failure. The next command deletes what a killed one has left.
pub(super) struct Staging {
    folder: PathBuf,
    _lock: File,
}

impl Staging {
    /// Locks the folder.
    pub(super) fn take(below: &Path) -> anyhow::Result<Self> {
        let folder = below.join(STAGING);
        files::make_folder(&folder)?;
        let lock = lock(&folder)?.with_context(|| {
            format!(
                "another backup or restore uses {}: wait until it has ended, or choose another folder (--staging)",
                folder.display()
            )
        })?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// The folder of the set.
    pub(super) fn set(&self) -> PathBuf {
        self.folder.join(SET)
    }

    /// Deletes what a killed command has left, except records of claims, and creates an empty folder for a set.
    pub(super) fn renew(&self) -> anyhow::Result<()> {
        let set = self.set();
        files::remove_folder(&set)?;
        for unfinished in self.files_with(UNFINISHED)? {
            let removed = fs::remove_file(&unfinished);
            removed.with_context(|| format!("cannot delete {}", unfinished.display()))?;
        }
        files::make_folder(&set)
    }

    /// Returns the claims of uploads that have begun, and may have left something in a bucket.
    pub(super) fn claims(&self) -> anyhow::Result<Vec<Claim>> {
        let mut claims = Vec::new();
        for path in self.files_with(CLAIM)? {
            let record = fs::read(&path);
            let record = record.with_context(|| format!("cannot read {}", path.display()))?;
            let claim = serde_json::from_slice::<Claim>(&record);
            claims.push(claim.with_context(|| {
                format!(
                    "{} is damaged: delete it, and delete backups without backup.json from the bucket, which a killed backup has left",
                    path.display()
                )
            })?);
        }
        Ok(claims)
    }

    /// Returns the files with an extension.
    fn files_with(&self, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
        let failed = || format!("cannot read {}", self.folder.display());
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).with_context(failed)? {
            let path = entry.with_context(failed)?.path();
            if path.extension().is_some_and(|end| end == extension) {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// Records a claim, durably and before anything is uploaded.
    pub(super) fn record(&self, claim: &Claim) -> anyhow::Result<()> {
        let path = self.claim(claim);
        let written = DurableFiles::default().replace(&path, &serde_json::to_vec(claim)?);
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Deletes the record of a claim that has left nothing.
    pub(super) fn forget(&self, claim: &Claim) {
        if let Err(error) = fs::remove_file(self.claim(claim)) {
            tracing::warn!(%error, folder = %self.folder.display(), "cannot delete the record of an upload");
        }
    }

    fn claim(&self, claim: &Claim) -> PathBuf {
        self.folder.join(format!("{}.{CLAIM}", claim.id))
    }

    fn remove(&self) -> anyhow::Result<()> {
        files::remove_folder(&self.set())?;
        fs::remove_file(self.folder.join(LOCK))?;
        match fs::remove_dir(&self.folder) {
            // Records of claims stay.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => Ok(removed?),
        }
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

/// Locks a staging folder. Returns `None` if another command uses the folder, or has ended and deleted it meanwhile.
fn lock(folder: &Path) -> anyhow::Result<Option<File>> {
    let found = match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.with_context(|| format!("cannot read {}", folder.display()))?,
    };
    check_private(folder, &found)?;
    let path = folder.join(LOCK);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = match rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened.with_context(|| format!("cannot write {}", path.display()))?,
    };
    let lock = File::from(lock);
    // A command that ends deletes the file, maybe after this one has opened it.
    let is_current = || fs::metadata(&path).is_ok_and(|found| is_same(&found, &lock));
    let is_taken = lock.try_lock().is_ok() && is_current();
    Ok(is_taken.then_some(lock))
}

/// Fails unless the folder is one that only this user can use: another user could replace the set, or name files to delete.
fn check_private(folder: &Path, found: &fs::Metadata) -> anyhow::Result<()> {
    let is_own = found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0;
    anyhow::ensure!(
        found.is_dir() && is_own,
        "{} must be a folder of this user that no other user can use: change its owner and its permissions (chmod 700), or choose \
         another place (--staging)",
        folder.display()
    );
    Ok(())
}

fn is_same(found: &fs::Metadata, file: &File) -> bool {
    let own = file.metadata();
    own.is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_a_killed_command_left_is_deleted_and_its_claim_stays_until_it_is_forgotten()
    -> io::Result<()> {
        let below = tempfile::tempdir()?;
        let killed = Staging::take(below.path()).unwrap();
        killed.renew().unwrap();
        fs::write(killed.set().join("secret"), "x")?;
        let mut claim = Claim::to("s3://backups/one", Some("http://one"));
        killed.record(&claim).unwrap();
        claim.files = vec![PathBuf::from("secret")];
        killed.record(&claim).unwrap();
        assert!(Staging::take(below.path()).is_err(), "taken twice");
        fs::write(killed.claim(&claim).with_extension("new"), "{")?;
        killed._lock.unlock()?;

        let next = Staging::take(below.path()).unwrap();
        next.renew().unwrap();
        assert_eq!(files::files_below(&next.set()).unwrap().len(), 0);
        assert_eq!(next.claims().unwrap(), [claim.clone()]);
        drop(next);
        let last = Staging::take(below.path()).unwrap();
        assert_eq!(last.claims().unwrap(), [claim.clone()]);
        last.forget(&claim);
        assert!(last.claims().unwrap().is_empty());
        drop(last);
        assert_eq!(fs::read_dir(below.path())?.count(), 0);
        Ok(())
    }

    #[test]
    fn a_folder_that_another_command_has_just_deleted_is_in_use() -> io::Result<()> {
        let below = tempfile::tempdir()?;
        assert!(lock(&below.path().join(STAGING)).unwrap().is_none());
        Ok(())
    }

    #[test]
    fn a_folder_that_others_can_use_is_refused() -> io::Result<()> {
        let below = tempfile::tempdir()?;
        let folder = below.path().join(STAGING);
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o750))?;
        assert!(Staging::take(below.path()).is_err(), "readable for a group");
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        let other = below.path().join("other");
        symlink(&other, folder.join(LOCK))?;
        assert!(Staging::take(below.path()).is_err(), "the lock is a link");
        assert!(!other.exists(), "the target of a link was created");
        fs::remove_file(folder.join(LOCK))?;
        fs::rename(&folder, &other)?;
        symlink(&other, &folder)?;
        assert!(Staging::take(below.path()).is_err(), "the folder is a link");
        Ok(())
    }
}
