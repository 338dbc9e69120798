//! Leases: several servers share a control database, and one of them at a time does some work.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::clock::Clock;
use crate::store::control::Control;

/// A lease with a name. It ends by itself when its holder does not renew it.
pub struct Lease {
    control: Arc<dyn Control>,
    clock: Clock,
    name: &'static str,
    /// Names this server.
    holder: String,
    life: Duration,
}

impl Lease {
    pub fn new(
        control: Arc<dyn Control>,
        clock: Clock,
        (name, life): (&'static str, Duration),
    ) -> Self {
        Self {
            control,
            clock,
            name,
            holder: Uuid::new_v4().to_string(),
            life,
        }
    }

    /// Runs a task until the server shuts down. Then another server can take the lease at once.
    pub async fn until(&self, shutdown: CancellationToken, task: impl Future<Output = ()>) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = task => {}
        }
        self.give_back().await;
    }

    /// Does the work if this server has the lease, and renews the lease until the work is done. Stops the work when the lease is lost.
    pub async fn during(&self, work: impl Future<Output = ()>) {
        if !self.take().await {
            return;
        }
        tokio::select! {
            () = self.lost() => tracing::warn!(lease = self.name, "another server took the lease over"),
            () = work => {}
        }
    }

    async fn lost(&self) {
        loop {
            tokio::time::sleep(self.life / 4).await;
            if !self.take().await {
                return;
            }
        }
    }

    async fn take(&self) -> bool {
        let now = self.clock.now();
        let life = i64::try_from(self.life.as_micros()).unwrap_or(i64::MAX / 2);
        let taken = self.control.take(self.name, &self.holder, now, now + life);
        taken.await.unwrap_or_else(|error| {
            tracing::warn!(lease = self.name, %error, "the lease cannot be taken");
            false
        })
    }

    async fn give_back(&self) {
        if let Err(error) = self.control.give_back(self.name, &self.holder).await {
            tracing::debug!(lease = self.name, %error, "the lease ends by itself");
        }
    }
}
