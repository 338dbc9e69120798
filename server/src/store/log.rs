//! The ingest log: appends from many requests, one sync for all that wait, then the acknowledgements.
//!
//! One thread owns the log and does its disk work; a group of appends shares one sync. The queue to it is bounded: when it
//! is full, devices are told to come back.

mod disk;
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
use super::durable_file::DurableFiles;
use super::record::Record;
use crate::metrics::LogMetrics;

#[derive(Clone, Debug)]
pub struct LogSettings {
    pub dir: PathBuf,
    pub max_bytes: u64,
    pub max_record_bytes: u32,
    /// Below this much free space nothing is taken: ClickHouse needs room to drain what is there.
    pub min_free_bytes: u64,
}

/// Why a record is not acknowledged. The record is not in the log, except after [`LogError::Unknown`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum LogError {
    #[error(
        "the ingest log is at its limit, since ClickHouse does not take events: send it again later"
    )]
    Full,
    #[error("the server's disk is nearly full: send it again later")]
    DiskFull,
    #[error("too many batches wait for the disk: send it again later")]
    Busy,
    #[error("the batch cannot be made durable now: {0}")]
    Failed(String),
    /// The only error after which the record may be in the log.
    #[error("the ingest log ended before it answered: send the batch again")]
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
    /// When the disk was last found to answer a probe.
    probed: Mutex<Option<Instant>>,
    state: Arc<State>,
}

/// What the thread of the log tells everyone else.
struct State {
    /// The last durable record. Never closed, so that the writer drains on when the thread is gone.
    durable: watch::Sender<Seq>,
    /// Payload bytes that are durable and not drained.
    pending_bytes: AtomicU64,
    /// The last record that is drained.
    drained: AtomicU64,
    full: AtomicBool,
    /// Whether the disk took what was last written to it, or why it did not.
    verdict: watch::Sender<Result<(), &'static str>>,
    /// A probe is in the queue.
    probe_waits: AtomicBool,
    /// The thread is gone.
    ended: CancellationToken,
    metrics: LogMetrics,
}

/// Requests that may wait for the disk at once.
const QUEUE: usize = 1024;
/// A group that shares a sync ends at this size: what comes later should not wait for it.
const GROUP_BYTES: usize = 8 << 20;
const SEGMENT_BYTES: u64 = 64 << 20;

impl IngestLog {
    /// Opens the log and runs it on a thread of its own.
    pub fn open(settings: LogSettings, metrics: LogMetrics) -> anyhow::Result<Self> {
        let (log, disk) = Self::assemble(DurableFiles::default(), settings, metrics)?;
        disk::start(disk)?;
        Ok(log)
    }

    /// Opens the log. Nothing is appended until somebody runs the [`Disk`].
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

    /// Names this log for as long as its folder exists.
    pub fn identity(&self) -> Uuid {
        self.0.identity
    }

    /// The file system that the log is on.
    pub(super) fn files(&self) -> &DurableFiles {
        &self.0.files
    }

    /// The number of the last durable record when the log was opened; 0 if there was never one.
    pub fn durable_at_open(&self) -> Seq {
        self.0.durable_at_open
    }

    /// Makes a record durable: returns once it is on disk. After every error but [`LogError::Unknown`] it is not in the log.
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

    /// Resolves when the log's thread is gone: it was closed, or it panicked.
    pub async fn ended(&self) {
        self.0.state.ended.cancelled().await;
    }

    /// Ends the log's thread and gives the folder free.
    pub async fn close(&self) {
        let (done, answer) = oneshot::channel();
        if self.0.queue.send(Command::Close(done)).await.is_ok() {
            let _closed = answer.await.is_ok();
        }
    }

    /// Calls `recall` for every batch still in the log, oldest first, drained or not.
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

    /// The number of the last durable record.
    pub fn durable(&self) -> watch::Receiver<Seq> {
        self.0.state.durable.subscribe()
    }

    /// Payload bytes that wait to be drained.
    pub fn pending_bytes(&self) -> u64 {
        self.0.state.pending_bytes.load(Ordering::Relaxed)
    }

    /// Reads records from `first` on: about `bytes` of them, none past `last`.
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

    /// Records that wait to be drained.
    pub fn pending_records(&self) -> u64 {
        self.0
            .state
            .durable
            .borrow()
            .saturating_sub(self.0.state.drained.load(Ordering::Relaxed))
    }

    /// The last record that is in ClickHouse, and the last one that is durable.
    pub fn drained_and_durable(&self) -> (Seq, Seq) {
        let drained = self.0.state.drained.load(Ordering::Relaxed);
        (drained, *self.0.state.durable.borrow())
    }

    /// What is free on the disk of the log, which is that of the data folder; if it says.
    pub fn disk_free_bytes(&self) -> Option<u64> {
        disk::free_bytes(&self.0.dir)
    }

    /// Records up to `through` were drained by an earlier process. The log's own hint may be behind.
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

    /// The last trimmed record.
    pub(super) fn trimmed(&self) -> Seq {
        self.0.trimmer.trimmed()
    }

    fn forget_pending(&self, bytes: u64) {
        let less = |pending: u64| Some(pending.saturating_sub(bytes));
        let pending = &self.0.state.pending_bytes;
        let _before = pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Everything up to `through` is in ClickHouse: its space comes back, in whole segments.
    pub(super) async fn drained(&self, through: Seq, records: &LogRecords) {
        self.0.state.drained.store(through, Ordering::Relaxed);
        self.forget_pending(records.bytes as u64);
        // To delete a segment takes up to 30 ms.
        let trimmer = self.0.trimmer.clone();
        let trimmed = self.0.files.unblocked(move || trimmer.trim(through)).await;
        let error = match trimmed {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = error {
            tracing::warn!(%error, "space of the ingest log did not come back; it is tried again with the next range");
        }
        self.0.state.full.store(false, Ordering::Relaxed);
    }
}

fn ended() -> LogError {
    LogError::Failed("the server is ending".to_owned())
}

/// Says what opening the log found.
fn report(recovery: &Recovery, metrics: &LogMetrics) {
    if recovery.torn_bytes > 0 {
        metrics.torn_bytes.inc_by(recovery.torn_bytes);
        tracing::warn!(
            bytes = recovery.torn_bytes,
            "what was no whole record was cut from the end of the ingest log: usual after a crash, which interrupts a write before its acknowledgement"
        );
    }
    for damage in &recovery.damaged {
        metrics.damaged_ranges.inc();
        tracing::error!(
            ?damage,
            "the ingest log is damaged here; what follows is read"
        );
    }
}

/// Where in a buffer the records are.
type Places = Vec<(Seq, Range<usize>)>;

/// Records read, in the buffers they were read into.
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

    /// Numbers of `first` to `last` without a record, as pairs of first and last.
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
