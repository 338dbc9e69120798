//! The ingest log. Requests append records, one sync covers all waiting appends, and then the requests are acknowledged.
//!
//! One thread owns the log and does its disk I/O. The queue to the thread is bounded. If the queue is full, appends fail with [`LogError::Busy`].

pub(super) mod disk;
mod hold;
mod identity;
mod probe;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use unjank_spool::{Log, Options, Reader, Recovery, Seq, Trimmer, WhenFull};
use uuid::Uuid;

pub(super) use self::disk::Disk;
use self::disk::{Append, Command};
use self::hold::Release;
pub use self::hold::{HeldLog, LogHold};
use super::durable_file::DurableFiles;
use crate::metrics::LogMetrics;
use crate::records::record::Record;

#[derive(Clone, Debug)]
pub struct LogSettings {
    pub dir: PathBuf,
    pub max_bytes: u64,
    pub max_record_bytes: u32,
    /// Appends are rejected below this much free space, because ClickHouse needs room to drain the log.
    pub min_free_bytes: u64,
}

/// Why a record was not acknowledged. The record is not in the log, except possibly after [`LogError::Unknown`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum LogError {
    #[error("the ingest log is full because ClickHouse does not accept events: retry later")]
    Full,
    #[error("the server's disk is nearly full: retry later")]
    DiskFull,
    #[error("too many batches wait for the disk: retry later")]
    Busy,
    #[error("the batch cannot be written to disk now: {0}")]
    Failed(String),
    /// The only error after which the record may be in the log.
    #[error("the ingest log stopped before it answered: send the batch again")]
    Unknown,
    #[error("the batch is too large for the ingest log: split it")]
    TooLarge,
}

/// A handle to the log, shared by all requests and the writer.
#[derive(Clone)]
pub struct IngestLog(Arc<Inner>);

struct Inner {
    files: DurableFiles,
    dir: PathBuf,
    identity: Uuid,
    durable_at_open: Seq,
    queue: mpsc::Sender<Command>,
    reader: Mutex<Reader>,
    trimmer: Trimmer,
    /// When the disk last answered a probe.
    probed: Mutex<Option<Instant>>,
    state: Arc<State>,
}

/// The state that the log's thread shares with the handles.
struct State {
    /// The last durable record. The channel stays open after the thread has ended, so that the writer can drain the rest.
    durable: watch::Sender<Seq>,
    /// Bytes of payload that are durable and not drained.
    pending_bytes: AtomicU64,
    /// The last drained record.
    drained: AtomicU64,
    full: AtomicBool,
    /// Whether the last write to the disk succeeded, or why it failed.
    verdict: watch::Sender<Result<(), &'static str>>,
    /// Whether a probe is in the queue.
    probe_waits: AtomicBool,
    /// Whether segments were deleted although a backup held them.
    hold_broken: AtomicBool,
    /// A hold of a simulated backup.
    #[cfg(test)]
    is_held: AtomicBool,
    /// Cancelled when the thread has ended.
    ended: CancellationToken,
    metrics: LogMetrics,
}

/// Maximum number of requests that wait for the disk.
const QUEUE: usize = 1024;
/// A group of appends that share a sync ends at this size, so that it does not have to wait for later ones.
const GROUP_BYTES: usize = 8 << 20;
const SEGMENT_BYTES: u64 = 64 << 20;

impl IngestLog {
    /// Opens the log and runs it on its own thread.
    pub fn open(settings: LogSettings, metrics: LogMetrics) -> anyhow::Result<Self> {
        let (log, disk) = Self::assemble(DurableFiles::default(), settings, metrics)?;
        disk::start(disk)?;
        Ok(log)
    }

    /// Opens the log. Nothing is appended until the caller runs the [`Disk`].
    pub(super) fn assemble(
        files: DurableFiles,
        settings: LogSettings,
        metrics: LogMetrics,
    ) -> anyhow::Result<(Self, Disk)> {
        let LogSettings {
            dir,
            max_bytes,
            max_record_bytes,
            min_free_bytes,
        } = settings;
        // A segment must hold the largest record, and the log four segments.
        let quarter = u32::try_from(max_bytes / 4).unwrap_or(u32::MAX);
        let max_record_bytes = max_record_bytes
            .min(quarter.saturating_sub(256))
            .min(unjank_spool::MAX_RECORD_BYTES);
        let options = Options {
            dir: dir.clone(),
            segment_bytes: SEGMENT_BYTES.max(u64::from(max_record_bytes) + 256),
            max_bytes,
            max_record_bytes,
            when_full: WhenFull::Refuse,
            renew_when_opened: true,
        };
        let (log, recovery) = Log::open_on(Arc::clone(&files.0), options)?;
        hold::prepare(&dir);
        let identity = identity::load(&files, &dir)?;
        report(&recovery, &metrics);
        for (gauge, bytes) in [
            (&metrics.max_bytes, max_bytes),
            (&metrics.bytes, log.bytes()),
            (&metrics.min_free_bytes, min_free_bytes),
        ] {
            gauge.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
        let durable_at_open = log.durable_seq();
        let state = Arc::new(State {
            durable: watch::Sender::new(durable_at_open),
            pending_bytes: AtomicU64::new(recovery.bytes),
            drained: AtomicU64::new(0),
            full: AtomicBool::new(false),
            verdict: watch::Sender::new(Ok(())),
            probe_waits: AtomicBool::new(false),
            hold_broken: AtomicBool::new(false),
            #[cfg(test)]
            is_held: AtomicBool::new(false),
            ended: CancellationToken::new(),
            metrics,
        });
        let (queue, commands) = mpsc::channel(QUEUE);
        let (reader, trimmer) = (log.reader(), log.trimmer());
        let disk = Disk {
            log,
            commands,
            files: files.clone(),
            dir: dir.clone(),
            max_bytes,
            min_free_bytes,
            state: Arc::clone(&state),
        };
        let log = Self(Arc::new(Inner {
            files,
            dir,
            identity,
            durable_at_open,
            queue,
            reader: Mutex::new(reader),
            trimmer,
            probed: Mutex::new(None),
            state,
        }));
        Ok((log, disk))
    }

    /// Returns the id of this log, which stays the same as long as the log's folder exists.
    pub fn identity(&self) -> Uuid {
        self.0.identity
    }

    /// Counts damage that only the ledger shows.
    pub(super) fn count_damage(&self) {
        self.0.state.metrics.damaged_ranges.inc();
    }

    /// Returns the file system of the log.
    pub(super) fn files(&self) -> &DurableFiles {
        &self.0.files
    }

    /// Returns the number of the last durable record when the log was opened, or 0 if there was none.
    pub fn durable_at_open(&self) -> Seq {
        self.0.durable_at_open
    }

    /// Appends a record and returns once it is on disk. After any error except [`LogError::Unknown`], the record is not in the log.
    pub async fn append(&self, record: Vec<u8>) -> Result<(), LogError> {
        let (done, answer) = oneshot::channel();
        self.0
            .queue
            .try_send(Command::Append(Append {
                record,
                since: Instant::now().into_std(),
                done,
            }))
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => LogError::Busy,
                mpsc::error::TrySendError::Closed(_) => ended(),
            })?;
        answer.await.unwrap_or(Err(LogError::Unknown))
    }

    /// Resolves when the log's thread has ended because it was closed or has panicked.
    pub async fn ended(&self) {
        self.0.state.ended.cancelled().await;
    }

    /// Ends the log's thread and releases the folder.
    pub async fn close(&self) {
        let (done, answer) = oneshot::channel();
        if self.0.queue.send(Command::Close(done)).await.is_ok() {
            let _closed = answer.await.is_ok();
        }
    }

    /// Calls `recall` for every batch that is still in the log, oldest first, drained or not.
    pub fn recall(&self, mut recall: impl FnMut(&str, Uuid)) -> io::Result<u64> {
        let mut reader = self.reader();
        reader.seek(0);
        let mut records = 0;
        while let Some(chunk) = reader.next_chunk(GROUP_BYTES)? {
            records += chunk.len() as u64;
            let parsed = chunk
                .iter()
                .filter_map(|record| Record::read(record.payload).ok());
            for record in parsed.filter(|record| !record.frames.is_empty()) {
                recall(record.project, record.batch_id);
            }
        }
        Ok(records)
    }

    /// Begins or ends a hold, without a lock on a real disk.
    #[cfg(test)]
    pub(super) fn hold(&self, holds: bool) {
        self.0.state.is_held.store(holds, Ordering::Relaxed);
    }

    /// Watches the number of the last durable record.
    pub fn durable(&self) -> watch::Receiver<Seq> {
        self.0.state.durable.subscribe()
    }

    /// Returns the bytes of payload that wait to be drained.
    pub fn pending_bytes(&self) -> u64 {
        self.0.state.pending_bytes.load(Ordering::Relaxed)
    }

    /// Reads records from `first` to `last`, about `bytes` of them.
    pub async fn read(&self, first: Seq, bytes: usize, last: Seq) -> io::Result<LogRecords> {
        let log = self.clone();
        self.0
            .files
            .unblocked(move || log.read_now(first, bytes, last))
            .await?
    }

    fn read_now(&self, first: Seq, bytes: usize, last: Seq) -> io::Result<LogRecords> {
        let mut reader = self.reader();
        if reader.position() != first {
            reader.seek(first);
        }
        let mut records = LogRecords::default();
        while records.bytes < bytes {
            let Some(chunk) = reader.next_chunk((bytes - records.bytes).min(GROUP_BYTES))? else {
                break;
            };
            let reached_last = chunk.last_seq().is_some_and(|seq| seq >= last);
            let (buffer, places) = chunk.into_parts();
            let places: Vec<_> = places.into_iter().filter(|(seq, _)| *seq <= last).collect();
            records.bytes += places.iter().map(|(_, place)| place.len()).sum::<usize>();
            records.chunks.push((buffer, places));
            if reached_last {
                break;
            }
        }
        Ok(records)
    }

    fn reader(&self) -> std::sync::MutexGuard<'_, Reader> {
        self.0.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of records that wait to be drained.
    pub fn pending_records(&self) -> u64 {
        self.0
            .state
            .durable
            .borrow()
            .saturating_sub(self.0.state.drained.load(Ordering::Relaxed))
    }

    /// Returns the numbers of the last drained and the last durable record.
    pub fn drained_and_durable(&self) -> (Seq, Seq) {
        let drained = self.0.state.drained.load(Ordering::Relaxed);
        (drained, *self.0.state.durable.borrow())
    }

    /// Returns the free space on the disk of the log, which is also the disk of the data folder. `None` if the system does not report it.
    pub fn disk_free_bytes(&self) -> Option<u64> {
        disk::free_bytes(&self.0.dir)
    }

    /// Skips records up to `through`, which an earlier process has drained. The log's own hint may be behind.
    pub(super) fn resume_at(&self, through: Seq) -> io::Result<()> {
        let mut reader = self.reader();
        reader.seek(self.trimmed() + 1);
        let mut drained = 0;
        while reader.position() <= through
            && let Some(chunk) = reader.next_chunk(GROUP_BYTES)?
        {
            let records = chunk.iter().filter(|record| record.seq <= through);
            drained += records
                .map(|record| record.payload.len() as u64)
                .sum::<u64>();
        }
        self.forget_pending(drained);
        self.0.state.drained.store(through, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the last trimmed record.
    pub(super) fn trimmed(&self) -> Seq {
        self.0.trimmer.trimmed()
    }

    fn forget_pending(&self, bytes: u64) {
        let less = |pending: u64| Some(pending.saturating_sub(bytes));
        let pending = &self.0.state.pending_bytes;
        let _before = pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Records that everything up to `through` is in ClickHouse, and deletes the segments that are completely drained.
    pub(super) async fn drained(&self, through: Seq, records: &LogRecords) {
        self.0.state.drained.store(through, Ordering::Relaxed);
        self.forget_pending(records.bytes as u64);
        // It takes up to 30 ms to delete a segment.
        let log = Arc::clone(&self.0);
        let trimmed = self.0.files.unblocked(move || log.trim(through)).await;
        let error = match trimmed {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = error {
            tracing::warn!(%error, "cannot delete drained segments of the ingest log; the server retries after the next range");
        }
        self.0.state.full.store(false, Ordering::Relaxed);
    }
}

impl Inner {
    /// Deletes drained segments, unless a backup holds them.
    fn trim(&self, through: Seq) -> io::Result<()> {
        let release = Release::ask(&self.dir);
        #[cfg(test)]
        let release = match self.state.is_held.load(Ordering::Relaxed) {
            true => Release::Held,
            false => release,
        };
        let _permission = match release {
            Release::Granted(permission) => permission,
            Release::Held if self.has_room_for_holds() => return Ok(()),
            Release::Held => {
                if !self.state.hold_broken.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        "the ingest log is half full, or its disk is nearly full: deleting segments that a backup needs; the backup fails"
                    );
                }
                None
            }
        };
        self.trimmer.trim(through)
    }

    /// Whether the log and its disk have room for the drained segments that a backup holds.
    fn has_room_for_holds(&self) -> bool {
        let metrics = &self.state.metrics;
        let spare = u64::try_from(metrics.min_free_bytes.get()).unwrap_or_default();
        metrics.bytes.get() <= metrics.max_bytes.get() / 2
            && disk::free_bytes(&self.dir).is_none_or(|free| free >= spare.saturating_mul(2))
    }
}

fn ended() -> LogError {
    LogError::Failed("the server is shutting down".to_owned())
}

/// Logs what the recovery found.
fn report(recovery: &Recovery, metrics: &LogMetrics) {
    metrics.torn_bytes.inc_by(recovery.torn_bytes);
    if recovery.torn_has_whole_record {
        metrics.damaged_ranges.inc();
        tracing::error!(
            bytes = recovery.torn_bytes,
            "removed a damaged record of its full length from the end of the ingest log: it may have been acknowledged, and is lost then. \
             Only a power cut leaves such a record of a write that was not acknowledged"
        );
    } else if recovery.torn_bytes > 0 {
        tracing::warn!(
            bytes = recovery.torn_bytes,
            "removed an incomplete record from the end of the ingest log: usual after a crash, which interrupts a write before its acknowledgement"
        );
    }
    for damage in &recovery.damaged {
        metrics.damaged_ranges.inc();
        tracing::error!(
            segment = damage.segment,
            offset = damage.offset,
            bytes = damage.bytes,
            "the ingest log is damaged here: records that were not stored yet are lost; the records after the damage are read"
        );
    }
}

/// The positions of the records in a buffer.
type Places = Vec<(Seq, Range<usize>)>;

/// Records, in the buffers into which they were read.
#[derive(Default)]
pub struct LogRecords {
    chunks: Vec<(Vec<u8>, Places)>,
    bytes: usize,
}

impl LogRecords {
    pub fn iter(&self) -> impl Iterator<Item = (Seq, &[u8])> {
        self.chunks.iter().flat_map(|(buffer, places)| {
            places
                .iter()
                .filter_map(move |(seq, place)| Some((*seq, buffer.get(place.clone())?)))
        })
    }

    /// Returns the ranges of numbers from `first` to `last` without a record, as pairs of first and last.
    pub(super) fn gaps(&self, first: Seq, last: Seq) -> Vec<(Seq, Seq)> {
        let mut gaps = Vec::new();
        let mut next = first;
        let seqs = self.iter().map(|(seq, _)| seq);
        for seq in seqs.filter(|seq| *seq <= last).chain([last + 1]) {
            if next < seq {
                gaps.push((next, seq - 1));
            }
            next = seq + 1;
        }
        gaps
    }

    /// Removes the records in these gaps.
    pub(super) fn remove(&mut self, gaps: &[(Seq, Seq)]) {
        let is_in_gap = |seq: &Seq| {
            gaps.iter()
                .any(|(first, last)| (first..=last).contains(&seq))
        };
        for (_, places) in &mut self.chunks {
            places.retain(|(seq, _)| !is_in_gap(seq));
        }
    }

    /// Removes the records after `last`.
    pub(super) fn cut_after(&mut self, last: Seq) {
        for (_, places) in &mut self.chunks {
            places.retain(|(seq, _)| *seq <= last);
        }
        let places = self.chunks.iter().flat_map(|(_, places)| places);
        self.bytes = places.map(|(_, place)| place.len()).sum();
    }

    pub fn last_seq(&self) -> Option<Seq> {
        self.chunks
            .iter()
            .rev()
            .find_map(|(_, places)| places.last())
            .map(|(seq, _)| *seq)
    }
}
