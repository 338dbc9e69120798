//! Sends what projects forward to their collectors. Best effort: what waits is in memory only, and neither a slow nor a missing collector
//! delays a batch.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::alerts::notify::{BackOff, Outbound, Outcome, send};
use crate::clock::Clock;
use crate::control::Access;
use crate::forward::{ForwardQueue, Result, Work};

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Requests at a time, each to another collector.
const AT_A_TIME: usize = 16;
const BACK_OFF: BackOff = BackOff {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(60),
    // The bound of the queue ends the wait.
    most_attempts: i64::MAX,
};

/// What the task needs.
#[derive(Clone)]
pub struct Forwarder {
    pub queue: Arc<ForwardQueue>,
    pub access: Arc<Access>,
    pub outbound: Outbound,
    pub clock: Clock,
}

impl Forwarder {
    /// Runs until `shutdown`. What still waits then is lost.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut in_flight = JoinSet::new();
        loop {
            while in_flight.len() < AT_A_TIME
                && let Some(work) = self.queue.take(self.clock.now())
            {
                in_flight.spawn(self.clone().attempt(work));
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some(_) = in_flight.join_next() => {}
                () = self.queue.arrived() => {}
                () = sleep(LOOK_EVERY), if self.queue.has_waiting() => {}
            }
        }
    }

    async fn attempt(self, work: Work) {
        let outcome = self.send(&work).await;
        let now = self.clock.now();
        let result = match outcome {
            None => Result::Removed,
            Some(Outcome::Delivered) => Result::Delivered { at: now },
            Some(Outcome::Never(error)) => Result::Refused { error },
            Some(Outcome::Later { error, retry_after }) => {
                let dice = Uuid::new_v4().as_bytes().last().copied();
                let dice = f64::from(dice.unwrap_or_default()) / 255.0;
                let at = BACK_OFF.next_attempt(work.attempts + 1, now, retry_after, dice);
                let at = at.unwrap_or(now + BACK_OFF.longest);
                Result::Later { at, error }
            }
        };
        if let Result::Refused { error } | Result::Later { error, .. } = &result {
            tracing::warn!(project = %work.project, kind = work.piece.kind.name(), events = work.piece.events, error, "events were not forwarded");
        }
        self.queue.settle(work, result);
    }

    /// Sends a request. Returns `None` if the project forwards nothing any more.
    async fn send(&self, work: &Work) -> Option<Outcome> {
        let forward = self.access.forward(&work.project)?;
        let url = match self.outbound.target(&forward.url(work.piece.kind)) {
            Ok(url) => url,
            Err(error) => return Some(Outcome::Never(error)),
        };
        let body = work.piece.body.clone();
        let request = self.outbound.request(url, "application/x-protobuf", body);
        Some(send(request.headers(forward.headers().clone())).await)
    }
}
