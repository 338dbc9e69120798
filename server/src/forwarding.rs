//! Sends what projects forward to their collectors. Best effort: what waits is in memory only, and neither a slow nor a missing collector
//! delays a batch.

mod names;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use flate2::write::GzEncoder;
use reqwest::header::{CONTENT_ENCODING, HeaderValue};
use tokio::sync::Mutex;
use tokio::task::{JoinError, JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use unjank_foundation::clock::{Clock, UnixTime};
use unjank_foundation::forward_document::Compression;
use uuid::Uuid;

use crate::access::Access;
use crate::alerts::notify::{BackOff, Outbound, Outcome, quoted, respond, start_of, unsuccessful};
use crate::forward::{ForwardQueue, Result, Work, accepted_in_part, status_message};
use crate::symbols::Symbolicator;

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Requests at a time, each to another collector.
const AT_A_TIME: usize = 16;
/// How long a shutdown sends what waits.
const CLOSING: Duration = Duration::from_secs(5);
/// How much of a collector's answer is read.
const MOST_READ: usize = 64 << 10;
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
    pub symbolicator: Arc<Symbolicator>,
    /// Held while a request gets names.
    pub naming: Arc<Mutex<()>>,
}

impl Forwarder {
    /// Runs until `shutdown`, then sends what still waits, for at most `patience` and five seconds.
    pub async fn run(self, shutdown: CancellationToken, patience: Duration) {
        let mut in_flight = JoinSet::new();
        loop {
            self.start(&mut in_flight);
            tokio::select! {
                () = shutdown.cancelled() => break,
                Some(ended) = in_flight.join_next() => report(ended),
                () = self.queue.arrived() => {}
                () = sleep(LOOK_EVERY), if self.queue.has_waiting() => {}
            }
        }
        let patience = patience.min(CLOSING);
        let now = self.clock.now();
        self.queue.begin_to_close(now);
        let rest = self.send_rest(&mut in_flight, now + patience);
        if timeout(patience, rest).await.is_err() {
            in_flight.shutdown().await;
        }
        for loss in self.queue.close() {
            let (events, kind, project) = (loss.events, loss.kind.name(), &loss.project);
            let why = loss.error.as_deref();
            let why = why.unwrap_or("the server shut down before the collector had taken them");
            tracing::warn!("{events} {kind} of project {project} were not forwarded: {why}");
        }
    }

    fn start(&self, in_flight: &mut JoinSet<()>) {
        while in_flight.len() < AT_A_TIME
            && let Some(work) = self.queue.take(self.clock.now())
        {
            in_flight.spawn(self.clone().attempt(work));
        }
    }

    /// Sends what waits, until nothing more can be sent before `last`.
    async fn send_rest(&self, in_flight: &mut JoinSet<()>, last: UnixTime) {
        loop {
            self.start(in_flight);
            if in_flight.is_empty() && !self.queue.has_due(last) {
                return;
            }
            tokio::select! {
                Some(ended) = in_flight.join_next() => report(ended),
                () = sleep(LOOK_EVERY) => {}
            }
        }
    }

    async fn attempt(self, mut work: Work) {
        let project = Arc::clone(&work.project);
        self.name_functions(&project, &mut work.piece).await;
        let result = self.send(&work).await;
        log(&work, &result);
        work.settle(result);
    }

    async fn send(&self, work: &Work) -> Result {
        let Some(forward) = self.access.forward(&work.project) else {
            return Result::Removed;
        };
        let url = match self.outbound.target(&forward.url(work.piece.kind)) {
            Ok(url) => url,
            Err(error) => return Result::Refused { error },
        };
        let mut body = work.piece.body.clone();
        let mut headers = forward.headers().clone();
        if forward.document().compression == Compression::Gzip {
            let Ok(Ok(compressed)) = spawn_blocking(move || gzip(&body)).await else {
                return Result::Abandoned;
            };
            body = compressed;
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let request = self.outbound.request(url, "application/x-protobuf", body);
        let mut response = match respond(request.headers(headers)).await {
            Ok(response) => response,
            Err(outcome) => return self.result(outcome, work.attempts),
        };
        let said = start_of(&mut response, MOST_READ).await;
        let status = response.status();
        if status.is_success() {
            let (rejected, message) = accepted_in_part(&said);
            return Result::Delivered {
                at: self.clock.now(),
                rejected: rejected.min(work.piece.events),
                message: Some(quoted(&forward.without_secrets(&message)))
                    .filter(|message| !message.is_empty()),
            };
        }
        let text = status_message(&said);
        let text = text.unwrap_or_else(|| String::from_utf8_lossy(&said).into_owned());
        let text = forward.without_secrets(&text);
        // The specification of OTLP names these.
        let is_retryable = matches!(status.as_u16(), 429 | 502 | 503 | 504);
        self.result(unsuccessful(&response, &text, is_retryable), work.attempts)
    }

    fn result(&self, outcome: Outcome, attempts: i64) -> Result {
        let now = self.clock.now();
        match outcome {
            Outcome::Delivered => Result::Delivered {
                at: now,
                rejected: 0,
                message: None,
            },
            Outcome::Never(error) => Result::Refused { error },
            Outcome::Later { error, retry_after } => {
                let dice = Uuid::new_v4().as_bytes().last().copied();
                let dice = f64::from(dice.unwrap_or_default()) / 255.0;
                let at = BACK_OFF.next_attempt(attempts + 1, now, retry_after, dice);
                Result::Later {
                    at: at.unwrap_or(now + BACK_OFF.longest),
                    is_asked: retry_after.is_some(),
                    error,
                }
            }
        }
    }
}

fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(body)?;
    encoder.finish()
}

fn log(work: &Work, result: &Result) {
    let (project, kind, events) = (&work.project, work.piece.kind.name(), work.piece.events);
    match result {
        Result::Refused { error } | Result::Later { error, .. } => {
            tracing::warn!(%project, kind, events, error, "events were not forwarded");
        }
        Result::Delivered {
            rejected: rejected @ 1..,
            message,
            ..
        } => {
            let message = message.as_deref().unwrap_or_default();
            tracing::warn!(%project, kind, events, rejected, message, "the collector rejected events");
        }
        _ => {}
    }
}

/// An attempt that panicked has already given its request up.
fn report(ended: std::result::Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "an attempt to forward events failed");
    }
}
