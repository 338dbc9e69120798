//! What the writer, the readers and the trimmers share: the table of segments, and their deletion.
//!
//! The table's lock is held for moments, never during I/O. Deletions have a lock of their own.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Seq;
use crate::disk::{self, Files};
use crate::error::{DiskError, Doing};
use crate::format::SegmentName;
use crate::trimmed::TrimmedFile;

/// What was given up to make room ([`crate::WhenFull::DropOldest`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropReport {
    /// Records that were not trimmed yet. Counted per segment, so exact up to records that were damaged.
    pub records: u64,
    /// Bytes of the deleted segments, done records included.
    pub bytes: u64,
}

impl DropReport {
    pub(crate) fn add(&mut self, other: Self) {
        self.records = self.records.saturating_add(other.records);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// How far a segment goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Of the file, header included.
    pub(crate) bytes: u64,
    pub(crate) records: u64,
    /// The number before the first one while there are no records.
    pub(crate) last_seq: Seq,
}

#[derive(Debug)]
pub(crate) struct Segment {
    /// Counts up in the order of reading.
    pub(crate) id: u64,
    pub(crate) name: SegmentName,
    pub(crate) path: PathBuf,
    /// Records are numbered above this.
    pub(crate) floor: Seq,
    pub(crate) written: Extent,
    /// The part a reader may see.
    pub(crate) durable: Extent,
}

/// All segments, oldest first; the last is the one appended to.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) segments: VecDeque<Segment>,
    next_id: u64,
    /// Bytes of all segments.
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

    /// Adds a segment whose `extent` is durable; returns its id.
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

    /// Changes how far a segment is written and keeps the sum right.
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

    /// Is every record of the segment durable and trimmed?
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

    /// Forgets a segment; says what was in it.
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

/// Held by whoever deletes.
#[derive(Debug)]
struct Deletion {
    /// Set when the log is closed: the folder may belong to another one from then on.
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

    /// Deletes what is trimmed.
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

    /// Deletes what `choose` names until it names nothing. The lock of the table is not held meanwhile: a
    /// reader that finds a file gone goes on to the next.
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
            let closed = io::Error::other("the log was closed; trim before closing it");
            return Err(closed).doing("trim", &self.dir);
        }
        let moved = {
            let mut table = self.table();
            let through = through.min(table.durable);
            let moved = through > table.trimmed;
            table.trimmed = through.max(table.trimmed);
            moved.then_some(through)
        };
        // The hint comes second in importance: a disk too full or too broken for it still has to be emptied.
        let hinted = moved.map_or(Ok(()), |through| deletion.hint.write(through));
        self.delete_while(&deletion, &mut DropReport::default(), Table::oldest_done)?;
        hinted
    }
}

/// Gives space back, from any thread.
#[derive(Debug, Clone)]
pub struct Trimmer {
    shared: Arc<Shared>,
}

impl Trimmer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Says that all records up to and including `through` are done: they are not read again after a restart
    /// (unless the power fails right now), and segments that hold nothing else are deleted. The segment being
    /// written is left; [`crate::Log::append`] starts a new one once it is all done and worth it.
    ///
    /// Numbers beyond the last synced record mean the last synced record; numbers behind an earlier trim
    /// change nothing.
    ///
    /// # Errors
    /// A file could not be deleted (it will be tried again at the next trim), the folder could not be synced,
    /// or the log was closed.
    pub fn trim(&self, through: Seq) -> io::Result<()> {
        Ok(self.shared.trim(through)?)
    }

    /// The highest number trimmed so far; 0 if nothing was.
    pub fn trimmed(&self) -> Seq {
        self.shared.table().trimmed
    }
}
