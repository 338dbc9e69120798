//! The options of a log, and their validation.

use std::path::PathBuf;

use crate::OpenError;
use crate::format::{SEGMENT_HEADER, framed};

/// The highest [`Options::max_record_bytes`]: 64 MiB.
pub const MAX_RECORD_BYTES: u32 = 64 << 20;

/// The options of a [`crate::Log`].
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder; created if missing. It belongs to one log, but files with other names in it are left alone.
    pub dir: PathBuf,
    /// Size in bytes at which a new segment is started. A segment is never larger than a quarter of
    /// [`max_bytes`](Self::max_bytes), because space is released in whole segments.
    pub segment_bytes: u64,
    /// Maximum size of all segments together, in bytes.
    pub max_bytes: u64,
    /// Maximum length of a payload, in bytes; at most [`MAX_RECORD_BYTES`], and small enough for a segment.
    pub max_record_bytes: u32,
    /// What happens when [`max_bytes`](Self::max_bytes) is reached.
    pub when_full: WhenFull,
    /// Rewrites the last two segments when the log is opened. If a process dies right after a failed sync, the page cache may hold records
    /// that are not on disk and that a later sync does not write. Rewriting them makes them durable.
    pub renew_when_opened: bool,
}

/// The behaviour of a full log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// Fails at once with [`crate::AppendError::Full`], without touching the disk.
    Refuse,
    /// Deletes the oldest segments, and counts their records in [`crate::DropReport`].
    DropOldest,
}

impl Options {
    /// Creates options with segments of 64 MiB and records of at most 1 MiB, for a log that rejects records when it is full.
    pub fn new(dir: impl Into<PathBuf>, max_bytes: u64) -> Self {
        Self {
            dir: dir.into(),
            segment_bytes: 64 << 20,
            max_bytes,
            max_record_bytes: 1 << 20,
            when_full: WhenFull::Refuse,
            renew_when_opened: false,
        }
    }

    /// Returns the size at which segments are actually started.
    pub(crate) fn effective_segment_bytes(&self) -> Result<u64, OpenError> {
        let refuse = |why: String| Err(OpenError::Options { why });
        if self.max_record_bytes > MAX_RECORD_BYTES {
            return refuse(format!(
                "max_record_bytes is {}, set it to at most {MAX_RECORD_BYTES}",
                self.max_record_bytes
            ));
        }
        let least = framed(self.max_record_bytes).saturating_add(SEGMENT_HEADER as u64);
        if self.segment_bytes < least {
            return refuse(format!(
                "segment_bytes is {}, but a record of max_record_bytes needs {least}",
                self.segment_bytes
            ));
        }
        if self.max_bytes / 4 < least {
            return refuse(format!(
                "max_bytes is {}, but has to hold four segments of at least {least} bytes each: \
                 raise it or lower max_record_bytes",
                self.max_bytes
            ));
        }
        Ok(self.segment_bytes.min(self.max_bytes / 4))
    }
}
