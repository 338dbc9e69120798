//! One simulated server with its disk and its store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use unjank_foundation::clock::{Clock, UnixTime};

use super::backup_set::BackupSet;
use super::batch::Batch;
use super::chance::{Chance, History};
use super::connection::Connection;
use super::control::{Control, SimulatedClaims};
use super::disk::SimulatedDisk;
use super::host::Host;
use super::rows::{Row, number_of};
use super::store::Store;
use crate::metrics::Metrics;
use crate::recent::{Arrival, RecentBatches, Unstored};
use crate::store::drain::dead_letter::DeadLetters;
use crate::store::drain::writer::{Writer, WriterSettings};
use crate::store::durable_file::DurableFiles;
use crate::store::log::{Disk, IngestLog, LogSettings};
use crate::store::range_number::Number;

/// Noon of 2026-11-24, a Tuesday.
const BEGAN_AT: i64 = 1_795_521_600_000_000;

pub(super) struct World {
    pub(super) seed: u64,
    /// The name of the server.
    pub(super) name: &'static str,
    pub(super) chance: Chance,
    pub(super) history: History,
    pub(super) disk: SimulatedDisk,
    pub(super) store: Store,
    pub(super) host: Arc<Host>,
    /// The control database that servers share.
    pub(super) control: Option<Control>,
    metrics: Arc<Metrics>,
    began: Instant,
    /// How far the clock of the server is ahead, in microseconds.
    ahead: i64,
    server: Mutex<Option<Server>>,
    truth: Arc<Mutex<Truth>>,
    /// Commands that drain copies of the log.
    drains: Mutex<Vec<JoinHandle<()>>>,
    /// A batch with more events is too large.
    most_events: Mutex<usize>,
    /// Whether a backup holds the log.
    holds: AtomicBool,
    backup: Mutex<Option<Arc<BackupSet>>>,
}

/// Returns the microseconds since the epoch, in a world that began at `began`.
fn time_since(began: Instant) -> i64 {
    BEGAN_AT + i64::try_from(began.elapsed().as_micros()).unwrap_or_default()
}

/// The devices' knowledge, to compare with the stored data.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// Events whose batch was acknowledged.
    pub(super) acknowledged: BTreeSet<u64>,
    /// Events passed to the log, and the batches that contained them.
    pub(super) appended: BTreeMap<u64, BTreeSet<u128>>,
    /// Events lost with the only log that had them, unless they were acknowledged again.
    pub(super) excused: BTreeSet<u64>,
    /// Whether records of a log were lost. A range in progress at that time may stay uncounted.
    pub(super) lost_records: bool,
    /// When records were last lost, in seconds since the epoch, and all events that only those records had.
    pub(super) lost_at: i64,
    pub(super) ever_lost: BTreeSet<u64>,
    /// Whether a whole log was lost, including its identity.
    pub(super) lost_a_log: bool,
    /// Whether a ledger was lost.
    pub(super) lost_a_ledger: bool,
    /// Events of retries that were stored and not rolled up when their dead letters were lost.
    pub(super) lost_retries: BTreeSet<u64>,
    /// All logs so far, by the bits that identify them in numbers.
    pub(super) logs: BTreeSet<u32>,
    /// All events that devices have created, with their tables.
    pub(super) events: BTreeMap<u64, &'static str>,
    /// Faults by kind.
    pub(super) faults: BTreeMap<&'static str, u64>,
}

#[derive(Clone)]
struct Server {
    log: IngestLog,
    seen: Arc<RecentBatches>,
    began: Instant,
    is_newer: bool,
}

/// An open log and its writer.
pub(super) struct Opened {
    pub(super) log: IngestLog,
    pub(super) writer: Writer<Connection>,
    disk: Disk,
    files: DurableFiles,
    seen: Arc<RecentBatches>,
}

/// A running server.
pub(super) struct Running {
    pub(super) log: IngestLog,
    pub(super) files: DurableFiles,
    shutdown: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

/// The response that a device gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Acknowledged,
    TooLarge,
    TryAgain,
    Nothing,
}

impl World {
    pub(super) fn new(seed: u64, keeps_history: bool, metrics: Arc<Metrics>) -> Arc<Self> {
        let (chance, history) = (Chance::of_seed(seed), History::new(keeps_history));
        Arc::new(Self {
            seed,
            name: "the server",
            disk: SimulatedDisk::new(chance.clone(), history.clone()),
            store: Store::new(chance.clone(), history.clone()),
            chance,
            history,
            host: Arc::default(),
            control: None,
            metrics,
            began: Instant::now(),
            ahead: 0,
            server: Mutex::default(),
            truth: Arc::default(),
            drains: Mutex::default(),
            most_events: Mutex::new(usize::MAX),
            holds: AtomicBool::new(false),
            backup: Mutex::default(),
        })
    }

    /// Another server with the same ClickHouse and the same devices, and with a disk and a clock of its own.
    pub(super) fn beside(
        &self,
        name: &'static str,
        control: Option<Control>,
        ahead: i64,
    ) -> Arc<Self> {
        Arc::new(Self {
            seed: self.seed,
            name,
            chance: self.chance.clone(),
            history: self.history.clone(),
            disk: SimulatedDisk::new(self.chance.clone(), self.history.clone()),
            store: self.store.clone(),
            host: Arc::default(),
            control,
            metrics: Arc::clone(&self.metrics),
            began: self.began,
            ahead,
            server: Mutex::default(),
            truth: Arc::clone(&self.truth),
            drains: Mutex::default(),
            most_events: Mutex::new(usize::MAX),
            holds: AtomicBool::new(false),
            backup: Mutex::default(),
        })
    }

    pub(super) fn connection(&self) -> Connection {
        Connection {
            store: self.store.clone(),
            disk: self.disk.clone(),
            host: Arc::clone(&self.host),
        }
    }

    /// The claims of a server that shares its control database.
    pub(super) fn claims(&self) -> Option<SimulatedClaims> {
        Some(SimulatedClaims {
            control: self.control.clone()?,
            host: Arc::clone(&self.host),
            disk: self.disk.clone(),
            chance: self.chance.clone(),
            history: self.history.clone(),
            name: self.name,
            lease: None,
        })
    }

    pub(super) fn drains(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.drains.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Microseconds since the epoch.
    pub(super) fn now(&self) -> i64 {
        time_since(self.began) + self.ahead
    }

    fn server(&self) -> MutexGuard<'_, Option<Server>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn most_events(&self) -> usize {
        *self
            .most_events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a batch as a device does, and waits a while for a response.
    pub(super) async fn send(self: &Arc<Self>, batch: &Batch) -> Answer {
        sleep(self.chance.millis(1, 60)).await;
        if self.chance.happens(30) {
            return Answer::Nothing;
        }
        let patience = self.chance.millis(50, 3_000);
        let answer = timeout(patience, self.host.run(self.take(batch))).await;
        let answer = answer.unwrap_or(Answer::Nothing);
        if self.chance.happens(50) {
            return Answer::Nothing;
        }
        answer
    }

    /// Handles a batch in the same order of steps as `http::devices::ingest`.
    async fn take(self: &Arc<Self>, batch: &Batch) -> Answer {
        let Some(Server {
            log,
            seen,
            began,
            is_newer,
        }) = self.server().clone()
        else {
            return Answer::TryAgain;
        };
        if batch.events.len() > self.most_events() {
            return Answer::TooLarge;
        }
        let ids = || batch.events.iter().map(|event| event.id);
        for id in ids() {
            let mut truth = self.truth();
            truth
                .appended
                .entry(id)
                .or_default()
                .insert(batch.id.as_u128());
        }
        let answer = match seen.arrive(batch.project, batch.id, &batch.split_from) {
            Arrival::Duplicate(_) => Answer::Acknowledged,
            Arrival::InFlight => Answer::TryAgain,
            Arrival::New(ticket) => match log.append(batch.record(self.now(), is_newer)).await {
                Ok(()) => {
                    ticket.stored(Unstored::default());
                    Answer::Acknowledged
                }
                Err(_) => Answer::TryAgain,
            },
        };
        // A process that has ended does not respond.
        let is_same = self.server().as_ref().is_some_and(|now| now.began == began);
        if !is_same || self.disk.has_ended() {
            return Answer::Nothing;
        }
        if answer == Answer::Acknowledged {
            self.history.say(|| {
                let events: Vec<String> = ids().map(|id| format!("{id:x}")).collect();
                format!("acknowledged: {}", events.join(" "))
            });
            let mut truth = self.truth();
            truth.acknowledged.extend(ids());
            // The current log has the events.
            truth.excused.retain(|id| !ids().any(|one| one == *id));
        }
        answer
    }

    /// Opens the log and its writer for a new process.
    pub(super) fn open(&self) -> anyhow::Result<Opened> {
        let files = DurableFiles(self.disk.begin_life());
        let settings = LogSettings {
            dir: PathBuf::from("/data/log"),
            max_bytes: 64 << 10,
            max_record_bytes: 8 << 10,
            min_free_bytes: 0,
        };
        let (log, disk) = IngestLog::assemble(files.clone(), settings, self.metrics.log.clone())?;
        log.hold(self.holds.load(Ordering::Relaxed));
        self.truth().logs.insert(Number::log_bits(log.identity()));
        let seen = Arc::new(RecentBatches::new(64));
        log.recall(|project, batch_id| seen.recall(project, batch_id))?;
        let writer_settings = WriterSettings {
            flush_interval: Duration::from_millis(200),
            range_bytes: 4 << 10,
            eager_bytes: 8 << 10,
            state: PathBuf::from("/data/drain.json"),
            clock: Clock::new({
                let (began, ahead) = (self.began, self.ahead);
                move || UnixTime::from_micros(time_since(began) + ahead)
            }),
        };
        let metrics = self.metrics.writer.clone();
        let dead_letters = self.dead_letters(&files)?;
        let writer = Writer::open(
            log.clone(),
            self.connection(),
            dead_letters,
            writer_settings,
            metrics,
        )?;
        Ok(Opened {
            log,
            writer,
            disk,
            files,
            seen,
        })
    }

    /// Starts the server from the files on the disk.
    pub(super) fn start(self: &Arc<Self>) -> anyhow::Result<Running> {
        self.host.resume();
        let Opened {
            log,
            writer,
            disk,
            files,
            seen,
        } = self.open()?;
        let writer = writer.sharing(self.claims());
        let (shutdown, give_up) = (CancellationToken::new(), CancellationToken::new());
        let (host, stop) = (Arc::clone(&self.host), shutdown.clone());
        let writing =
            tokio::spawn(async move { host.run(Box::pin(writer.run(stop, give_up))).await });
        let (host, chance) = (Arc::clone(&self.host), self.chance.clone());
        let syncing = tokio::spawn(async move {
            host.run(sync(disk, &chance)).await;
        });
        *self.server() = Some(Server {
            log: log.clone(),
            seen,
            began: Instant::now(),
            is_newer: self.chance.happens(500),
        });
        self.history.say(|| format!("{} starts", self.name));
        Ok(Running {
            log,
            files,
            shutdown,
            tasks: vec![writing, syncing],
        })
    }

    pub(super) fn dead_letters(&self, files: &DurableFiles) -> anyhow::Result<DeadLetters> {
        let folder = PathBuf::from("/data/dead-letter");
        Ok(DeadLetters::open_on(files.clone(), folder, 1 << 20)?)
    }

    /// Aborts the tasks of a server whose process has ended.
    pub(super) async fn bury(&self, running: Running) {
        *self.server() = None;
        for task in running.tasks {
            task.abort();
            let _ended = task.await;
        }
    }

    /// Stops the server gracefully, as SIGTERM does.
    pub(super) async fn stop(&self, running: Running) {
        *self.server() = None;
        running.shutdown.cancel();
        for mut task in running.tasks.into_iter().take(1) {
            let ended = timeout(Duration::from_secs(600), &mut task).await;
            if ended.is_err() {
                task.abort();
            }
        }
        self.disk.end_now();
    }

    /// Called before a log is deleted: events that only this log has may be lost.
    pub(super) fn excuse_what_is_not_stored(&self) {
        let mut stored = BTreeSet::new();
        let mut truth = self.truth();
        for table in super::store::EVENTS {
            let rows = self.store.rows(table);
            let id = |row: &Row| row["id"].number() as u64;
            stored.extend(rows.iter().map(id));
            let of_retries: Vec<u64> = rows
                .iter()
                .filter(|row| !truth.logs.contains(&number_of(row).log()))
                .map(id)
                .collect();
            truth.lost_retries.extend(of_retries);
        }
        let lost: Vec<u64> = truth.appended.keys().copied().collect();
        let lost = lost.into_iter().filter(|id| !stored.contains(id));
        let lost: BTreeSet<u64> = lost.collect();
        truth.lost_at = self.now() / 1_000_000;
        truth.ever_lost.extend(&lost);
        truth.excused.extend(lost);
        truth.lost_records = true;
    }

    /// Begins or ends the hold of a backup. It does not depend on the life of a server.
    pub(super) fn hold(&self, holds: bool) {
        self.holds.store(holds, Ordering::Relaxed);
        if let Some(server) = &*self.server() {
            server.log.hold(holds);
        }
    }

    fn backup(&self) -> MutexGuard<'_, Option<Arc<BackupSet>>> {
        self.backup.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn keep(&self, set: BackupSet) {
        *self.backup() = Some(Arc::new(set));
    }

    pub(super) fn kept_backup(&self) -> Option<Arc<BackupSet>> {
        self.backup().clone()
    }

    /// From now on, batches with more events are too large.
    pub(super) fn allow_events(&self, most: usize) {
        *self
            .most_events
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = most;
    }
}

/// Syncs the log until the server has ended.
async fn sync(mut disk: Disk, chance: &Chance) {
    while disk.step_after(sleep(chance.millis(0, 15))).await {}
}
