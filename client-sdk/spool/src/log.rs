//! The writer: appending and syncing. [`upkeep`] contains the rest of its work.

#[cfg(test)]
mod failing_disk;
mod upkeep;

use std::sync::Arc;

use crate::disk::{self, DirLock, SegmentFile};
use crate::file_system::{FileSystem, RealFileSystem};
use crate::format::{RecordHeader, SegmentName, framed};
use crate::reader::Reader;
use crate::recovery::{self, Opened, Settings};
use crate::shared::{DropReport, Extent, Shared, Trimmer};
use crate::trimmed::TrimmedFile;
use crate::{AppendError, OpenError, Options, Recovery, Seq, SyncError};

/// Maximum number of records per system call. Each takes two slices, and systems accept 1024.
const RECORDS_PER_WRITE: usize = 512;

/// The writer of a folder. There is only one at a time, across processes.
#[derive(Debug)]
pub struct Log {
    shared: Arc<Shared>,
    options: Options,
    segment_bytes: u64,
    tag: u32,
    next_seq: Seq,
    active: SegmentFile,
    active_id: u64,
    active_name: SegmentName,
    written: Extent,
    /// Full segments that were not synced before the next one was started.
    unsynced: Vec<(u64, SegmentFile)>,
    health: Health,
    /// What was dropped for an append that then failed. Reported with the next append.
    dropped: DropReport,
    _lock: DirLock,
}

/// The repair that has to precede the next append.
#[derive(Debug)]
enum Health {
    Good,
    /// A write failed, and so did truncating its remains.
    Overlong,
    /// A sync failed: all files have to be truncated to their durable part, and a new segment has to be started.
    Condemned,
}

/// An appended record. It is durable after the next [`Log::sync`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The sequence number of the record.
    pub seq: Seq,
    /// What was dropped to make room for it, and for earlier appends that failed.
    pub dropped: DropReport,
}

/// The result of appending several records.
#[derive(Debug)]
#[must_use = "it says which records were appended and why the others were not"]
pub struct AppendedAll {
    /// The sequence number of the first record; the others follow without gaps.
    pub first_seq: Seq,
    /// The number of appended records: the first ones of the list.
    pub count: usize,
    /// What was dropped to make room for them.
    pub dropped: DropReport,
    /// Why the next record was not appended. Later records were not tried.
    pub error: Option<AppendError>,
}

impl Log {
    /// Opens or creates the log, repairs the effects of a crash, and reads the whole log once to find its records.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(options: Options) -> Result<(Self, Recovery), OpenError> {
        Self::open_on(Arc::new(RealFileSystem), options)
    }

    /// The same, on another file system.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_on(
        files: Arc<dyn FileSystem>,
        options: Options,
    ) -> Result<(Self, Recovery), OpenError> {
        let segment_bytes = options.effective_segment_bytes()?;
        disk::create_dir(&files, &options.dir)?;
        let lock = DirLock::take(&files, &options.dir)?;
        let (hint, trimmed) = TrimmedFile::open(&files, &options.dir)?;
        let tag = u32::try_from(files.random() >> 32).unwrap_or_default();
        let opened = recovery::open(
            (&files, &options.dir),
            trimmed,
            tag,
            Settings {
                segment_bytes,
                renews: options.renew_when_opened,
            },
        )?;
        let Opened {
            table,
            active,
            recovery,
        } = opened;
        let next_seq = recovery.next_seq;
        let log = Self {
            shared: Arc::new(Shared::new(files, options.dir.clone(), table, hint)),
            options,
            segment_bytes,
            tag,
            next_seq,
            active: active.file,
            active_id: active.id,
            active_name: active.name,
            written: active.written,
            unsynced: Vec::new(),
            health: Health::Good,
            dropped: DropReport::default(),
            _lock: lock,
        };
        Ok((log, recovery))
    }

    /// Appends a record. It is not durable before [`sync`](Self::sync).
    ///
    /// # Errors
    /// If the record was not appended. Its number is not consumed then. See [`AppendError`].
    pub fn append(&mut self, payload: &[u8]) -> Result<Appended, AppendError> {
        let all = self.append_all(&[payload]);
        match all.error {
            Some(error) => {
                self.dropped = all.dropped;
                Err(error)
            }
            None => Ok(Appended {
                seq: all.first_seq,
                dropped: all.dropped,
            }),
        }
    }

    /// Appends records with as few system calls as possible, until one cannot be appended.
    pub fn append_all<P: AsRef<[u8]>>(&mut self, payloads: &[P]) -> AppendedAll {
        let mut all = AppendedAll {
            first_seq: self.next_seq,
            count: 0,
            dropped: std::mem::take(&mut self.dropped),
            error: None,
        };
        while let Some(rest) = payloads.get(all.count..).filter(|rest| !rest.is_empty()) {
            match self.append_run(rest, &mut all.dropped) {
                Ok(count) => all.count = all.count.saturating_add(count),
                Err(error) => {
                    all.error = Some(error);
                    break;
                }
            }
        }
        all
    }

    /// Makes everything appended so far durable and visible to readers. Returns the last durable sequence number.
    ///
    /// # Errors
    /// If the sync fails. What was appended since the last successful sync is lost, see [`SyncError`]. The log remains usable.
    pub fn sync(&mut self) -> Result<Seq, SyncError> {
        match self.repair().and_then(|()| self.sync_files()) {
            Ok(()) => Ok(self.publish()),
            Err(error) => {
                let lost = self.abandon_unsynced();
                // If this fails too, the next append or sync retries.
                drop(self.repair());
                Err(self.sync_error(error, lost))
            }
        }
    }

    /// Returns a reader of everything that is not trimmed.
    pub fn reader(&self) -> Reader {
        let from = self.shared.table().trimmed.saturating_add(1);
        self.reader_at(from)
    }

    /// Returns a reader from this sequence number on, including trimmed records that still exist.
    pub fn reader_at(&self, seq: Seq) -> Reader {
        Reader::new(Arc::clone(&self.shared), seq)
    }

    /// Returns a handle that releases space.
    pub fn trimmer(&self) -> Trimmer {
        Trimmer::new(Arc::clone(&self.shared))
    }

    /// Returns the size of all segments on disk, in bytes.
    pub fn bytes(&self) -> u64 {
        self.shared.table().bytes
    }

    /// Returns the number of segments.
    pub fn segments(&self) -> usize {
        self.shared.table().segments.len()
    }

    /// Returns the sequence number of the next record.
    pub fn next_seq(&self) -> Seq {
        self.next_seq
    }

    /// Returns the last durable sequence number; 0 if there has never been one.
    pub fn durable_seq(&self) -> Seq {
        self.shared.table().durable
    }

    /// Returns a lower bound of the numbers of all records still to be read; [`next_seq`](Self::next_seq) if there are none.
    pub fn oldest_seq(&self) -> Seq {
        let table = self.shared.table();
        let oldest = table
            .segments
            .front()
            .map_or(self.next_seq, |oldest| oldest.floor.saturating_add(1));
        oldest
            .max(table.trimmed.saturating_add(1))
            .min(self.next_seq)
    }

    /// Writes as many records as fit into the active segment, at least one.
    fn append_run<P: AsRef<[u8]>>(
        &mut self,
        payloads: &[P],
        dropped: &mut DropReport,
    ) -> Result<usize, AppendError> {
        self.repair()?;
        let Some(first) = payloads.first() else {
            return Ok(0);
        };
        let length = self.check_length(first.as_ref())?;
        let mut room = self.make_room(length, dropped)?;
        let mut records = Vec::with_capacity(payloads.len().min(RECORDS_PER_WRITE));
        let (mut extent, mut seq) = (self.written, self.next_seq);
        for payload in payloads.iter().take(RECORDS_PER_WRITE).map(AsRef::as_ref) {
            // A payload that is too large ends the run. The next run returns the error.
            let Ok(length) = self.check_length(payload) else {
                break;
            };
            let framed = framed(length);
            let Some(left) = room.checked_sub(framed) else {
                break;
            };
            room = left;
            let header = RecordHeader {
                seq,
                length,
                checksum: crc32c::crc32c(payload),
            };
            records.push((header.encode(self.active_name.tag), payload));
            extent.bytes = extent.bytes.saturating_add(framed);
            extent.records = extent.records.saturating_add(1);
            extent.last_seq = seq;
            seq = seq.saturating_add(1);
        }
        self.write(&records)?;
        self.written = extent;
        self.next_seq = seq;
        self.shared.table().set_written(self.active_id, extent);
        Ok(records.len())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.close();
    }
}
