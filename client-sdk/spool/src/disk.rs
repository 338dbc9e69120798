//! The only module of the spool that touches the disk, so that a test can make every single operation fail.
//!
//! Makes no decisions: it does not retry and does not know about records.

#[cfg(test)]
pub(crate) mod fault;

use std::any::Any;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{DiskError, Doing, OpenError};
use crate::file_system::{FileSystem, Mode, OpenFile};
use crate::format::{SEGMENT_HEADER, SegmentName};

/// The file system of a log.
pub(crate) type Files = Arc<dyn FileSystem>;

/// A segment open for writing.
#[derive(Debug)]
pub(crate) struct SegmentFile {
    file: Box<dyn OpenFile>,
    path: PathBuf,
}

impl SegmentFile {
    /// Creates a segment that contains only its header, durably. An existing file of that name can only be left over from a
    /// failed attempt, so it is overwritten.
    pub(crate) fn create(files: &Files, dir: &Path, name: SegmentName) -> Result<Self, DiskError> {
        let path = dir.join(name.file_name());
        let created = Self::create_at(files, &path, name).and_then(|segment| {
            sync_dir(files, dir)?;
            Ok(segment)
        });
        if created.is_err() {
            // Best effort: what remains is an empty segment, which the next open removes.
            drop(remove(files, &path));
        }
        created
    }

    fn create_at(files: &Files, path: &Path, name: SegmentName) -> Result<Self, DiskError> {
        let file = before(Operation::Create)
            .and_then(|()| files.open(path, Mode::Create))
            .doing("create", path)?;
        let mut segment = Self {
            file,
            path: path.to_owned(),
        };
        segment.write_header(name)?;
        Ok(segment)
    }

    pub(crate) fn open(files: &Files, path: &Path) -> Result<Self, DiskError> {
        Ok(Self {
            file: files.open(path, Mode::Write).doing("open", path)?,
            path: path.to_owned(),
        })
    }

    /// Writes the header of an empty segment, durably.
    pub(crate) fn write_header(&mut self, name: SegmentName) -> Result<(), DiskError> {
        self.write(0, &mut [IoSlice::new(&name.header())])?;
        self.sync()
    }

    /// Writes all slices at `offset`, the end of the file. After an error, part of them may be on disk.
    pub(crate) fn write(
        &mut self,
        offset: u64,
        slices: &mut [IoSlice<'_>],
    ) -> Result<(), DiskError> {
        write_all(&mut *self.file, offset, slices).doing("write to", &self.path)
    }

    /// Rewrites the first `bytes` of the file with their current contents.
    pub(crate) fn renew(&mut self, files: &Files, bytes: u64) -> Result<(), DiskError> {
        const STEP: u64 = 1 << 20;
        let reader = files
            .open(&self.path, Mode::Read)
            .doing("open", &self.path)?;
        let mut buffer = Vec::new();
        let mut offset = 0;
        while offset < bytes {
            let want = usize::try_from(STEP.min(bytes.saturating_sub(offset))).unwrap_or_default();
            reader
                .read_at(offset, want, &mut buffer)
                .doing("read", &self.path)?;
            if buffer.is_empty() {
                break;
            }
            self.write(offset, &mut [IoSlice::new(&buffer)])?;
            offset = offset.saturating_add(buffer.len() as u64);
        }
        Ok(())
    }

    /// Truncates the file to `bytes`; not durable yet.
    pub(crate) fn cut(&mut self, bytes: u64) -> Result<(), DiskError> {
        before(Operation::Cut)
            .and_then(|()| self.file.set_len(bytes))
            .doing("truncate", &self.path)
    }

    /// Makes what was written durable.
    pub(crate) fn sync(&self) -> Result<(), DiskError> {
        before(Operation::Sync)
            .and_then(|()| self.file.sync())
            .doing("sync", &self.path)
    }
}

fn write_all(
    file: &mut dyn OpenFile,
    offset: u64,
    mut slices: &mut [IoSlice<'_>],
) -> io::Result<()> {
    let mut end = offset;
    while !slices.is_empty() {
        before_write(file, end, slices)?;
        match file.write_at(end, slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                IoSlice::advance_slices(&mut slices, written);
                end = end.saturating_add(written as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Fills `buffer` with `want` bytes from `offset` without zeroing it first. Bytes beyond the end of the file read as zeros, which
/// are never part of a record.
pub(crate) fn read(
    file: &dyn OpenFile,
    offset: u64,
    want: usize,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    file.read_at(offset, want, buffer)?;
    buffer.resize(want, 0);
    Ok(())
}

/// Deletes a file. A missing file is not an error.
pub(crate) fn remove(files: &Files, path: &Path) -> Result<(), DiskError> {
    match before(Operation::Remove).and_then(|()| files.remove(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.doing("delete", path),
    }
}

/// Makes creations and deletions in a folder durable.
pub(crate) fn sync_dir(files: &Files, dir: &Path) -> Result<(), DiskError> {
    before(Operation::SyncDir)
        .and_then(|()| files.sync_dir(dir))
        .doing("sync", dir)
}

/// Creates the folder durably if it is missing.
pub(crate) fn create_dir(files: &Files, dir: &Path) -> Result<(), DiskError> {
    let was_missing = files.create_dir(dir).doing("create", dir)?;
    match dir.parent() {
        Some(parent) if was_missing && !parent.as_os_str().is_empty() => sync_dir(files, parent),
        _ => Ok(()),
    }
}

/// Exclusive ownership of a folder for one log.
pub(crate) struct DirLock(#[expect(dead_code, reason = "held")] Box<dyn Any + Send + Sync>);

impl DirLock {
    pub(crate) fn take(files: &Files, dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join("lock");
        match files.lock(&path).doing("lock", &path)? {
            Some(lock) => Ok(Self(lock)),
            None => Err(OpenError::InUse {
                dir: dir.to_owned(),
            }),
        }
    }
}

impl std::fmt::Debug for DirLock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("DirLock")
    }
}

/// The operations that a test can make fail.
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
#[expect(clippy::unnecessary_wraps, reason = "under test it fails on request")]
#[inline]
pub(crate) fn before(_: Operation) -> io::Result<()> {
    Ok(())
}

#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "under test it fails on request")]
#[inline]
fn before_write(_: &mut dyn OpenFile, _: u64, _: &[IoSlice<'_>]) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
pub(crate) use fault::{before, before_write};

/// The length a segment has when it holds no record.
pub(crate) const EMPTY: u64 = SEGMENT_HEADER as u64;
