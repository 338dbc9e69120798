//! Uploads: which batch is sent next, and what happens to it after the response. `verdict` says what a response means.

use std::path::Path;
use std::time::Duration;

use unjank_protocol::{RateLimit, Signal};
use uuid::Uuid;

use super::back_off::{BackOff, MOST_ASKED};
use super::backlog::{Backlog, First};
use super::batch::{Sealed, Upload};
use super::exchange::{Answer, Outgoing};
use super::form::{Form, ServerForm};
use super::losses::{Losses, Reason};
use super::problem::{self, Problem};
use super::verdict::{Verdict, verdict};
use crate::clock::Moment;
use crate::config::Config;

/// The server takes batches of 1 MiB. A proxy that does not take this much takes nothing.
const SMALL: usize = 16 << 10;
/// The number of times that the largest batch can be halved.
const MOST_IN_A_ROW: u32 = 14;
/// Attempts in one run of the app at a batch that does not arrive as it is sent, with half an hour of waits between them. Others are sent meanwhile.
const MOST_CHANGED: u32 = 8;

/// The connection to the server.
pub(crate) struct Uplink {
    endpoint: String,
    url: String,
    authorization: String,
    timeout: Duration,
    back_off: BackOff,
    form: ServerForm,
    held_back: Vec<(Signal, Moment)>,
    /// The size of the smallest body that was too large. Larger batches are split before they are sent.
    too_large: Option<usize>,
    /// Batches in a row that were too large.
    refused_in_a_row: u32,
    has_accepted: bool,
    pub(crate) sent_bytes: u64,
}

/// A batch that is being sent.
#[derive(Debug)]
pub(crate) struct Attempt {
    batch: Sealed,
    events: u32,
    /// The size of the body.
    bytes: usize,
    form: Form,
    /// The signals of malformed events that are not in the body.
    left_out: Vec<Signal>,
}

/// The result of sending.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Nothing waits any more.
    pub(crate) all: bool,
    /// It is too early for another attempt.
    pub(crate) waits: bool,
    /// The server refused a batch for good.
    pub(crate) refused: bool,
    /// Everything is sent except what cannot be read now.
    pub(crate) unread: bool,
    /// The `ETag` of the server's current configuration.
    pub(crate) config_etag: Option<String>,
}

impl Uplink {
    /// `folder` has what earlier processes learned about the server.
    pub(crate) fn new(config: &Config, folder: Option<&Path>) -> Self {
        let file = folder.map(|folder| folder.join("reads-columns"));
        Self {
            form: ServerForm::new(file, &config.endpoint),
            endpoint: config.endpoint.clone(),
            url: format!("{}/v1/ingest", config.endpoint),
            authorization: format!("Bearer {}", config.key.0),
            timeout: config.request_timeout,
            back_off: BackOff::new(config.first_wait),
            held_back: Vec::new(),
            too_large: None,
            refused_in_a_row: 0,
            has_accepted: false,
            sent_bytes: 0,
        }
    }

    /// Returns whether the server asked to hold back a signal.
    pub(crate) fn holds_back(&self, signal: Signal, now: Moment) -> bool {
        let mut held = self.held_back.iter();
        held.any(|(one, until)| *one == signal && now < *until)
    }

    /// Returns whether it is too early to send.
    pub(crate) fn is_waiting(&self) -> bool {
        self.back_off.waits(Moment::now(), false)
    }

    /// Returns the oldest batch that can be sent now. With `urgent`, does not wait after a network failure, because a caller is
    /// blocked. If there is no such batch, notes the reason in `sent`.
    pub(crate) fn next(
        &mut self,
        backlog: &mut Backlog,
        losses: &Losses,
        urgent: bool,
        sent: &mut Sent,
    ) -> Option<(Attempt, Outgoing)> {
        loop {
            if self.back_off.waits(Moment::now(), urgent) {
                sent.waits = true;
                return None;
            }
            let batch = match backlog.first(losses) {
                First::Batch(batch) => batch,
                First::Nothing => {
                    sent.all = true;
                    return None;
                }
                First::Unreadable => {
                    sent.unread = true;
                    return None;
                }
            };
            let Ok(upload) = batch.request(self.form.reads_columns()) else {
                backlog.refused(&batch, losses);
                continue;
            };
            let events: u32 = batch.events.iter().map(|(_, events)| *events).sum();
            let Upload {
                form,
                body,
                left_out,
            } = upload;
            let bytes = body.len();
            if events > 1 && self.is_too_large(bytes) {
                backlog.split(&batch, losses);
                continue;
            }
            backlog.departs(batch.batch_id);
            self.sent_bytes = self.sent_bytes.saturating_add(bytes as u64);
            let attempt = Attempt {
                batch,
                events,
                bytes,
                form,
                left_out,
            };
            return Some((attempt, self.request(form, body)));
        }
    }

    /// Handles the response to a batch. Returns whether the next one can be sent.
    pub(crate) fn answered(
        &mut self,
        Attempt {
            batch,
            events,
            bytes,
            form,
            left_out,
        }: &Attempt,
        answer: &Answer,
        backlog: &mut Backlog,
        (losses, problem): (&Losses, &Problem),
        sent: &mut Sent,
    ) -> bool {
        if *form == Form::Columns
            && let Ok(response) = answer
            && self.form.refused(response)
        {
            backlog.landed(false, losses);
            problem.print("a batch in columns is refused: batches are JSON from now on");
            return true;
        }
        let verdict = self.verdict(batch.batch_id, answer, problem);
        backlog.landed(matches!(verdict, Verdict::Accepted { .. }), losses);
        match verdict {
            Verdict::Accepted {
                lost,
                rate_limits,
                config_etag,
            } => {
                if let Ok(response) = answer {
                    self.form.accepted(*form, response);
                }
                problem.print(&format!("sent {events} events"));
                backlog.done(batch.batch_id, losses);
                lost.into_iter()
                    .for_each(|(signal, reason, events)| losses.add(signal, reason, events));
                left_out
                    .iter()
                    .for_each(|signal| losses.add(*signal, Reason::Refused, 1));
                self.hold_back(&rate_limits);
                self.back_off.reset();
                (self.has_accepted, self.refused_in_a_row) = (true, 0);
                sent.config_etag = config_etag.or(sent.config_etag.take());
            }
            Verdict::Changed { retry_after }
                if backlog.changed_on_its_way(batch, self.back_off.first_wait, losses)
                    < MOST_CHANGED =>
            {
                self.back_off.failed(retry_after, false);
                sent.waits = true;
            }
            Verdict::Refused | Verdict::Changed { .. } => {
                sent.refused = true;
                backlog.refused(batch, losses);
            }
            // A server that takes no small event takes nothing: splitting all that waits would be a flood of requests.
            Verdict::TooLarge if *events <= 1 && *bytes < SMALL && !self.takes_some() => {
                self.back_off.failed(None, true);
                sent.waits = true;
            }
            Verdict::TooLarge => {
                sent.refused |= *events <= 1;
                self.refused_in_a_row = self.refused_in_a_row.saturating_add(1);
                self.too_large = Some(self.too_large.map_or(*bytes, |least| least.min(*bytes)));
                backlog.split(batch, losses);
            }
            Verdict::Later { retry_after, long } => {
                if *form == Form::Columns && !problem::is_of_the_server(answer) {
                    self.form.unanswered();
                }
                self.back_off.failed(retry_after, long);
                sent.waits = true;
            }
        }
        !sent.waits
    }

    /// Returns whether a batch of this many bytes would be refused too. The halves of one batch never compress to quite the same
    /// size, so an eighth less than the smallest refused batch still counts as too large.
    fn is_too_large(&self, bytes: usize) -> bool {
        self.too_large
            .is_some_and(|least| bytes >= least.saturating_sub(least / 8))
    }

    /// Whether the server takes smaller batches, as far as is known.
    fn takes_some(&self) -> bool {
        self.has_accepted && self.refused_in_a_row < MOST_IN_A_ROW
    }

    fn request(&self, form: Form, body: Vec<u8>) -> Outgoing {
        let headers = [
            ("authorization", self.authorization.as_str()),
            ("content-type", form.media_type()),
            ("content-encoding", "zstd"),
        ];
        Outgoing {
            method: "POST",
            url: self.url.clone(),
            headers: headers.map(|(name, value)| (name, value.to_owned())).into(),
            body,
            timeout: self.timeout,
        }
    }

    fn verdict(&self, batch_id: Uuid, answer: &Answer, problem: &Problem) -> Verdict {
        match answer {
            Ok(response) => {
                let verdict = verdict(response, batch_id);
                match verdict {
                    Verdict::Accepted { .. } => problem.clear(),
                    _ => problem.set(problem::of_response(&self.endpoint, response)),
                }
                verdict
            }
            Err(error) => {
                problem.set(problem::of_connection(&self.endpoint, error));
                Verdict::Later {
                    retry_after: None,
                    long: false,
                }
            }
        }
    }

    fn hold_back(&mut self, limits: &[RateLimit]) {
        let now = Moment::now();
        self.held_back.retain(|(_, until)| now < *until);
        for limit in limits {
            let wait = Duration::from_secs(u64::from(limit.retry_after_s)).min(MOST_ASKED);
            self.held_back.retain(|(signal, _)| *signal != limit.signal);
            self.held_back.push((limit.signal, now.after(wait)));
        }
    }
}
