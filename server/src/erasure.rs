//! Carries out erasures: deletes what is stored of an install, of a user id, or of a whole project.
//!
//! One server at a time does it, a pass at a time. A pass is a list of steps, and what it has done is saved after each of them. So a server that is
//! killed, or that loses its lease, loses nothing. Every server looks after its own ingest log and dead-letter folder: when its log has drained what
//! arrived before an erasure, and once a day for 30 days, it looks whether rows have come back, and opens the erasure again if so.

mod pass;
mod returned;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::pass::Pass;
use self::returned::Returned;
use crate::app::App;
use crate::control::Lease;
use crate::store::control::{ControlError, Erasure, ErasureKind};
use crate::store::{DeadLetterError, DeadLetters, Failure, Subjects, Whose};

/// A pass begins this long after the request, so that requests of one moment share a pass.
const GATHER: i64 = 2_000_000;
const EVERY: Duration = Duration::from_secs(2);
/// How long another server waits before it takes over.
const LEASE: Duration = Duration::from_secs(60);

/// The task.
pub struct Eraser {
    pub app: Arc<App>,
    pub dead_letters: DeadLetters,
    lease: Lease,
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
        }
    }

    /// Nothing is lost when it is dropped in the middle.
    pub async fn run(self, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.go_on() => {}
        }
        self.lease.give_back().await;
    }

    async fn go_on(&self) {
        let mut every = interval(EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut returned = Returned::default();
        loop {
            every.tick().await;
            self.lease.during(self.passes()).await;
            if let Err(error) = returned.look(self).await {
                tracing::debug!(%error, "cannot look for erased rows that came back");
            }
        }
    }

    /// Carries out all passes that wait.
    async fn passes(&self) {
        loop {
            let now = self.app.clock.now();
            let erasures = match self.app.control.next_pass(now - GATHER, now).await {
                Ok(erasures) if erasures.is_empty() => return,
                Ok(erasures) => erasures,
                Err(error) => return tracing::debug!(%error, "erasures cannot be read"),
            };
            let mut pass = Pass::new(self, erasures);
            if let Err(error) = pass.run().await {
                tracing::warn!(%error, "an erasure is not done yet: it is tried again");
                return pass.tell(&error).await;
            }
        }
    }
}

/// Whose rows some erasures of installs and users mean. Each erasure says up to when.
fn whose<'e>(erasures: impl Iterator<Item = (&'e Erasure, i64)>) -> Whose {
    let mut whose = Whose::default();
    for (erasure, before) in erasures {
        whose.project.clone_from(&erasure.project);
        let known = whose.some.iter().position(|one| one.before == before);
        let at = known.unwrap_or_else(|| {
            whose.some.push(Subjects {
                before,
                ..Subjects::default()
            });
            whose.some.len() - 1
        });
        let Some(subjects) = whose.some.get_mut(at) else {
            continue;
        };
        match erasure.kind {
            ErasureKind::Install => subjects
                .installs
                .extend(erasure.subject.parse::<Uuid>().ok()),
            ErasureKind::User => subjects.users.push(erasure.subject.clone()),
            ErasureKind::Project => {}
        }
    }
    whose
}
