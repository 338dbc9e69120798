//! The writer: appending and syncing. What else it has to do is in [`upkeep`].

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

/// Records written by one system call: two slices each, and systems take 1024.
const RECORDS_PER_WRITE: usize = 512;

/// The writer of a folder: one at a time, across processes.
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
    /// Segments that were full before they were synced.
    unsynced: Vec<(u64, SegmentFile)>,
    health: Health,
    /// What went for an append that then failed: reported with the next one.
    dropped: DropReport,
    _lock: DirLock,
}

/// What has to be done before anything can be appended.
#[derive(Debug)]
enum Health {
    Good,
    /// A write failed, and cutting its remains off as well.
    Overlong,
    /// A sync failed: all files are to be cut to what is durable, and a segment is to be started.
    Condemned,
}

/// A record was appended; it is durable after the next [`Log::sync`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its number.
    pub seq: Seq,
    /// What had to go for it, and for appends before it that failed.
    pub dropped: DropReport,
}

/// What became of several records.
#[derive(Debug)]
#[must_use = "it says which records were appended and why the others were not"]
pub struct AppendedAll {
    /// The number of the first; the others follow without gaps.
    pub first_seq: Seq,
    /// How many were appended: the first ones.
    pub count: usize,
    /// What had to go for them.
    pub dropped: DropReport,
    /// Why the record after them was not appended. Those behind it were not tried.
    pub error: Option<AppendError>,
}

impl Log {
    /// Opens or creates the log, repairs what a crash left, and reads all of it once to know what is there.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(options: Options) -> Result<(Self, Recovery), OpenError> {
        Self::open_on(Arc::new(RealFileSystem), options)
    }

    /// The same on another file system.
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

    /// Appends a record, not durable before [`sync`](Self::sync).
    ///
    /// # Errors
    /// The record was not appended and its number not consumed; see [`AppendError`].
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

    /// Appends records with as few system calls as possible, up to the first that cannot be appended.
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

    /// Makes everything appended so far durable and visible to readers. Returns the last durable number.
    ///
    /// # Errors
    /// What was appended since the last good sync is lost, see [`SyncError`]. The log stays usable.
    pub fn sync(&mut self) -> Result<Seq, SyncError> {
        match self.repair().and_then(|()| self.sync_files()) {
            Ok(()) => Ok(self.publish()),
            Err(error) => {
                let lost = self.condemn();
                // If this fails too, the next append or sync tries again.
                drop(self.repair());
                Err(self.sync_error(error, lost))
            }
        }
    }

    /// A reader of everything that is not trimmed.
    pub fn reader(&self) -> Reader {
        let from = self.shared.table().trimmed.saturating_add(1);
        self.reader_at(from)
    }

    /// A reader from this number on, trimmed or not, as far as it is still there.
    pub fn reader_at(&self, seq: Seq) -> Reader {
        Reader::new(Arc::clone(&self.shared), seq)
    }

    /// A handle that gives space back.
    pub fn trimmer(&self) -> Trimmer {
        Trimmer::new(Arc::clone(&self.shared))
    }

    /// Bytes all segments take on disk.
    pub fn bytes(&self) -> u64 {
        self.shared.table().bytes
    }

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        self.shared.table().segments.len()
    }

    /// The number the next record will get.
    pub fn next_seq(&self) -> Seq {
        self.next_seq
    }

    /// The last durable number; 0 if there was never one.
    pub fn durable_seq(&self) -> Seq {
        self.shared.table().durable
    }

    /// No record that is still to be read has a lower number; equal to [`next_seq`](Self::next_seq) if none is.
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
            // One that is too large ends the run; the next run says so.
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
