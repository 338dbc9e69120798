//! Sending what is written, until it arrives: a few at a time, one of each channel.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::back_off::next_attempt;
use super::message::{Message, Parcel};
use super::sending::Outcome;
use super::{Notifier, SECOND};
use crate::store::control::{Attempt, ControlError, Notification};

const LOOK_EVERY: Duration = Duration::from_millis(500);
const AT_A_TIME: usize = 16;
/// A claim outlives its attempt, so that nobody else sends what is still being sent.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(20);
const CLAIM: i64 = 30 * SECOND;

/// Until `shutdown`; what is under way then is finished.
pub async fn deliver(notifier: Arc<Notifier>, shutdown: CancellationToken) {
    // Tasks, not futures of this one: an attempt that holds a connection of the database goes on while the next ones are claimed.
    let mut under_way = JoinSet::new();
    loop {
        for claimed in notifier.claim(AT_A_TIME - under_way.len()).await {
            let notifier = Arc::clone(&notifier);
            under_way.spawn(async move { notifier.attempt(claimed).await });
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(ended) = under_way.join_next() => say(ended),
            () = sleep(LOOK_EVERY) => {}
        }
    }
    while let Some(ended) = under_way.join_next().await {
        say(ended);
    }
}

/// Its claim ends, then it is tried again.
fn say(ended: Result<(), JoinError>) {
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
            tracing::warn!(%error, "notifications wait");
            Vec::new()
        })
    }

    async fn attempt(&self, claimed: Notification) {
        if let Err(error) = self.try_attempt(&claimed).await {
            // The claim ends, then it is sent again, with the same key.
            tracing::warn!(notification = %claimed.id, %error, "what became of a notification cannot be noted");
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
                Outcome::Never("the channel is switched off".to_owned())
            }
            Ok(message) => {
                let parcel = Parcel {
                    project: &claimed.project,
                    key: &claimed.key,
                    subject: &claimed.subject,
                    message,
                    public_url: &self.public_url,
                    now: self.clock.now(),
                };
                let sent = timeout(LONGEST_ATTEMPT, self.send(&channel, &parcel)).await;
                sent.unwrap_or_else(|_| Outcome::later("it took too long"))
            }
            Err(error) => Outcome::Never(format!("another version wrote it: {error}")),
        };
        self.metrics.count(channel.kind.as_str(), outcome.name());
        let now = self.clock.now();
        let attempt = settled(claimed, outcome, now);
        if let Attempt::Later { error, .. } | Attempt::GivenUp { error } = &attempt {
            tracing::warn!(channel = channel.fields.name, attempts = claimed.attempts, %error, "a notification did not arrive");
        }
        self.control.settle(claimed, &attempt, now).await?;
        Ok(())
    }
}

fn settled(claimed: &Notification, outcome: Outcome, now: i64) -> Attempt {
    // The last byte of the id is random.
    let dice = claimed.id.as_bytes().last().copied().unwrap_or_default();
    match outcome {
        Outcome::Delivered => Attempt::Delivered,
        Outcome::Never(error) => Attempt::GivenUp { error },
        Outcome::Later { error, retry_after } => {
            let dice = f64::from(dice) / 255.0;
            match next_attempt(claimed.attempts, now, retry_after, dice) {
                Some(at) => Attempt::Later { at, error },
                None => Attempt::GivenUp { error },
            }
        }
    }
}
