//! From incidents to messages, and what Alertmanagers must hear again and again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{StreamExt as _, iter};
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;

use super::alertmanager::REFRESH;
use super::message::{Message, Parcel, Told};
use super::sending::Outcome;
use super::{Notifier, SECOND};
use crate::store::control::{Channel, ControlError};

const EVERY: Duration = Duration::from_secs(1);
/// A server that died tells nothing for so long, then another one does.
const LEASE: i64 = 10 * SECOND;
/// How long the delivery log is kept.
const KEPT: i64 = 30 * 86_400 * SECOND;
/// Of Alertmanagers that are reminded, so that some that are away keep none of the others from it.
const AT_A_TIME: usize = 32;
/// Less than the lease: nobody else may tell an end meanwhile.
const REMINDED_WITHIN: Duration = Duration::from_secs(5);

/// Until `shutdown`.
pub async fn tell(notifier: Arc<Notifier>, shutdown: CancellationToken) {
    let mut every = interval(EVERY);
    let mut refreshed = i64::MIN;
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = every.tick() => {}
        }
        if let Err(error) = notifier.tell_all(&mut refreshed).await {
            tracing::warn!(%error, "incidents wait to be told of");
        }
    }
}

impl Notifier {
    async fn tell_all(&self, refreshed: &mut i64) -> Result<(), ControlError> {
        let now = self.clock.now();
        self.measure(now).await?;
        if !self
            .control
            .take("notifications", &self.holder, now, now + LEASE)
            .await?
        {
            return Ok(());
        }
        // Before the ends of incidents are told: what is sent here must not arrive after them.
        if now.saturating_sub(*refreshed) >= REFRESH {
            *refreshed = now;
            match timeout(REMINDED_WITHIN, self.refresh(now)).await {
                Ok(reminded) => reminded?,
                Err(_) => {
                    tracing::warn!("some Alertmanagers take too long to hear what still fires");
                }
            }
            self.control.forget_notifications(now - KEPT).await?;
        }
        let before = now - self.group_wait;
        for untold in self.control.untold(now, before).await? {
            let messages = self.control.tell(&untold, now).await?;
            tracing::debug!(
                project = untold.project,
                rule = untold.rule,
                messages,
                "told"
            );
        }
        Ok(())
    }

    async fn measure(&self, now: i64) -> Result<(), ControlError> {
        let backlog = self.control.backlog().await?;
        let age = backlog.oldest_created_at.map_or(0, |oldest| now - oldest);
        self.metrics.waiting.set(backlog.waiting);
        self.metrics.oldest_seconds.set(age.max(0) / SECOND);
        Ok(())
    }

    /// Alertmanagers hear of everything that they were told and that still fires. Not in the log: the next time comes soon.
    async fn refresh(&self, now: i64) -> Result<(), ControlError> {
        let channels = self.control.alertmanagers().await?;
        let each = iter(channels).map(|channel| self.refresh_one(channel, now));
        let all: Vec<_> = each.buffer_unordered(AT_A_TIME).collect().await;
        all.into_iter().collect()
    }

    async fn refresh_one(&self, channel: Channel, now: i64) -> Result<(), ControlError> {
        let incidents = self.control.still_firing(channel.id).await?;
        if incidents.is_empty() {
            return Ok(());
        }
        let message = Message::Incidents(Told {
            status: "firing".to_owned(),
            incidents,
        });
        let parcel = Parcel {
            project: &channel.project,
            key: &format!("refresh:{}:{now}", channel.id),
            subject: "",
            message: &message,
            public_url: &self.public_url,
            now,
        };
        let outcome = self.send(&channel, &parcel).await;
        if outcome != Outcome::Delivered {
            tracing::warn!(channel = %channel.id, ?outcome, "an Alertmanager does not hear what still fires");
        }
        self.metrics.count(channel.kind.as_str(), outcome.name());
        Ok(())
    }
}
