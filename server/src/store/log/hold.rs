//! While a backup copies the store, drained segments stay in the log. Then the log has every record that ClickHouse's part of the backup
//! may lack.
//!
//! A hold is a lock on a file in the log's folder. The system releases it when the process of the backup ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const FILE: &str = "backup.lock";
/// A server deletes segments within this time.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// A hold of a backup.
#[derive(Debug)]
pub struct LogHold {
    folder: PathBuf,
    files: HeldLog,
    _lock: File,
}

/// The files of a log that a backup copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLog {
    /// Segments, oldest first.
    pub segments: Vec<PathBuf>,
    /// The id of the log, and the hint up to which record it is drained.
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
    /// Keeps all records of the log in a folder. Waits while a server deletes segments. Returns `None` if another backup holds the log.
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
            _lock: lock,
        }))
    }

    /// Returns the files of the log now, or `None` if the server had to delete records.
    pub fn files(&self) -> io::Result<Option<HeldLog>> {
        let now = HeldLog::of(&self.folder)?;
        // The first segment may have been drained completely before the hold.
        let mut needed = self.files.segments.iter().skip(1);
        let is_whole =
            now.hint == self.files.hint && needed.all(|segment| now.segments.contains(segment));
        Ok(is_whole.then_some(now))
    }
}

/// Creates the lock file, so that the server may open it whichever user makes the first backup.
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
    /// A backup that begins now waits until the permission is dropped. Without a lock file, there is no backup.
    Granted(Option<File>),
    Held,
}

impl Release {
    pub(super) fn ask(folder: &Path) -> Self {
        // A full disk may have no room for the file, but it needs the room of the segments.
        let Ok(file) = lock_file(folder) else {
            return Self::Granted(None);
        };
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Self::Held,
            _ => Self::Granted(Some(file)),
        }
    }
}
