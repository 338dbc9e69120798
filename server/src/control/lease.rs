//! Work that one server of all that share a control database does at a time.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::clock::Clock;
use crate::store::control::Control;

/// A lease by name. When its holder dies, another server takes it after its life.
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

    /// Does the work if this server has the lease, and stops when it loses the lease. The lease is renewed meanwhile.
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

    /// Lets another server begin at once.
    pub async fn give_back(&self) {
        if let Err(error) = self.control.give_back(self.name, &self.holder).await {
            tracing::debug!(lease = self.name, %error, "the lease ends by itself");
        }
    }
}
