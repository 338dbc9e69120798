//! Sends saved messages until they are delivered: a few at a time, one per channel.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use unjank_database::{Attempt, Channel, ControlError, Notification};
use unjank_foundation::clock::UnixTime;

use super::Notifier;
use super::back_off::MESSAGES;
use super::message::{Message, OutgoingMessage};
use super::outcome::Outcome;

const LOOK_EVERY: Duration = Duration::from_millis(500);
const AT_A_TIME: usize = 16;
/// Limits an attempt even if the clock is set back.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(20);
const CLAIM: Duration = Duration::from_secs(30);
/// A claim outlives its attempt by at least this time, so that no other server sends a message in flight. It allows for clocks that differ.
const MARGIN: Duration = Duration::from_secs(10);

/// Runs until `shutdown`, then finishes the attempts in flight.
pub async fn deliver(notifier: Arc<Notifier>, shutdown: CancellationToken) {
    // Attempts are tasks, because one that holds a database connection must make progress while this loop claims the next ones.
    let mut in_flight = JoinSet::new();
    loop {
        for claimed in notifier.claim(AT_A_TIME - in_flight.len()).await {
            let notifier = Arc::clone(&notifier);
            in_flight.spawn(async move { notifier.attempt(claimed).await });
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(ended) = in_flight.join_next() => log_failure(ended),
            () = sleep(LOOK_EVERY) => {}
        }
    }
    while let Some(ended) = in_flight.join_next().await {
        log_failure(ended);
    }
}

/// Logs a failed attempt. The message is retried when its claim ends.
fn log_failure(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "an attempt to send a notification failed");
    }
}

impl Notifier {
    async fn claim(&self, free: usize) -> Vec<Notification> {
        let now = self.clock.now();
        let Some(free) = u32::try_from(free).ok().filter(|free| *free > 0) else {
            return Vec::new();
        };
        let claimed = self.control.claim(now, now + CLAIM, free).await;
        claimed.unwrap_or_else(|error| {
            tracing::warn!(%error, "failed to claim notifications");
            Vec::new()
        })
    }

    async fn attempt(&self, claimed: Notification) {
        if let Err(error) = self.try_attempt(&claimed).await {
            // The message is sent again with the same key when its claim ends.
            tracing::warn!(notification = %claimed.id, %error, "failed to read the channel of a notification or to save the outcome");
        }
    }

    async fn try_attempt(&self, claimed: &Notification) -> Result<(), ControlError> {
        let channel = self
            .control
            .channel(&claimed.project, claimed.channel)
            .await?;
        let message: Result<Message, _> = serde_json::from_value(claimed.body.clone());
        let outcome = match &message {
            Ok(_) if !channel.fields.enabled => {
                Outcome::Never("the channel is disabled".to_owned())
            }
            Ok(message) => {
                let Some(outcome) = self.send_in_time(claimed, &channel, message).await? else {
                    tracing::warn!(notification = %claimed.id, "the claim on a notification ended before it could be sent");
                    return Ok(());
                };
                outcome
            }
            Err(error) => Outcome::Never(format!(
                "this version of the server cannot read the message: {error}"
            )),
        };
        self.metrics.count(channel.kind.as_str(), outcome.name());
        let now = self.clock.now();
        let attempt = settled(claimed, outcome, now);
        if let Attempt::Later { error, .. } | Attempt::GivenUp { error } = &attempt {
            tracing::warn!(channel = channel.fields.name, attempts = claimed.attempts, %error, "a notification was not delivered");
        }
        self.control.settle(claimed, &attempt, now).await?;
        Ok(())
    }

    /// Sends a message while its claim lasts. Returns `None` if another server has claimed it, or may do so before an attempt ends.
    async fn send_in_time(
        &self,
        claimed: &Notification,
        channel: &Channel,
        message: &Message,
    ) -> Result<Option<Outcome>, ControlError> {
        // Each earlier step may have taken long, so this is the last one before the message is sent.
        if !self.control.is_claimed(claimed).await? {
            return Ok(None);
        }
        let now = self.clock.now();
        let left = (claimed.next_attempt_at - MARGIN).since(now);
        if left.is_zero() {
            return Ok(None);
        }
        let parcel = OutgoingMessage {
            project: &claimed.project,
            key: &claimed.key,
            subject: &claimed.subject,
            message,
            public_url: &self.public_url,
            now,
        };
        let sent = timeout(left.min(LONGEST_ATTEMPT), self.send(channel, &parcel)).await;
        let sent = sent.unwrap_or_else(|_| Outcome::later("the attempt timed out"));
        Ok(Some(sent))
    }
}

fn settled(claimed: &Notification, outcome: Outcome, now: UnixTime) -> Attempt {
    // The last byte of the id is random.
    let dice = claimed.id.as_bytes().last().copied().unwrap_or_default();
    match outcome {
        Outcome::Delivered => Attempt::Delivered,
        Outcome::Never(error) => Attempt::GivenUp { error },
        Outcome::Later { error, retry_after } => {
            let dice = f64::from(dice) / 255.0;
            match MESSAGES.next_attempt(claimed.attempts, now, retry_after, dice) {
                Some(at) => Attempt::Later { at, error },
                None => Attempt::GivenUp { error },
            }
        }
    }
}
