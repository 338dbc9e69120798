//! A backup holds the log: the server keeps drained segments, so that the log has every record that the copied tables may lack.
//!
//! A hold is a lock on a file in the log's folder. The system releases the lock when the process of the backup ends or is killed.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const FILE: &str = "backup.lock";
/// How long a hold waits for a server that is deleting segments.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// Keeps drained records in the log until it is dropped.
#[derive(Debug)]
pub struct LogHold {
    folder: PathBuf,
    files: HeldLog,
    lock: File,
}

/// The files of a log that a backup copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLog {
    /// Segments, oldest first.
    pub segments: Vec<PathBuf>,
    /// The id of the log, and the hint: the number of the last drained record.
    pub others: Vec<PathBuf>,
    hint: Option<Vec<u8>>,
}

impl HeldLog {
    fn of(folder: &Path) -> io::Result<Self> {
        let mut segments = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == SEGMENT)
            {
                segments.push(path);
            }
        }
        segments.sort();
        let others = [IDENTITY, HINT].map(|name| folder.join(name));
        let hint = match std::fs::read(folder.join(HINT)) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            segments,
            others: others.into_iter().filter(|path| path.exists()).collect(),
            hint,
        })
    }
}

const SEGMENT: &str = "segment";
const IDENTITY: &str = "identity";
const HINT: &str = "trimmed";

impl LogHold {
    /// Holds the log in a folder. Returns `None` if another backup holds it.
    pub fn take(folder: &Path) -> io::Result<Option<Self>> {
        let lock = lock_file(folder)?;
        let begun = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(Some(Self {
            folder: folder.to_owned(),
            files: HeldLog::of(folder)?,
            lock,
        }))
    }

    /// Lists the files of the log. Returns `None` if the server had to delete records despite the hold. Fails if the folder was replaced: a log
    /// from an older copy of the folder lacks records that the copied tables lack, too.
    pub fn files(&self) -> io::Result<Option<HeldLog>> {
        let held = self.lock.metadata()?;
        let there = self.folder.join(FILE).metadata();
        let is_same = |there: Metadata| (held.dev(), held.ino()) == (there.dev(), there.ino());
        if !there.is_ok_and(is_same) {
            return Err(io::Error::other(
                "the data folder was replaced during the backup: start the backup again",
            ));
        }
        let now = HeldLog::of(&self.folder)?;
        // The first segment may have been drained completely before the hold.
        let mut needed = self.files.segments.iter().skip(1);
        let is_whole =
            now.hint == self.files.hint && needed.all(|segment| now.segments.contains(segment));
        Ok(is_whole.then_some(now))
    }
}

/// Creates the lock file as the server's user. Otherwise, a first backup by root would create a file that the server cannot open.
pub(super) fn prepare(folder: &Path) {
    // The log of a simulation has no folder.
    if let Err(error) = lock_file(folder)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, folder = %folder.display(), "cannot create the lock for backups: backups may fail");
    }
}

fn lock_file(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    options.open(folder.join(FILE))
}

/// Whether a server may delete segments.
pub(super) enum Release {
    /// The server may delete segments until it drops the lock. `None` if the lock file cannot be opened.
    Granted(Option<File>),
    Held,
}

impl Release {
    pub(super) fn ask(folder: &Path) -> Self {
        // On a full disk, creating the file may fail. The server must delete segments all the same.
        let Ok(file) = lock_file(folder) else {
            return Self::Granted(None);
        };
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Self::Held,
            _ => Self::Granted(Some(file)),
        }
    }
}
