//! The claims of servers that share a control database, and the connection of a server to them.

use std::fmt::Debug;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::{Instant, sleep};
use unjank_database::{
    Claim, ClaimModel, ClaimStore, Claiming, ControlError, EndedLease, TakeOver,
};
use uuid::Uuid;

use super::chance::{Chance, History};
use super::disk::SimulatedDisk;
use super::host::Host;
use crate::store::old_fault::{OldFault, is_back};

/// When the clock of PostgreSQL begins, in microseconds since the epoch. It differs from the clocks of the servers.
const BEGAN_AT: i64 = 1_795_000_000_000_000;

/// PostgreSQL, which all servers share.
#[derive(Clone, Debug)]
pub(super) struct Control {
    state: Arc<Mutex<State>>,
    began: Instant,
}

#[derive(Debug, Default)]
struct State {
    model: ClaimModel,
    /// How many of a thousand statements fail, before or after they have taken effect.
    failing: u64,
}

impl Control {
    pub(super) fn new() -> Self {
        Self {
            state: Arc::default(),
            began: Instant::now(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fail(&self, per_mille: u64) {
        self.state().failing = per_mille;
    }

    /// Microseconds since the epoch.
    fn now(&self) -> i64 {
        BEGAN_AT + i64::try_from(self.began.elapsed().as_micros()).unwrap_or_default()
    }
}

/// The connection of a process. It never responds once the process has ended.
#[derive(Clone)]
pub(super) struct SimulatedClaims {
    pub(super) control: Control,
    pub(super) host: Arc<Host>,
    pub(super) disk: SimulatedDisk,
    pub(super) chance: Chance,
    pub(super) history: History,
    /// The name of the server.
    pub(super) name: &'static str,
    /// The holder of the lease on the log.
    pub(super) lease: Option<String>,
}

impl SimulatedClaims {
    /// Runs a transaction. A caller that gives up before the transaction is done rolls it back.
    async fn ask<T: Debug + Send>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut ClaimModel, i64) -> T + Send,
    ) -> Result<T, ControlError> {
        self.reach().await?;
        let answer = {
            let now = self.control.now();
            work(&mut self.control.state().model, now)
        };
        self.history
            .say(|| format!("{} in PostgreSQL: {what}: {answer:?}", self.name));
        self.reach().await?;
        Ok(answer)
    }

    /// Takes a message to PostgreSQL, or back.
    async fn reach(&self) -> Result<(), ControlError> {
        sleep(self.chance.millis(1, 15)).await;
        let failing = self.control.state().failing;
        let is_away = self.host.control_is_away();
        // A host that cannot be reached refuses connections or does not answer at all.
        if self.disk.has_ended() || (is_away && self.chance.happens(500)) {
            return pending().await;
        }
        if is_away || self.chance.happens(failing) {
            let error = "PostgreSQL cannot be reached".to_owned();
            return Err(ControlError::Unavailable(error));
        }
        Ok(())
    }

    /// Whether this is a server with a bug, and not a command with a lease.
    fn has_bug(&self, bug: OldFault) -> bool {
        self.lease.is_none() && is_back(bug)
    }
}

impl ClaimStore for SimulatedClaims {
    async fn replace(&self, log_id: Uuid, claims: &[Claim]) -> Result<Claiming, ControlError> {
        let own = self.lease.as_deref();
        self.ask("claim", |model, now| {
            if is_back(OldFault::ClaimsIgnored) {
                return Ok(Claiming::Claimed(Vec::new()));
            }
            if self.has_bug(OldFault::LeaseIgnored) {
                return Ok(Claiming::Claimed(model.claim(now, log_id, claims)));
            }
            if self.has_bug(OldFault::DrainedLearnsNothing)
                && let Some(ended) = model.check_lease(now, own, log_id)?
            {
                model.forget_lease(log_id, ended);
            }
            Ok(model.replace(now, own, log_id, claims))
        })
        .await?
    }

    async fn release(&self, log_id: Uuid) -> Result<(), ControlError> {
        let release = |model: &mut ClaimModel, now| model.release(now, log_id);
        self.ask("release", release).await
    }

    async fn take_over(&self, log_id: Uuid) -> Result<TakeOver<Self>, ControlError> {
        let take = |model: &mut ClaimModel, now| model.take_over(now, log_id);
        Ok(match self.ask("take over", take).await? {
            TakeOver::Taken(holder) => TakeOver::Taken(Self {
                lease: Some(holder),
                ..self.clone()
            }),
            TakeOver::ServerSeen(at) => TakeOver::ServerSeen(at),
            TakeOver::Held => TakeOver::Held,
        })
    }

    async fn renew(&self, log_id: Uuid) -> Result<bool, ControlError> {
        let own = self.lease.as_deref();
        let renew = |model: &mut ClaimModel, now| model.renew(now, own, log_id);
        self.ask("renew", renew).await
    }

    async fn hand_back(&self, log_id: Uuid) -> Result<(), ControlError> {
        let own = self.lease.as_deref();
        let end = |model: &mut ClaimModel, now| model.hand_back(now, own, log_id);
        self.ask("hand back", end).await
    }

    async fn check_lease(&self, log_id: Uuid) -> Result<Option<EndedLease>, ControlError> {
        let own = self.lease.as_deref();
        let check = |model: &mut ClaimModel, now| {
            if self.has_bug(OldFault::LeaseIgnored) {
                return Ok(None);
            }
            model.check_lease(now, own, log_id)
        };
        self.ask("check the lease", check).await?
    }

    async fn forget_lease(&self, log_id: Uuid, ended: EndedLease) -> Result<(), ControlError> {
        let forget = |model: &mut ClaimModel, _| model.forget_lease(log_id, ended);
        self.ask("forget the lease", forget).await
    }
}
