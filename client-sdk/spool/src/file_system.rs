//! The operations of the machine that a log uses: files, folders and random numbers.
//!
//! Programs use [`RealFileSystem`]. A simulation can supply its own implementation and inject failures.

use std::any::Any;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Read an existing file.
    Read,
    /// Write an existing file.
    Write,
    /// Read and write a file, and create it if it is missing.
    ReadWrite,
    /// Write a file that is created or truncated.
    Create,
    /// Write a new file that only its owner can open. Fails if the file exists.
    CreatePrivate,
}

/// Files and folders, as a log needs them.
pub trait FileSystem: fmt::Debug + Send + Sync {
    /// Opens a file.
    ///
    /// # Errors
    /// The error of the system. Callers rely on `NotFound` and `AlreadyExists`.
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn OpenFile>>;

    /// Deletes a file.
    ///
    /// # Errors
    /// The error of the system. Callers rely on `NotFound`.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Renames a file and replaces an existing file of that name.
    ///
    /// # Errors
    /// The error of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Returns the files of a folder, in any order.
    ///
    /// # Errors
    /// The error of the system.
    fn files(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;

    /// Returns the length of a file in bytes.
    ///
    /// # Errors
    /// The error of the system.
    fn len(&self, path: &Path) -> io::Result<u64>;

    /// Creates a folder and its parents. Returns whether it was missing.
    ///
    /// # Errors
    /// The error of the system.
    fn create_dir(&self, dir: &Path) -> io::Result<bool>;

    /// Makes the names in a folder durable: creations, deletions and renames.
    ///
    /// # Errors
    /// The error of the system.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Locks a file, and creates it if it is missing. The lock is held until the returned guard is dropped. Returns `None` if another
    /// process or another log holds the lock.
    ///
    /// # Errors
    /// The error of the system.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>>;

    /// Returns an unpredictable random number.
    fn random(&self) -> u64;

    /// Returns whether operations may block the calling thread for long.
    fn may_block(&self) -> bool {
        true
    }
}

/// An open file.
pub trait OpenFile: fmt::Debug + Send + Sync {
    /// Replaces the contents of `buffer` with up to `want` bytes from `offset`. Reads fewer bytes at the end of the file.
    ///
    /// # Errors
    /// The error of the system.
    fn read_at(&self, offset: u64, want: usize, buffer: &mut Vec<u8>) -> io::Result<()>;

    /// Writes at `offset`, which is at most the length of the file. Returns the number of bytes written, which may be fewer than given.
    ///
    /// # Errors
    /// The error of the system.
    fn write_at(&mut self, offset: u64, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Truncates the file to `bytes`.
    ///
    /// # Errors
    /// The error of the system.
    fn set_len(&mut self, bytes: u64) -> io::Result<()>;

    /// Makes what was written durable: `fdatasync`, on Apple systems `F_FULLFSYNC`.
    ///
    /// # Errors
    /// The error of the system. After a failure, earlier writes may never become durable.
    fn sync(&self) -> io::Result<()>;
}

/// The file system of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFileSystem;

#[derive(Debug)]
struct RealFile {
    file: File,
    /// The file's own position after a write; `None` if it is unknown.
    position: Option<u64>,
}

impl FileSystem for RealFileSystem {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn OpenFile>> {
        let mut options = OpenOptions::new();
        match mode {
            Mode::Read => options.read(true),
            Mode::Write => options.write(true),
            Mode::ReadWrite => options.read(true).write(true).create(true).truncate(false),
            Mode::Create => options.write(true).create(true).truncate(true),
            Mode::CreatePrivate => private(options.write(true).create_new(true)),
        };
        let file = options.open(path)?;
        Ok(Box::new(RealFile {
            file,
            position: None,
        }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn files(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                files.push(entry.path());
            }
        }
        Ok(files)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn create_dir(&self, dir: &Path) -> io::Result<bool> {
        if dir.is_dir() {
            return Ok(false);
        }
        fs::create_dir_all(dir)?;
        Ok(true)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        match File::open(dir)?.sync_all() {
            // Some file systems cannot sync a folder and report that; there is nothing to sync then.
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
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        if flock::try_lock(&file)? {
            Ok(Some(Box::new(Lock(file))))
        } else {
            Ok(None)
        }
    }

    /// Uses the only random source in the standard library.
    fn random(&self) -> u64 {
        RandomState::new().build_hasher().finish()
    }
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600)
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

impl OpenFile for RealFile {
    fn read_at(&self, offset: u64, want: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
        let mut file = &self.file;
        buffer.clear();
        buffer.reserve(want);
        file.seek(SeekFrom::Start(offset))?;
        file.take(want as u64).read_to_end(buffer)?;
        Ok(())
    }

    fn write_at(&mut self, offset: u64, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.position.take() != Some(offset) {
            self.file.seek(SeekFrom::Start(offset))?;
        }
        let written = self.file.write_vectored(slices)?;
        self.position = Some(offset.saturating_add(written as u64));
        Ok(written)
    }

    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        self.position = None;
        self.file.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that is being forked right now has a copy of it until it executes its
        // program, and would keep the lock until then.
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

/// Before Rust 1.98, the standard library's lock returns "unsupported" on Android, although the system has it.
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
