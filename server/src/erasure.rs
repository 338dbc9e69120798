//! Carries out erasures: deletes what is stored of an install, of a user id, or of a whole project.
//!
//! One server at a time does it, a pass at a time. A pass is a list of steps, and what it has done is saved after each of them. So a server that is
//! killed, or that loses its lease, loses nothing. Every server looks after its own ingest log and dead-letter folder: when its log has drained what
//! arrived before an erasure, and once a day for 30 days, it looks whether rows have come back, and opens the erasure again if so.

mod pass;
mod returned;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::pass::Pass;
use self::returned::Returned;
use crate::app::App;
use crate::control::Lease;
use crate::store::control::{ControlError, Erasure, ErasureKind};
use crate::store::{DeadLetterError, DeadLetters, Failure, Subject, Whose};

/// A pass begins this long after the request, so that requests of one moment share a pass.
const GATHER: i64 = 2_000_000;
const EVERY: Duration = Duration::from_secs(2);
/// How long another server waits before it takes over.
const LEASE: Duration = Duration::from_secs(60);
/// After a failure, passes of other projects go first.
const AFTER_FAILURE: Duration = Duration::from_secs(30);
/// After a pass a project rests as long as the pass took, but not longer than this.
const LONGEST_REST: Duration = Duration::from_secs(3_600);
/// Rows of other servers have arrived in ClickHouse this long after they were sent.
const ARRIVES: i64 = 600_000_000;

/// The task.
pub struct Eraser {
    app: Arc<App>,
    dead_letters: DeadLetters,
    lease: Lease,
    /// Projects that rest, and until when.
    resting: Mutex<HashMap<String, Instant>>,
}

/// Why a step did not succeed. It is tried again.
#[derive(Debug, thiserror::Error)]
enum NotYet {
    #[error("the control database: {0}")]
    Control(#[from] ControlError),
    #[error("ClickHouse: {0}")]
    Store(#[from] Failure),
    #[error("the dead-letter folder: {0}")]
    DeadLetters(#[from] DeadLetterError),
    /// It goes on by itself.
    #[error("it takes long")]
    Continues,
}

impl Eraser {
    pub fn new(app: Arc<App>, dead_letters: DeadLetters) -> Self {
        let lease = Lease::new(
            Arc::clone(&app.control),
            app.clock.clone(),
            ("erasure", LEASE),
        );
        Self {
            app,
            dead_letters,
            lease,
            resting: Mutex::default(),
        }
    }

    /// Nothing is lost when it is dropped in the middle.
    pub async fn run(self, shutdown: CancellationToken) {
        self.lease.until(shutdown, self.go_on()).await;
    }

    async fn go_on(&self) {
        let mut every = interval(EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut returned = Returned::default();
        loop {
            every.tick().await;
            self.lease.during(Box::pin(self.passes())).await;
            if let Err(error) = returned.look(self).await {
                tracing::debug!(%error, "cannot look for erased rows that came back");
            }
        }
    }

    /// Carries out all passes that wait.
    async fn passes(&self) {
        loop {
            let (now, resting) = (self.app.clock.now(), self.resting());
            let next = self.app.control.next_pass(now - GATHER, &resting, now);
            let erasures = match next.await {
                Ok(erasures) if erasures.is_empty() => return,
                Ok(erasures) => erasures,
                Err(error) => return tracing::debug!(%error, "erasures cannot be read"),
            };
            let began = Instant::now();
            let mut pass = Pass::new(self, erasures);
            let rest = match pass.run().await {
                Ok(()) => began.elapsed(),
                Err(error) => {
                    pass.tell(&error).await;
                    AFTER_FAILURE
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

    /// The subjects of some erasures of one project. Rows that arrived after the request stay.
    fn whose(&self, erasures: &[Erasure]) -> Whose {
        let mut whose = Whose {
            project: erasures
                .first()
                .map_or_else(String::new, |one| one.project.clone()),
            installs: Vec::new(),
            users: Vec::new(),
            logs: vec![self.app.log.identity()],
            settled: self.app.clock.now() - ARRIVES,
        };
        for one in erasures {
            whose.logs.extend(&one.work.logs);
            let until = one.requested_at;
            match (one.kind, one.subject.parse::<Uuid>()) {
                (ErasureKind::Install, Ok(id)) => whose.installs.push(Subject { id, until }),
                (ErasureKind::User, _) => {
                    let id = one.subject.clone();
                    whose.users.push(Subject { id, until });
                }
                _ => {}
            }
        }
        whose
    }
}

/// The erasure of a subject of [`Whose`], counted from 1: first the installs, then the users.
fn of_subject(erasures: &[Erasure], subject: u64) -> Option<Uuid> {
    let of = |kind| erasures.iter().filter(move |one| one.kind == kind);
    let mut all = of(ErasureKind::Install).chain(of(ErasureKind::User));
    let place = usize::try_from(subject).ok()?.checked_sub(1)?;
    all.nth(place).map(|one| one.id)
}
