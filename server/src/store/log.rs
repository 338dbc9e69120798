//! The ingest log: appends from many requests, one sync for all that wait, then the acknowledgements.
//!
//! One thread owns the log and does its disk work; a group of appends shares one sync. The queue to it is bounded: when it
//! is full, devices are told to come back.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use tokio::sync::{mpsc, oneshot, watch};
use unjank_spool::{AppendError, AppendedAll, Log, Options, Reader, Seq, Trimmer, WhenFull};
use uuid::Uuid;

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

/// Why a record is not durable. Nothing was acknowledged.
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
    #[error("the batch is too large for the ingest log: split it")]
    TooLarge,
}

/// A handle to the log, shared by all requests and the writer.
#[derive(Clone)]
pub struct IngestLog(Arc<Inner>);

struct Inner {
    dir: PathBuf,
    queue: mpsc::Sender<Command>,
    durable: watch::Receiver<Seq>,
    reader: Mutex<Reader>,
    trimmer: Trimmer,
    state: Arc<State>,
}

/// What the thread of the log tells everyone else.
struct State {
    /// Payload bytes that are durable and not drained.
    pending_bytes: AtomicU64,
    /// The last record that is drained.
    drained: AtomicU64,
    full: AtomicBool,
    failing: AtomicBool,
    metrics: LogMetrics,
}

enum Command {
    Append(Append),
    Close(oneshot::Sender<()>),
}

struct Append {
    record: Vec<u8>,
    done: oneshot::Sender<Result<(), LogError>>,
}

/// Requests that may wait for the disk at once.
const QUEUE: usize = 1024;
/// A group that shares a sync ends at this size: what comes later should not wait for it.
const GROUP_BYTES: usize = 8 << 20;
const SEGMENT_BYTES: u64 = 64 << 20;
/// From one sync to the next: under load batches share a sync, which costs as much as decoding a batch; a lone one goes at once.
const SYNC_INTERVAL: Duration = Duration::from_millis(5);

impl IngestLog {
    pub fn open(settings: LogSettings, metrics: LogMetrics) -> anyhow::Result<Self> {
        let (dir, min_free_bytes) = (settings.dir.clone(), settings.min_free_bytes);
        // A segment must hold the largest record, and the log four segments.
        let quarter = u32::try_from(settings.max_bytes / 4).unwrap_or(u32::MAX);
        let max_record_bytes = settings
            .max_record_bytes
            .min(quarter.saturating_sub(256))
            .min(unjank_spool::MAX_RECORD_BYTES);
        let (log, recovery) = Log::open(Options {
            dir: settings.dir,
            segment_bytes: SEGMENT_BYTES.max(u64::from(max_record_bytes) + 256),
            max_bytes: settings.max_bytes,
            max_record_bytes,
            when_full: WhenFull::Refuse,
        })?;
        for damage in &recovery.damaged {
            metrics.damaged_ranges.inc();
            tracing::error!(
                ?damage,
                "the ingest log is damaged here; what follows is read"
            );
        }
        metrics
            .max_bytes
            .set(i64::try_from(settings.max_bytes).unwrap_or(i64::MAX));
        metrics
            .bytes
            .set(i64::try_from(log.bytes()).unwrap_or(i64::MAX));
        metrics
            .min_free_bytes
            .set(i64::try_from(min_free_bytes).unwrap_or(i64::MAX));
        let state = Arc::new(State {
            pending_bytes: AtomicU64::new(recovery.bytes),
            drained: AtomicU64::new(0),
            full: AtomicBool::new(false),
            failing: AtomicBool::new(false),
            metrics,
        });
        let (queue, commands) = mpsc::channel(QUEUE);
        let (durable, durable_seen) = watch::channel(log.durable_seq());
        let (reader, trimmer) = (log.reader(), log.trimmer());
        let disk = Disk {
            log,
            commands,
            durable,
            dir: dir.clone(),
            min_free_bytes,
            state: Arc::clone(&state),
        };
        thread::Builder::new()
            .name("ingest-log".to_owned())
            .spawn(move || disk.run())?;
        Ok(Self(Arc::new(Inner {
            dir,
            queue,
            durable: durable_seen,
            reader: Mutex::new(reader),
            trimmer,
            state,
        })))
    }

    /// Makes a record durable: returns once it is on disk.
    pub async fn append(&self, record: Vec<u8>) -> Result<(), LogError> {
        let (done, answer) = oneshot::channel();
        self.0
            .queue
            .try_send(Command::Append(Append { record, done }))
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => LogError::Busy,
                mpsc::error::TrySendError::Closed(_) => ended(),
            })?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Ends the log's thread and gives the folder free.
    pub async fn close(&self) {
        let (done, answer) = oneshot::channel();
        if self.0.queue.send(Command::Close(done)).await.is_ok() {
            let _closed = answer.await.is_ok();
        }
    }

    /// Whether a record would be taken now.
    pub fn health(&self) -> Result<(), &'static str> {
        let state = &self.0.state;
        if state.failing.load(Ordering::Relaxed) {
            Err("the disk fails")
        } else if state.full.load(Ordering::Relaxed) {
            Err("the log is at its limit")
        } else {
            Ok(())
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
        self.0.durable.clone()
    }

    /// Payload bytes that wait to be drained.
    pub fn pending_bytes(&self) -> u64 {
        self.0.state.pending_bytes.load(Ordering::Relaxed)
    }

    /// Reads records from `first` on: about `bytes` of them, none past `last`.
    pub async fn read(&self, first: Seq, bytes: usize, last: Seq) -> io::Result<LogRecords> {
        let log = self.clone();
        tokio::task::spawn_blocking(move || log.read_now(first, bytes, last)).await?
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
            .durable
            .borrow()
            .saturating_sub(self.0.state.drained.load(Ordering::Relaxed))
    }

    /// What is free on the disk of the log, which is that of the data folder; if it says.
    pub fn disk_free_bytes(&self) -> Option<u64> {
        free_bytes(&self.0.dir)
    }

    /// Everything up to `through` was drained in an earlier life.
    pub(super) fn resume_at(&self, through: Seq) {
        self.0.state.drained.store(through, Ordering::Relaxed);
    }

    /// Everything up to `through` is in ClickHouse: its space comes back, in whole segments.
    pub(super) fn drained(&self, through: Seq, records: &LogRecords) {
        let bytes = records.bytes as u64;
        self.resume_at(through);
        let pending = &self.0.state.pending_bytes;
        pending.store(
            pending.load(Ordering::Relaxed).saturating_sub(bytes),
            Ordering::Relaxed,
        );
        if let Err(error) = self.0.trimmer.trim(through) {
            tracing::warn!(%error, "space of the ingest log did not come back; it is tried again with the next range");
        }
        self.0.state.full.store(false, Ordering::Relaxed);
    }
}

fn ended() -> LogError {
    LogError::Failed("the server is ending".to_owned())
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

    pub fn last_seq(&self) -> Option<Seq> {
        self.chunks
            .iter()
            .rev()
            .find_map(|(_, places)| places.last())
            .map(|(seq, _)| *seq)
    }
}

/// What is free on the disk of a folder, if the disk says.
fn free_bytes(dir: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(dir).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The thread that owns the log.
struct Disk {
    log: Log,
    commands: mpsc::Receiver<Command>,
    durable: watch::Sender<Seq>,
    dir: PathBuf,
    min_free_bytes: u64,
    state: Arc<State>,
}

impl Disk {
    fn run(mut self) {
        let mut group = Vec::new();
        let mut close = None;
        let mut next_sync = Instant::now();
        while close.is_none() {
            let Some(first) = self.commands.blocking_recv() else {
                break;
            };
            thread::sleep(next_sync.saturating_duration_since(Instant::now()));
            next_sync = Instant::now() + SYNC_INTERVAL;
            self.gather(first, &mut group, &mut close);
            if self.has_room() {
                self.store(&mut group);
            } else {
                self.refuse_all(&mut group);
            }
        }
        // The folder is free before anyone hears of it.
        drop(self);
        if let Some(done) = close {
            let _unheard = done.send(()).is_err();
        }
    }

    /// Takes everything that waits, up to a size.
    fn gather(
        &mut self,
        first: Command,
        group: &mut Vec<Append>,
        close: &mut Option<oneshot::Sender<()>>,
    ) {
        let mut bytes = 0;
        let mut next = Some(first);
        while let Some(command) = next {
            match command {
                Command::Close(done) => {
                    *close = Some(done);
                    return;
                }
                Command::Append(append) => {
                    bytes += append.record.len();
                    group.push(append);
                }
            }
            next = if bytes < GROUP_BYTES {
                self.commands.try_recv().ok()
            } else {
                None
            };
        }
    }

    /// Whether the disk has room left for ClickHouse beside what is appended.
    fn has_room(&self) -> bool {
        // A disk that does not say is taken at its word when it is written to.
        free_bytes(&self.dir).is_none_or(|free| free >= self.min_free_bytes)
    }

    /// Refuses a whole group without touching the disk.
    fn refuse_all(&self, group: &mut Vec<Append>) {
        self.fails("the disk is nearly full");
        for append in group.drain(..) {
            let _unheard = append.done.send(Err(LogError::DiskFull)).is_err();
        }
    }

    /// Says once that batches are refused, until one is taken again.
    fn fails(&self, why: &str) {
        if !self.state.failing.swap(true, Ordering::Relaxed) {
            tracing::error!(dir = %self.dir.display(), why, "batches are refused until the log can be written");
        }
    }

    /// Appends a group, syncs once, and answers each.
    fn store(&mut self, group: &mut Vec<Append>) {
        let mut waiting = std::mem::take(group);
        let mut appended = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let records: Vec<&[u8]> = waiting
                .iter()
                .map(|append| append.record.as_slice())
                .collect();
            let AppendedAll { count, error, .. } = self.log.append_all(&records);
            let rest = waiting.split_off(count);
            appended.append(&mut waiting);
            waiting = rest;
            if let Some(error) = error {
                // Only this record is refused: a smaller one behind it may fit.
                let refused = waiting.remove(0);
                self.refuse(refused, &error);
            }
        }
        if appended.is_empty() {
            return;
        }
        let timer = self.state.metrics.sync_seconds.start_timer();
        let synced = self.log.sync();
        timer.observe_duration();
        self.state
            .metrics
            .bytes
            .set(i64::try_from(self.log.bytes()).unwrap_or(i64::MAX));
        match synced {
            Ok(durable) => {
                self.state.failing.store(false, Ordering::Relaxed);
                let bytes: usize = appended.iter().map(|append| append.record.len()).sum();
                self.state
                    .pending_bytes
                    .fetch_add(bytes as u64, Ordering::Relaxed);
                self.durable.send_replace(durable);
                for append in appended {
                    // The client may have gone; its retry is a duplicate.
                    let _unheard = append.done.send(Ok(())).is_err();
                }
            }
            Err(error) => {
                self.fails(&error.to_string());
                let error = LogError::Failed(error.source.to_string());
                for append in appended {
                    let _unheard = append.done.send(Err(error.clone())).is_err();
                }
            }
        }
    }

    fn refuse(&self, append: Append, error: &AppendError) {
        let answer = match error {
            AppendError::Full { .. } => {
                self.state.full.store(true, Ordering::Relaxed);
                LogError::Full
            }
            AppendError::TooLarge { .. } => LogError::TooLarge,
            AppendError::Io { source, .. } => {
                self.fails(&error.to_string());
                LogError::Failed(source.to_string())
            }
        };
        let _unheard = append.done.send(Err(answer)).is_err();
    }
}
