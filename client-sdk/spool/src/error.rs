//! Errors. Every message names the path and what to do.

use std::io;
use std::path::{Path, PathBuf};

use crate::Seq;

/// Why the log could not be opened. Nothing was lost.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The options contradict each other.
    #[error("the log's options are inconsistent: {why}")]
    Options {
        /// Which options conflict, and what to set.
        why: String,
    },
    /// Another [`crate::Log`] uses the folder, in this process or in another one.
    #[error(
        "the log in {} is in use by another process, or elsewhere in this one: close it there first", dir.display()
    )]
    InUse {
        /// The folder.
        dir: PathBuf,
    },
    /// A segment was written by a newer version of this crate. Nothing was changed.
    #[error(
        "{} has format version {version}, which this version cannot read: open it with a newer version, \
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
        /// The error of the system.
        source: io::Error,
    },
}

/// Why a record was not appended. The log remains usable.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The log has reached its maximum size ([`crate::WhenFull::Refuse`]). The disk was not touched.
    #[error(
        "the log is full: {bytes} of {max_bytes} bytes are in use; \
         retry after records have been read and trimmed, or raise max_bytes"
    )]
    Full {
        /// Bytes in use.
        bytes: u64,
        /// [`crate::Options::max_bytes`].
        max_bytes: u64,
    },
    /// The payload is longer than [`crate::Options::max_record_bytes`].
    #[error(
        "a record of {bytes} bytes is too large: the limit is {limit}; split it or raise max_record_bytes"
    )]
    TooLarge {
        /// The length of the payload.
        bytes: u64,
        /// The limit.
        limit: u32,
    },
    /// The disk failed, for instance for lack of space.
    #[error("cannot {doing} {}: {source}; the record was not appended: retry later", path.display())]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Why a sync failed. The records appended since the last successful one are given up and will never be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot sync {}: {source}; {lost_records} records appended since the last sync are lost: \
     append them again", path.display()
)]
pub struct SyncError {
    /// The file or folder.
    pub path: PathBuf,
    /// How many records were given up: those with a sequence number above [`durable`](Self::durable). Zero if a later sync or
    /// append could not finish cleaning up after an earlier failure.
    pub lost_records: u64,
    /// The last record that is durable; 0 if there has never been one.
    pub durable: Seq,
    /// The error of the system.
    pub source: io::Error,
}

/// An I/O error with the operation and the file: the source of all three public errors.
#[derive(Debug)]
pub(crate) struct DiskError {
    pub(crate) doing: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// Adds the operation, because an `io::Error` contains only the reason of the failure.
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
