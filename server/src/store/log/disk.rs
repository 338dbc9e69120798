//! The owner of the log: collects waiting commands, appends their records, syncs once, and responds to each command.
//!
//! [`Disk::step`] does all the work and needs neither a thread nor a clock. [`start`] runs it on its own thread.

use std::io::{self, IoSlice};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use unjank_spool::{AppendError, AppendedAll, Log, Mode};

use super::{GROUP_BYTES, LogError, State};
use crate::store::durable_file::DurableFiles;

/// Minimum time between two syncs. Under load, batches share a sync, which costs as much as decoding a batch. A lone batch is synced at once.
const SYNC_INTERVAL: Duration = Duration::from_millis(5);
/// A log with less room than this counts as full: hardly any batch is smaller.
const LEAST_ROOM: u64 = 4096;

const NEARLY_FULL: &str = "the disk is nearly full";
const FAILS: &str = "the disk fails";

pub(super) enum Command {
    Append(Append),
    /// Checks whether a record would be accepted. The result is the next verdict in [`State`].
    Probe,
    Close(oneshot::Sender<()>),
    #[cfg(test)]
    Panic,
}

pub(super) struct Append {
    pub(super) record: Vec<u8>,
    pub(super) since: Instant,
    pub(super) done: oneshot::Sender<Result<(), LogError>>,
}

/// The log and everything its owner needs.
pub(crate) struct Disk {
    pub(super) log: Log,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) files: DurableFiles,
    pub(super) dir: PathBuf,
    pub(super) max_bytes: u64,
    pub(super) min_free_bytes: u64,
    pub(super) state: Arc<State>,
}

/// Commands that share a sync.
#[derive(Default)]
struct Group {
    appends: Vec<Append>,
    probe: bool,
    close: Option<oneshot::Sender<()>>,
}

/// Runs the log on its own thread.
pub(super) fn start(mut disk: Disk) -> io::Result<()> {
    let run = move || {
        let state = Arc::clone(&disk.state);
        let ended = catch_unwind(AssertUnwindSafe(|| disk.run()));
        // Respond to the waiting commands and release the folder before the end becomes visible.
        drop(disk);
        state.ended.cancel();
        match ended {
            Ok(Some(done)) => {
                let _unheard = done.send(()).is_err();
            }
            Ok(None) => {}
            Err(_) => tracing::error!("the thread of the ingest log panicked"),
        }
    };
    thread::Builder::new()
        .name("ingest-log".to_owned())
        .spawn(run)?;
    Ok(())
}

impl Disk {
    /// Waits for a command, then for `wait`, and runs a step. Returns whether another step may follow.
    #[cfg(test)]
    pub(crate) async fn step_after(&mut self, wait: impl Future<Output = ()>) -> bool {
        let Some(first) = self.commands.recv().await else {
            return false;
        };
        wait.await;
        self.step(first).is_none()
    }

    /// Runs steps until the log is closed. Returns the sender of the caller that closed it.
    fn run(&mut self) -> Option<oneshot::Sender<()>> {
        let mut next_sync = Instant::now();
        while let Some(first) = self.commands.blocking_recv() {
            thread::sleep(next_sync.saturating_duration_since(Instant::now()));
            next_sync = Instant::now() + SYNC_INTERVAL;
            let close = self.step(first);
            if close.is_some() {
                return close;
            }
        }
        None
    }

    /// Collects the commands that wait behind `first`, makes their records durable with one sync, and responds to each. If a caller closes the
    /// log, returns its sender, and no step follows.
    pub(super) fn step(&mut self, first: Command) -> Option<oneshot::Sender<()>> {
        let Group {
            appends,
            probe,
            close,
        } = self.gather(first);
        if !probe && appends.is_empty() {
            return close;
        }
        if !self.has_room() {
            self.release();
        }
        if !self.has_room() {
            self.refuse_all(appends);
            return close;
        }
        let proven = self.store(appends);
        if probe && !proven {
            self.probe();
        }
        close
    }

    /// Collects the waiting commands, up to a size.
    fn gather(&mut self, first: Command) -> Group {
        let mut group = Group::default();
        let mut bytes = 0;
        let mut next = Some(first);
        while let Some(command) = next {
            match command {
                Command::Append(append) => {
                    bytes += append.record.len();
                    group.appends.push(append);
                }
                Command::Probe => {
                    // From here on, a health check needs a new probe: this one may end before the check subscribes to its verdict.
                    self.state.probe_waits.store(false, Ordering::Release);
                    group.probe = true;
                }
                Command::Close(done) => {
                    group.close = Some(done);
                    break;
                }
                #[cfg(test)]
                Command::Panic => panic!("a test asked for it"),
            }
            next = if bytes < GROUP_BYTES {
                self.commands.try_recv().ok()
            } else {
                None
            };
        }
        group
    }

    /// Whether the disk has enough free space for ClickHouse.
    fn has_room(&self) -> bool {
        // If the system does not report the free space, only a write can show that the disk is full.
        free_bytes(&self.dir).is_none_or(|free| free >= self.min_free_bytes)
    }

    /// Deletes drained segments, also those that a backup holds. The writer deletes segments only after it has stored new records, and a full
    /// disk accepts none.
    fn release(&self) {
        let drained = self.state.drained.load(Ordering::Relaxed);
        if let Err(error) = self.log.trimmer().trim(drained) {
            tracing::debug!(%error, "cannot delete drained segments of the ingest log");
        }
    }

    /// Rejects a whole group without touching the disk.
    fn refuse_all(&self, appends: Vec<Append>) {
        let free = free_bytes(&self.dir).unwrap_or_default();
        let least = self.min_free_bytes;
        self.fails(
            NEARLY_FULL,
            &format!("{NEARLY_FULL}: {free} bytes are free, less than --min-free-bytes ({least})"),
        );
        for append in appends {
            let _unheard = append.done.send(Err(LogError::DiskFull)).is_err();
        }
    }

    /// Logs the first rejection, until a write succeeds again.
    fn fails(&self, verdict: &'static str, why: &str) {
        if self.state.verdict.send_replace(Err(verdict)).is_ok() {
            tracing::error!(dir = %self.dir.display(), why, "batches are rejected until the log can be written");
        }
    }

    /// Records that a write succeeded.
    fn works(&self) {
        if self.state.verdict.send_replace(Ok(())).is_err() {
            tracing::info!("the log can be written again");
        }
    }

    /// Appends records, syncs once, and responds to each. Returns whether a record became durable.
    fn store(&mut self, mut waiting: Vec<Append>) -> bool {
        let metrics = &self.state.metrics;
        for append in &waiting {
            let waited = append.since.elapsed().as_secs_f64();
            metrics.wait_seconds.observe(waited);
        }
        let writing = metrics.write_seconds.start_timer();
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
                // Only this record is rejected: a smaller one behind it may fit.
                let refused = waiting.remove(0);
                self.refuse(refused, &error);
            }
        }
        writing.observe_duration();
        if appended.is_empty() {
            return false;
        }
        let timer = metrics.sync_seconds.start_timer();
        let synced = self.log.sync();
        timer.observe_duration();
        self.state
            .metrics
            .bytes
            .set(i64::try_from(self.log.bytes()).unwrap_or(i64::MAX));
        match synced {
            Ok(durable) => {
                let bytes: usize = appended.iter().map(|append| append.record.len()).sum();
                self.state
                    .pending_bytes
                    .fetch_add(bytes as u64, Ordering::Relaxed);
                self.state.durable.send_replace(durable);
                self.works();
                for append in appended {
                    // The client may have disconnected. Its retry is a duplicate.
                    let _unheard = append.done.send(Ok(())).is_err();
                }
                true
            }
            Err(error) => {
                self.fails(FAILS, &error.to_string());
                let error = LogError::Failed(error.source.to_string());
                for append in appended {
                    let _unheard = append.done.send(Err(error.clone())).is_err();
                }
                false
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
                self.fails(FAILS, &error.to_string());
                LogError::Failed(source.to_string())
            }
        };
        let _unheard = append.done.send(Err(answer)).is_err();
    }

    /// Checks whether a record would be accepted, without appending one.
    fn probe(&mut self) {
        // Completely drained segments are replaced when the log needs room.
        let is_drained = self.log.oldest_seq() == self.log.next_seq();
        let room = self.max_bytes.saturating_sub(self.log.bytes());
        if is_drained || room < LEAST_ROOM {
            self.state.full.store(!is_drained, Ordering::Relaxed);
        }
        // A sync without new records repairs the state after a failed sync. Otherwise it does not touch the disk.
        let repaired = self.log.sync().map_err(|error| error.to_string());
        let probed =
            repaired.and_then(|_| touch(&self.files, &self.dir).map_err(|error| error.to_string()));
        match probed {
            Ok(()) => self.works(),
            Err(error) => self.fails(FAILS, &error),
        }
    }
}

/// Writes and syncs a few bytes in a separate file.
fn touch(files: &DurableFiles, dir: &Path) -> io::Result<()> {
    let mut file = files.0.open(&dir.join("probe"), Mode::Create)?;
    file.write_at(0, &[IoSlice::new(&[0; LEAST_ROOM as usize])])?;
    file.sync()
}

/// Returns the free space on the disk of a folder, or `None` if the system does not report it.
pub(crate) fn free_bytes(dir: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(dir).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}
