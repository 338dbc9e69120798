//! State shared by the writer, the readers and the trimmers: the table of segments, and their deletion.
//!
//! The table's lock is held only briefly, never during I/O. Deletions have their own lock.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Seq;
use crate::disk::{self, Files};
use crate::error::{DiskError, Doing};
use crate::format::SegmentName;
use crate::trimmed::TrimmedFile;

/// What was dropped to make room ([`crate::WhenFull::DropOldest`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropReport {
    /// Number of records that were not trimmed yet. Counted per segment, so exact except for damaged records.
    pub records: u64,
    /// Size of the deleted segments in bytes, including finished records.
    pub bytes: u64,
}

impl DropReport {
    pub(crate) fn add(&mut self, other: Self) {
        self.records = self.records.saturating_add(other.records);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The extent of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Size of the file, including the header.
    pub(crate) bytes: u64,
    pub(crate) records: u64,
    /// The number before the first record, while there are none.
    pub(crate) last_seq: Seq,
}

#[derive(Debug)]
pub(crate) struct Segment {
    /// Increases in reading order.
    pub(crate) id: u64,
    pub(crate) name: SegmentName,
    pub(crate) path: PathBuf,
    /// Records have numbers above this.
    pub(crate) floor: Seq,
    pub(crate) written: Extent,
    /// The part that readers may see.
    pub(crate) durable: Extent,
}

/// All segments, oldest first. The last one is appended to.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) segments: VecDeque<Segment>,
    next_id: u64,
    /// Size of all segments.
    pub(crate) bytes: u64,
    pub(crate) durable: Seq,
    pub(crate) trimmed: Seq,
}

impl Table {
    pub(crate) fn new(trimmed: Seq) -> Self {
        Self {
            segments: VecDeque::new(),
            next_id: 0,
            bytes: 0,
            durable: 0,
            trimmed,
        }
    }

    /// Adds a segment whose `extent` is durable. Returns its id.
    pub(crate) fn push(
        &mut self,
        dir: &Path,
        name: SegmentName,
        floor: Seq,
        extent: Extent,
    ) -> u64 {
        let id = self.next_id;
        self.next_id = id.saturating_add(1);
        self.bytes = self.bytes.saturating_add(extent.bytes);
        self.segments.push_back(Segment {
            id,
            name,
            path: dir.join(name.file_name()),
            floor,
            written: extent,
            durable: extent,
        });
        id
    }

    /// Sets how far a segment is written, and updates the sum.
    pub(crate) fn set_written(&mut self, id: u64, extent: Extent) {
        if let Some(segment) = self.segments.iter_mut().find(|segment| segment.id == id) {
            self.bytes = self
                .bytes
                .saturating_sub(segment.written.bytes)
                .saturating_add(extent.bytes);
            segment.written = extent;
        }
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.id == id)
    }

    /// Returns whether every record of the segment is durable and trimmed.
    pub(crate) fn is_done(&self, segment: &Segment) -> bool {
        segment.written == segment.durable && segment.written.last_seq <= self.trimmed
    }

    fn oldest_done(&self) -> Option<(u64, PathBuf)> {
        let oldest = self.segments.front().filter(|_| self.segments.len() > 1)?;
        self.is_done(oldest)
            .then(|| (oldest.id, oldest.path.clone()))
    }

    fn oldest_of_several(&self) -> Option<(u64, PathBuf)> {
        let oldest = self.segments.front().filter(|_| self.segments.len() > 1)?;
        Some((oldest.id, oldest.path.clone()))
    }

    /// Removes a segment. Returns what it contained.
    fn remove(&mut self, id: u64) -> DropReport {
        let Some(at) = self.segments.iter().position(|segment| segment.id == id) else {
            return DropReport::default();
        };
        let Some(Segment { written, .. }) = self.segments.remove(at) else {
            return DropReport::default();
        };
        self.bytes = self.bytes.saturating_sub(written.bytes);
        let not_done = written.last_seq.saturating_sub(self.trimmed);
        DropReport {
            records: written.records.min(not_done),
            bytes: written.bytes,
        }
    }
}

/// Held during a deletion.
#[derive(Debug)]
struct Deletion {
    /// Set when the log is closed, because another log may use the folder from then on.
    closed: bool,
    hint: TrimmedFile,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) files: Files,
    pub(crate) dir: PathBuf,
    table: Mutex<Table>,
    deletion: Mutex<Deletion>,
}

impl Shared {
    pub(crate) fn new(files: Files, dir: PathBuf, table: Table, hint: TrimmedFile) -> Self {
        Self {
            files,
            dir,
            table: Mutex::new(table),
            deletion: Mutex::new(Deletion {
                closed: false,
                hint,
            }),
        }
    }

    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deletion(&self) -> MutexGuard<'_, Deletion> {
        self.deletion.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn close(&self) {
        self.deletion().closed = true;
    }

    /// Deletes segments that are completely trimmed.
    pub(crate) fn delete_done(&self) -> Result<(), DiskError> {
        let deletion = self.deletion();
        self.delete_while(&deletion, &mut DropReport::default(), Table::oldest_done)
    }

    /// Deletes the oldest segment, unless it is the only one.
    pub(crate) fn drop_oldest(&self, dropped: &mut DropReport) -> Result<(), DiskError> {
        let deletion = self.deletion();
        let mut once = true;
        self.delete_while(&deletion, dropped, |table| {
            table
                .oldest_of_several()
                .filter(|_| std::mem::take(&mut once))
        })
    }

    /// Deletes the segments that `choose` returns until it returns none. Does not hold the table's lock during a deletion: a
    /// reader that finds a file missing continues with the next one.
    fn delete_while(
        &self,
        _: &Deletion,
        deleted: &mut DropReport,
        mut choose: impl FnMut(&Table) -> Option<(u64, PathBuf)>,
    ) -> Result<(), DiskError> {
        let mut any = false;
        loop {
            let Some((id, path)) = choose(&self.table()) else {
                break;
            };
            disk::remove(&self.files, &path)?;
            deleted.add(self.table().remove(id));
            any = true;
        }
        if any {
            disk::sync_dir(&self.files, &self.dir)?;
        }
        Ok(())
    }

    fn trim(&self, through: Seq) -> Result<(), DiskError> {
        let mut deletion = self.deletion();
        if deletion.closed {
            let closed = io::Error::other("the log is closed: trim before closing it");
            return Err(closed).doing("trim", &self.dir);
        }
        let moved = {
            let mut table = self.table();
            let through = through.min(table.durable);
            let moved = through > table.trimmed;
            table.trimmed = through.max(table.trimmed);
            moved.then_some(through)
        };
        // If the hint cannot be written, the space is released nevertheless: that is what a full or failing disk needs.
        let hinted = moved.map_or(Ok(()), |through| deletion.hint.write(through));
        self.delete_while(&deletion, &mut DropReport::default(), Table::oldest_done)?;
        hinted
    }
}

/// Releases space, from any thread.
#[derive(Debug, Clone)]
pub struct Trimmer {
    shared: Arc<Shared>,
}

impl Trimmer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Marks all records up to and including `through` as finished. They are not read again after a restart (unless the power
    /// fails right now), and segments that contain nothing else are deleted. The active segment stays; [`crate::Log::append`]
    /// starts a new one when all of its records are finished and that is worthwhile.
    ///
    /// A number beyond the last synced record counts as the last synced record. A number before an earlier trim has no effect.
    ///
    /// # Errors
    /// If a file could not be deleted (the next trim retries that), the folder could not be synced, or the log is closed.
    pub fn trim(&self, through: Seq) -> io::Result<()> {
        Ok(self.shared.trim(through)?)
    }

    /// Returns the highest number trimmed so far; 0 if there is none.
    pub fn trimmed(&self) -> Seq {
        self.shared.table().trimmed
    }
}
