//! Leases: of several servers with a common control database, only one at a time does a given job.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use unjank_database::Control;
use unjank_foundation::clock::Clock;
use uuid::Uuid;

/// A named lease. It expires unless its holder renews it.
pub struct Lease {
    control: Control,
    clock: Clock,
    name: &'static str,
    /// Identifies this server.
    holder: String,
    life: Duration,
}

impl Lease {
    pub fn new(control: Control, clock: Clock, (name, life): (&'static str, Duration)) -> Self {
        Self {
            control,
            clock,
            name,
            holder: Uuid::new_v4().to_string(),
            life,
        }
    }

    /// Runs a task until the server shuts down, then releases the lease so that another server can take it at once.
    pub async fn until(&self, shutdown: CancellationToken, task: impl Future<Output = ()>) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = task => {}
        }
        self.release().await;
    }

    /// Does the work if this server can take the lease, and renews the lease until the work is done. Cancels the work if the lease is lost
    /// or could not be renewed before its end. A server that was paused can still send a statement that it had begun: what only one
    /// server may write needs a condition in the statement.
    pub async fn during(&self, work: impl Future<Output = ()>) {
        if !self.take().await {
            return;
        }
        tokio::select! {
            biased;
            () = self.lost() => tracing::warn!(lease = self.name, "the lease is lost; another server can take over"),
            () = work => {}
        }
    }

    async fn lost(&self) {
        loop {
            sleep(self.life / 4).await;
            // The work ends before the lease does, even if the database does not answer.
            let is_renewed = timeout(self.life / 2, self.take()).await;
            if is_renewed != Ok(true) {
                return;
            }
        }
    }

    async fn take(&self) -> bool {
        let now = self.clock.now();
        let taken = self
            .control
            .take_lease(self.name, &self.holder, now, now + self.life);
        taken.await.unwrap_or_else(|error| {
            tracing::warn!(lease = self.name, %error, "cannot take the lease");
            false
        })
    }

    async fn release(&self) {
        if let Err(error) = self.control.release_lease(self.name, &self.holder).await {
            tracing::debug!(lease = self.name, %error, "cannot release the lease; it will expire");
        }
    }
}
