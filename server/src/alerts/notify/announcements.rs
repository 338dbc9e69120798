//! Creates messages about incidents, and repeats alerts to Alertmanagers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{StreamExt as _, iter};
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;
use unjank_database::{Channel, ControlError};
use unjank_foundation::clock::UnixTime;

use super::Notifier;
use super::alertmanager::{LIFETIME, REFRESH};
use super::message::{IncidentMessage, Message, OutgoingMessage};
use super::outcome::Outcome;

const EVERY: Duration = Duration::from_secs(1);
/// When a server dies, another one takes over after this time.
const LEASE: Duration = Duration::from_secs(10);
/// How long the delivery log is kept.
const KEPT: Duration = Duration::from_secs(30 * 86_400);
/// How many Alertmanagers are refreshed at a time, so that unreachable ones do not block the others.
const AT_A_TIME: usize = 32;
/// Shorter than the lease, so that no other server announces the end of an incident during a refresh.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs until `shutdown`.
pub async fn announce_incidents(notifier: Arc<Notifier>, shutdown: CancellationToken) {
    let mut every = interval(EVERY);
    let mut refreshed = UnixTime::default();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = every.tick() => {}
        }
        if let Err(error) = notifier.announce_all(&mut refreshed).await {
            tracing::warn!(%error, "failed to create messages about incidents");
        }
    }
}

impl Notifier {
    async fn announce_all(&self, refreshed: &mut UnixTime) -> Result<(), ControlError> {
        let now = self.clock.now();
        self.measure(now).await?;
        if !self
            .control
            .take_lease("notifications", &self.holder, now, now + LEASE)
            .await?
        {
            return Ok(());
        }
        // Refresh before the ends of incidents are announced: a refresh must not arrive after them.
        if now.since(*refreshed) >= REFRESH {
            *refreshed = now;
            match timeout(REFRESH_TIMEOUT, self.refresh(now)).await {
                Ok(result) => result?,
                Err(_) => {
                    tracing::warn!("the refresh of Alertmanagers timed out");
                }
            }
            self.control
                .delete_finished_notifications(now - KEPT)
                .await?;
        }
        let before = now - self.group_wait;
        for unannounced in self.control.unannounced(now, before).await? {
            let announced = self.control.announce_incidents(&unannounced, now).await?;
            let messages = announced.messages;
            self.forward(&unannounced.project, &announced.incidents)
                .await;
            tracing::debug!(
                project = unannounced.project,
                rule = unannounced.rule,
                messages,
                "created messages about incidents"
            );
        }
        Ok(())
    }

    async fn measure(&self, now: UnixTime) -> Result<(), ControlError> {
        let backlog = self.control.backlog().await?;
        let oldest = backlog.oldest_created_at.unwrap_or(now);
        self.metrics.waiting.set(backlog.waiting);
        self.metrics
            .oldest_seconds
            .set((now.as_secs() - oldest.as_secs()).max(0));
        Ok(())
    }

    /// Repeats to each Alertmanager the alerts it knows that still fire. It also repeats their ends while an alert that was sent before the
    /// end could be valid, because such a refresh may arrive late, from a server that has lost the lease. Nothing is retried, because the
    /// next refresh is soon.
    async fn refresh(&self, now: UnixTime) -> Result<(), ControlError> {
        let channels = self.control.alertmanagers().await?;
        let each = iter(channels).map(|channel| self.refresh_one(channel, now));
        let all: Vec<_> = each.buffer_unordered(AT_A_TIME).collect().await;
        all.into_iter().collect()
    }

    async fn refresh_one(&self, channel: Channel, now: UnixTime) -> Result<(), ControlError> {
        let since = now - LIFETIME;
        let incidents = self.control.incidents_to_repeat(channel.id, since).await?;
        if incidents.is_empty() {
            return Ok(());
        }
        let message = Message::Incidents(IncidentMessage {
            status: "firing".to_owned(),
            incidents,
        });
        let parcel = OutgoingMessage {
            project: &channel.project,
            key: &format!("refresh:{}:{now}", channel.id),
            subject: "",
            message: &message,
            public_url: &self.public_url,
            now,
        };
        let outcome = self.send(&channel, &parcel).await;
        if outcome != Outcome::Delivered {
            tracing::warn!(channel = %channel.id, ?outcome, "failed to refresh an Alertmanager");
        }
        self.metrics.count(channel.kind.as_str(), outcome.name());
        Ok(())
    }
}
