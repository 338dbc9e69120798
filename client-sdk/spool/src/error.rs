//! What can go wrong. Every message names the path and what to do.

use std::io;
use std::path::{Path, PathBuf};

use crate::Seq;

/// The log could not be opened. Nothing was lost.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The options contradict each other.
    #[error("the log's options do not fit together: {why}")]
    Options {
        /// What does not fit, and what to set.
        why: String,
    },
    /// Another [`crate::Log`] has the folder, in this process or in another.
    #[error(
        "the log in {} is in use by another process or another part of this one: close that one first", dir.display()
    )]
    InUse {
        /// The folder.
        dir: PathBuf,
    },
    /// A segment was written by a newer version of this crate. Nothing was changed.
    #[error(
        "{} has format version {version}, which is not known here: open it with a newer version, \
         or move the file away", path.display()
    )]
    Version {
        /// The segment.
        path: PathBuf,
        /// Its format version.
        version: u32,
    },
    /// The disk failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A record was not appended. The log stays usable.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The log holds all it may ([`crate::WhenFull::Refuse`]). The disk was not touched.
    #[error(
        "the log is full: {bytes} of {max_bytes} bytes are taken; \
         try again once records were read and trimmed, or raise max_bytes"
    )]
    Full {
        /// Bytes taken.
        bytes: u64,
        /// [`crate::Options::max_bytes`].
        max_bytes: u64,
    },
    /// The payload is longer than [`crate::Options::max_record_bytes`].
    #[error(
        "a record of {bytes} bytes is too large: the limit is {limit}; split it or raise max_record_bytes"
    )]
    TooLarge {
        /// Its length.
        bytes: u64,
        /// The limit.
        limit: u32,
    },
    /// The disk failed, for instance for lack of space.
    #[error("cannot {doing} {}: {source}; the record was not appended, try again later", path.display())]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A sync failed: the records appended since the last good one are given up and will never be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot sync {}: {source}; {lost_records} records appended since the last sync are given up, \
     append them again", path.display()
)]
pub struct SyncError {
    /// The file or folder.
    pub path: PathBuf,
    /// How many records were given up: those with a sequence number above [`durable`](Self::durable). Zero
    /// when a later sync or append could not finish cleaning up after an earlier failure.
    pub lost_records: u64,
    /// The last record that is durable; 0 if there was never one.
    pub durable: Seq,
    /// Why.
    pub source: io::Error,
}

/// An I/O error with what was being done to which file: the source of all three public errors.
#[derive(Debug)]
pub(crate) struct DiskError {
    pub(crate) doing: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// Says what was being done, where an `io::Error` says only why it failed.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, DiskError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, DiskError> {
        self.map_err(|source| DiskError {
            doing,
            path: path.to_owned(),
            source,
        })
    }
}

impl From<DiskError> for OpenError {
    fn from(
        DiskError {
            doing,
            path,
            source,
        }: DiskError,
    ) -> Self {
        Self::Io {
            doing,
            path,
            source,
        }
    }
}

impl From<DiskError> for AppendError {
    fn from(
        DiskError {
            doing,
            path,
            source,
        }: DiskError,
    ) -> Self {
        Self::Io {
            doing,
            path,
            source,
        }
    }
}

impl From<DiskError> for io::Error {
    fn from(
        DiskError {
            doing,
            path,
            source,
        }: DiskError,
    ) -> Self {
        Self::new(
            source.kind(),
            format!("cannot {doing} {}: {source}", path.display()),
        )
    }
}
