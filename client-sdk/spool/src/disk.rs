//! The only place that touches the disk, so that a test can make every single operation fail.
//!
//! Nothing here decides anything: no retries, no knowledge of records.

#[cfg(test)]
pub(crate) mod fault;

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{DiskError, Doing, OpenError};
use crate::format::{SEGMENT_HEADER, SegmentName};

/// A segment open for writing.
#[derive(Debug)]
pub(crate) struct SegmentFile {
    file: File,
    path: PathBuf,
    /// Where the file's own position is; `None` after a failure, when nobody knows.
    position: Option<u64>,
}

impl SegmentFile {
    /// Makes a segment with nothing but its header, durably. A file of that name can only be left over from
    /// an attempt that failed, so it is overwritten.
    pub(crate) fn create(dir: &Path, name: SegmentName) -> Result<Self, DiskError> {
        let path = dir.join(name.file_name());
        let created = Self::create_at(&path, name).and_then(|segment| {
            sync_dir(dir)?;
            Ok(segment)
        });
        if created.is_err() {
            // Best effort: what stays is an empty segment, which the next open removes.
            drop(remove(&path));
        }
        created
    }

    fn create_at(path: &Path, name: SegmentName) -> Result<Self, DiskError> {
        let create = || {
            before(Operation::Create)?;
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .open(path)
        };
        let file = create().doing("create", path)?;
        let mut segment = Self {
            file,
            path: path.to_owned(),
            position: Some(0),
        };
        segment.write_header(name)?;
        Ok(segment)
    }

    pub(crate) fn open(path: &Path) -> Result<Self, DiskError> {
        let file = OpenOptions::new()
            .write(true)
            .open(path)
            .doing("open", path)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            position: None,
        })
    }

    /// Writes the header of an empty segment, durably.
    pub(crate) fn write_header(&mut self, name: SegmentName) -> Result<(), DiskError> {
        self.write(0, &mut [IoSlice::new(&name.header())])?;
        self.sync()
    }

    /// Writes all slices at `offset`, the end of the file. After an error part of them may be there.
    pub(crate) fn write(
        &mut self,
        offset: u64,
        slices: &mut [IoSlice<'_>],
    ) -> Result<(), DiskError> {
        let position = self.position.take();
        let written = self
            .try_write(position, offset, slices)
            .doing("write to", &self.path)?;
        self.position = Some(written);
        Ok(())
    }

    fn try_write(
        &mut self,
        position: Option<u64>,
        offset: u64,
        mut slices: &mut [IoSlice<'_>],
    ) -> io::Result<u64> {
        if position != Some(offset) {
            self.file.seek(SeekFrom::Start(offset))?;
        }
        let mut end = offset;
        while !slices.is_empty() {
            before_write(&mut self.file, slices)?;
            match self.file.write_vectored(slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    IoSlice::advance_slices(&mut slices, written);
                    end = end.saturating_add(written as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(end)
    }

    /// Cuts the file to `bytes`; not durable yet.
    pub(crate) fn cut(&mut self, bytes: u64) -> Result<(), DiskError> {
        self.position = None;
        before(Operation::Cut)
            .and_then(|()| self.file.set_len(bytes))
            .doing("cut", &self.path)
    }

    /// Makes what was written durable: `fdatasync`, on Apple systems `F_FULLFSYNC`.
    pub(crate) fn sync(&self) -> Result<(), DiskError> {
        before(Operation::Sync)
            .and_then(|()| self.file.sync_data())
            .doing("sync", &self.path)
    }
}

/// Fills `buffer` with up to `want` bytes from `offset`, in one read and without zeroing them first. What
/// the file does not have any more is zeros, which no record is made of.
pub(crate) fn read(
    mut file: &File,
    offset: u64,
    want: usize,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    buffer.clear();
    buffer.reserve(want);
    file.seek(SeekFrom::Start(offset))?;
    file.take(want as u64).read_to_end(buffer)?;
    buffer.resize(want, 0);
    Ok(())
}

/// Deletes a file; one that is gone already is fine.
pub(crate) fn remove(path: &Path) -> Result<(), DiskError> {
    match before(Operation::Remove).and_then(|()| fs::remove_file(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.doing("delete", path),
    }
}

/// Makes creations and deletions in a folder durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), DiskError> {
    let sync = || {
        before(Operation::SyncDir)?;
        match File::open(dir)?.sync_all() {
            // Some file systems cannot sync a folder and say so; they have nothing to sync then.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput
                ) =>
            {
                Ok(())
            }
            done => done,
        }
    };
    sync().doing("sync", dir)
}

/// Creates the folder if it is missing, durably.
pub(crate) fn create_dir(dir: &Path) -> Result<(), DiskError> {
    if dir.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(dir).doing("create", dir)?;
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_dir(parent),
        _ => Ok(()),
    }
}

/// A folder taken for one log.
#[derive(Debug)]
pub(crate) struct DirLock(File);

impl DirLock {
    pub(crate) fn take(dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join("lock");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .doing("create", &path)?;
        if flock::try_lock(&file).doing("lock", &path)? {
            Ok(Self(file))
        } else {
            Err(OpenError::InUse {
                dir: dir.to_owned(),
            })
        }
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a process being forked right now has a copy of it until it executes
        // its program, and the lock would stay until then.
        drop(flock::unlock(&self.0));
    }
}

#[cfg(not(target_os = "android"))]
mod flock {
    use std::fs::{File, TryLockError};
    use std::io;

    pub(super) fn try_lock(file: &File) -> io::Result<bool> {
        match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(super) fn unlock(file: &File) -> io::Result<()> {
        file.unlock()
    }
}

/// The standard library's lock answers "unsupported" on Android before Rust 1.98, although the system has it.
#[cfg(target_os = "android")]
mod flock {
    use std::fs::File;
    use std::io;

    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;

    pub(super) fn try_lock(file: &File) -> io::Result<bool> {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn unlock(file: &File) -> io::Result<()> {
        Ok(flock(file, FlockOperation::Unlock)?)
    }
}

/// What a test can make fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Cut,
    Sync,
    SyncDir,
    Remove,
    Hint,
}

#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "under test it fails when told to")]
#[inline]
pub(crate) fn before(_: Operation) -> io::Result<()> {
    Ok(())
}

#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "under test it fails when told to")]
#[inline]
fn before_write(_: &mut File, _: &[IoSlice<'_>]) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
pub(crate) use fault::{before, before_write};

/// The length a segment has when it holds no record.
pub(crate) const EMPTY: u64 = SEGMENT_HEADER as u64;
