//! Delivers one batch, from its scheduled start until it is acknowledged, rejected or given up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use unjank_random::Random;

use crate::pacing::Due;
use crate::parcel::Parcel;
use crate::parcel_threads::Stop;
use crate::post::{Acceptance, Answer, Attempt, Target};
use crate::{clock, console};

/// The final state of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Acknowledged(Acceptance),
    /// Dropped because the server rejected it. It must not be stored.
    Refused(String),
    /// Given up without an answer. It may be stored once or not at all.
    Unknown(String),
}

/// A batch with its final state.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) parcel: Parcel,
    pub(crate) fate: Fate,
    pub(crate) attempts: Vec<(String, Duration)>,
    /// Time from the scheduled start to the end, including all waits and retries.
    pub(crate) latency: Duration,
    pub(crate) ended: Instant,
}

/// When to retry. Follows the SDK: exponential back-off with jitter, never before `Retry-After`.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    /// Wait before the first retry; doubles with each retry. The SDK uses 15 s, load tests use less.
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
    /// Factor applied to `Retry-After`.
    pub(crate) retry_after_scale: f64,
    /// Number of attempts before a batch is given up; `None` retries until it is acknowledged.
    pub(crate) attempts: Option<u32>,
}

impl Backoff {
    /// Returns the wait after the `attempt`-th failed attempt, counted from 1.
    fn wait(
        &self,
        attempt: u32,
        long: bool,
        retry_after: Option<Duration>,
        random: &mut Random,
    ) -> Duration {
        let doubled = self
            .first
            .saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1).min(16)));
        let longest = if long {
            self.longest.saturating_mul(4)
        } else {
            self.longest
        };
        let grown = if long {
            doubled.saturating_mul(8)
        } else {
            doubled
        };
        let jittered = grown.min(longest).mul_f64(0.5 + random.unit() / 2.0);
        let asked = retry_after
            .unwrap_or_default()
            .mul_f64(self.retry_after_scale);
        jittered.max(asked)
    }
}

/// State that all deliveries share.
pub(crate) struct Carrier {
    pub(crate) target: Target,
    pub(crate) backoff: Backoff,
    /// One permit per connection.
    pub(crate) connections: Semaphore,
    pub(crate) stop: Stop,
}

/// Sends the batch until it reaches a final state. Latency counts from the scheduled start, so that it includes the wait for a
/// connection and the stalls of the server (no coordinated omission).
pub(crate) async fn deliver(carrier: Arc<Carrier>, due: Due) -> Delivery {
    let intended = due.intended.unwrap_or_else(Instant::now);
    let mut parcel = due.parcel;
    let mut random = Random::seeded(&[5, parcel.seq]);
    let mut attempts = Vec::new();
    let fate = loop {
        let attempt = carrier.attempt(&mut parcel).await;
        attempts.push((attempt.status, attempt.took));
        let (why, retry_after, long) = match attempt.answer {
            Answer::Accepted(acceptance) => break Fate::Acknowledged(acceptance),
            Answer::Refused(why) => break Fate::Refused(why),
            Answer::Later {
                why,
                retry_after,
                long,
            } => (why, retry_after, long),
        };
        let made = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
        if carrier.backoff.attempts.is_some_and(|most| made >= most) {
            break Fate::Unknown(why);
        }
        let wait = carrier.backoff.wait(made, long, retry_after, &mut random);
        if !carrier.sleep(wait).await {
            break Fate::Unknown(why);
        }
    };
    let ended = Instant::now();
    Delivery {
        parcel,
        fate,
        attempts,
        latency: ended.saturating_duration_since(intended),
        ended,
    }
}

impl Carrier {
    async fn attempt(&self, parcel: &mut Parcel) -> Attempt {
        // The semaphore is never closed. If it were, sending without a permit would be harmless.
        let _permit = self.connections.acquire().await.ok();
        if let Err(error) = parcel.restamp(clock::now()) {
            console::say(&format!(
                "warning: could not update sent_at of a retry: {error:#}"
            ));
        }
        self.target.post(parcel).await
    }

    /// Sleeps. Returns `false` if the run was stopped before the wait was over.
    async fn sleep(&self, wait: Duration) -> bool {
        const STEP: Duration = Duration::from_millis(100);
        let until = Instant::now() + wait;
        loop {
            if self.stop.asked() {
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            tokio::time::sleep(left.min(STEP)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff() -> Backoff {
        Backoff {
            first: Duration::from_millis(100),
            longest: Duration::from_secs(2),
            retry_after_scale: 0.1,
            attempts: None,
        }
    }

    #[test]
    fn waits_double_up_to_a_maximum_with_jitter() {
        let mut random = Random::seeded(&[1]);
        let mut wait = |attempt| {
            backoff()
                .wait(attempt, false, None, &mut random)
                .as_millis()
        };
        assert!((50..=100).contains(&wait(1)));
        assert!((200..=400).contains(&wait(3)));
        assert!((1_000..=2_000).contains(&wait(30)));
    }

    #[test]
    fn retry_after_is_obeyed_and_scaled() {
        let mut random = Random::seeded(&[1]);
        let wait = backoff().wait(1, false, Some(Duration::from_secs(60)), &mut random);
        assert_eq!(wait, Duration::from_secs(6));
    }

    #[test]
    fn a_rejected_key_is_retried_after_a_longer_wait() {
        let mut random = Random::seeded(&[1]);
        let wait = backoff().wait(1, true, None, &mut random);
        assert!((400..=800).contains(&wait.as_millis()), "{wait:?}");
    }
}
