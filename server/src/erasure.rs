//! Carries out erasures: deletes the stored data of an install, a user id or a whole project.
//!
//! One server at a time carries out erasures, one pass at a time. A pass is a list of steps, and its progress is saved after each
//! step. A server that is killed or loses its lease therefore loses no work. Every server watches its own ingest log and
//! dead-letter folder: once its log has drained everything that arrived before an erasure, and then once a day for 30 days, it
//! checks whether erased rows have reappeared, and reopens the erasure if so.

mod pass;
mod reappeared_rows;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use unjank_database::{ControlError, Erasure, ErasureKind};
use uuid::Uuid;

use self::pass::Pass;
use self::reappeared_rows::Returned;
use crate::access::Lease;
use crate::app::App;
use crate::store::{DeadLetterError, DeadLetters, ErasureScope, Failure, Subject};
use crate::symbols::StoreError;

/// Delay between a request and its pass, so that requests made together share a pass.
const GATHER: Duration = Duration::from_secs(2);
const EVERY: Duration = Duration::from_secs(2);
/// How long another server waits before it takes over.
const LEASE: Duration = Duration::from_secs(60);
/// Delay after a failure, during which passes of other projects run.
const AFTER_FAILURE: Duration = Duration::from_secs(30);
/// Delay after a pass found that it has to wait.
const AFTER_WAITING: Duration = Duration::from_secs(10);
/// After a pass, a project pauses for as long as the pass took, up to this limit.
const LONGEST_REST: Duration = Duration::from_secs(3_600);
/// Rows that another server sent longer ago than this have arrived in ClickHouse.
const ARRIVES: Duration = Duration::from_secs(600);

/// The background task.
pub struct Eraser {
    app: Arc<App>,
    dead_letters: DeadLetters,
    lease: Lease,
    /// Projects that pause, and until when.
    resting: Mutex<HashMap<String, Instant>>,
}

/// Why a step has not succeeded. It will be retried.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error("control database: {0}")]
    Control(#[from] ControlError),
    #[error("ClickHouse: {0}")]
    Store(#[from] Failure),
    #[error("dead-letter folder: {0}")]
    DeadLetters(#[from] DeadLetterError),
    #[error(transparent)]
    Symbols(#[from] StoreError),
    /// The mutation continues in ClickHouse; a later pass checks it again.
    #[error("a mutation is still running")]
    StillRunning,
    /// Janks of other servers may be on their way.
    #[error("other servers may not have stored their janks yet")]
    Waiting,
    /// This server was paused for so long that it lost its lease.
    #[error("another server continues")]
    TakenOver,
}

impl Eraser {
    pub fn new(app: Arc<App>, dead_letters: DeadLetters) -> Self {
        let lease = Lease::new(app.control.clone(), app.clock.clone(), ("erasure", LEASE));
        Self {
            app,
            dead_letters,
            lease,
            resting: Mutex::default(),
        }
    }

    /// Dropping the future at any point loses nothing.
    pub async fn run(self, shutdown: CancellationToken) {
        self.lease.until(shutdown, self.run_passes()).await;
    }

    async fn run_passes(&self) {
        let mut every = interval(EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut returned = Returned::default();
        loop {
            every.tick().await;
            self.lease.during(Box::pin(self.passes())).await;
            if let Err(error) = returned.look(self).await {
                tracing::debug!(%error, "cannot check for erased rows that have reappeared");
            }
        }
    }

    /// Carries out all pending passes.
    async fn passes(&self) {
        loop {
            let (now, resting) = (self.app.clock.now(), self.resting());
            let next = self.app.control.next_pass(now - GATHER, &resting, now);
            let erasures = match next.await {
                Ok(erasures) if erasures.is_empty() => return,
                Ok(erasures) => erasures,
                Err(error) => return tracing::debug!(%error, "cannot read erasures"),
            };
            let began = Instant::now();
            let mut pass = Pass::new(self, erasures);
            let rest = match pass.run().await {
                Ok(()) => began.elapsed(),
                Err(error) => {
                    pass.record_error(&error).await;
                    match error {
                        StepError::Waiting => AFTER_WAITING,
                        _ => AFTER_FAILURE,
                    }
                }
            };
            self.rest(pass.project(), rest.min(LONGEST_REST));
        }
    }

    fn rest(&self, project: &str, time: Duration) {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.insert(project.to_owned(), Instant::now() + time);
    }

    fn resting(&self) -> BTreeSet<String> {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.retain(|_, until| *until > Instant::now());
        resting.keys().cloned().collect()
    }

    /// Returns the subjects of erasures of one project. Rows that arrived after the request are kept.
    fn scope_of(&self, erasures: &[Erasure]) -> ErasureScope {
        let mut scope_of = ErasureScope {
            project: erasures
                .first()
                .map_or_else(String::new, |one| one.project.clone()),
            installs: Vec::new(),
            users: Vec::new(),
            logs: vec![self.app.log.identity()],
            settled: self.app.clock.now() - ARRIVES,
        };
        for one in erasures {
            scope_of.logs.extend(&one.work.logs);
            let until = one.requested_at;
            match (one.kind, one.subject.parse::<Uuid>()) {
                (ErasureKind::Install, Ok(id)) => scope_of.installs.push(Subject { id, until }),
                (ErasureKind::User, _) => {
                    let id = one.subject.clone();
                    scope_of.users.push(Subject { id, until });
                }
                _ => {}
            }
        }
        scope_of
    }
}

/// Returns the erasure of a subject of [`ErasureScope`]. Subjects count from 1: installs first, then users.
fn of_subject(erasures: &[Erasure], subject: u64) -> Option<Uuid> {
    let of = |kind| erasures.iter().filter(move |one| one.kind == kind);
    let mut all = of(ErasureKind::Install).chain(of(ErasureKind::User));
    let place = usize::try_from(subject).ok()?.checked_sub(1)?;
    all.nth(place).map(|one| one.id)
}
