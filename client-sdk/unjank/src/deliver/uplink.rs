//! Uploads: what each response of the server means, and when to retry.

use std::time::{Duration, UNIX_EPOCH};

use unjank_protocol::{RateLimit, Receipt, Signal};
use uuid::Uuid;

use super::backlog::{Backlog, First};
use super::batch::Sealed;
use super::exchange::{Answer, Outgoing};
use super::losses::{Losses, Reason};
use super::problem::{self, Problem};
use super::transport::Response;
use crate::clock::{Moment, wall_clock};
use crate::config::Config;
use crate::random::draw;

const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);
/// After 401 and 403: retrying often does not help when a key was rotated or the project requires tokens.
const FIRST_LONG_WAIT: Duration = Duration::from_secs(5 * 60);
const LONGEST_LONG_WAIT: Duration = Duration::from_secs(6 * 3_600);
/// The server takes batches of 1 MiB. A proxy that does not take this much takes nothing.
const SMALL: usize = 16 << 10;
/// The number of times that the largest batch can be halved.
const MOST_IN_A_ROW: u32 = 14;
/// Attempts at a batch that does not arrive as it is sent, with half an hour of waits between them. Others are sent meanwhile.
const MOST_CHANGED: u32 = 8;
/// The longest wait that a server can ask for.
const MOST_ASKED: Duration = Duration::from_secs(24 * 3_600);

/// The connection to the server.
pub(crate) struct Uplink {
    endpoint: String,
    url: String,
    authorization: String,
    timeout: Duration,
    first_wait: Duration,
    /// Nothing is sent before this.
    not_before: Option<Wait>,
    failures: u32,
    held_back: Vec<(Signal, Moment)>,
    /// The size of the smallest body that was too large. Larger batches are split before they are sent.
    too_large: Option<usize>,
    /// Batches in a row that were too large.
    refused_in_a_row: u32,
    has_accepted: bool,
    pub(crate) sent_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    until: Moment,
    /// The server asked for the wait: not even a flush is sent earlier.
    asked: bool,
}

/// A batch that is being sent.
#[derive(Debug)]
pub(crate) struct Attempt {
    batch: Sealed,
    events: u32,
    /// The size of the body.
    bytes: usize,
}

/// What a response means for the batch.
#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    Accepted {
        lost: Vec<(Signal, Reason, u64)>,
        rate_limits: Vec<RateLimit>,
        config_etag: Option<String>,
    },
    /// The server will never accept the batch.
    Refused,
    /// The batch was changed on its way. Retry it some times.
    Changed { retry_after: Option<Duration> },
    /// The server may accept the batch in parts.
    TooLarge,
    /// Keep the batch and retry.
    Later {
        retry_after: Option<Duration>,
        long: bool,
    },
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
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            endpoint: config.endpoint.clone(),
            url: format!("{}/v1/ingest", config.endpoint),
            authorization: format!("Bearer {}", config.key.0),
            timeout: config.request_timeout,
            first_wait: config.first_wait,
            not_before: None,
            failures: 0,
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
        self.waits(Moment::now(), false)
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
            if self.waits(Moment::now(), urgent) {
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
            let Ok(body) = batch.request() else {
                backlog.refused(&batch, losses);
                continue;
            };
            let events: u32 = batch.events.iter().map(|(_, events)| *events).sum();
            if events > 1 && self.is_too_large(body.len()) {
                backlog.split(&batch, losses);
                continue;
            }
            let bytes = body.len();
            backlog.departs(batch.batch_id);
            self.sent_bytes = self.sent_bytes.saturating_add(bytes as u64);
            let attempt = Attempt {
                batch,
                events,
                bytes,
            };
            return Some((attempt, self.request(body)));
        }
    }

    /// Handles the response to a batch. Returns whether the next one can be sent.
    pub(crate) fn answered(
        &mut self,
        Attempt {
            batch,
            events,
            bytes,
        }: &Attempt,
        answer: &Answer,
        backlog: &mut Backlog,
        (losses, problem): (&Losses, &Problem),
        sent: &mut Sent,
    ) -> bool {
        let verdict = self.verdict(batch.batch_id, answer, problem);
        backlog.landed(matches!(verdict, Verdict::Accepted { .. }), losses);
        match verdict {
            Verdict::Accepted {
                lost,
                rate_limits,
                config_etag,
            } => {
                problem.print(&format!("sent {events} events"));
                backlog.done(batch.batch_id, losses);
                lost.into_iter()
                    .for_each(|(signal, reason, events)| losses.add(signal, reason, events));
                self.hold_back(&rate_limits);
                (self.failures, self.not_before) = (0, None);
                (self.has_accepted, self.refused_in_a_row) = (true, 0);
                sent.config_etag = config_etag.or(sent.config_etag.take());
            }
            Verdict::Changed { retry_after }
                if backlog.changed_on_its_way(batch.batch_id, self.first_wait) < MOST_CHANGED =>
            {
                self.back_off(retry_after, false);
                sent.waits = true;
            }
            Verdict::Refused | Verdict::Changed { .. } => {
                sent.refused = true;
                backlog.refused(batch, losses);
            }
            // A server that takes no small event takes nothing: splitting all that waits would be a flood of requests.
            Verdict::TooLarge if *events <= 1 && *bytes < SMALL && !self.takes_some() => {
                self.back_off(None, true);
                sent.waits = true;
            }
            Verdict::TooLarge => {
                sent.refused |= *events <= 1;
                self.refused_in_a_row = self.refused_in_a_row.saturating_add(1);
                self.too_large = Some(self.too_large.map_or(*bytes, |least| least.min(*bytes)));
                backlog.split(batch, losses);
            }
            Verdict::Later { retry_after, long } => {
                self.back_off(retry_after, long);
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

    fn waits(&self, now: Moment, urgent: bool) -> bool {
        let wait = self.not_before.filter(|wait| now < wait.until);
        wait.is_some_and(|wait| wait.asked || !urgent)
    }

    fn request(&self, body: Vec<u8>) -> Outgoing {
        let headers = [
            ("authorization", self.authorization.as_str()),
            ("content-type", "application/json"),
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

    fn back_off(&mut self, retry_after: Option<Duration>, long: bool) {
        let (first, longest) = if long {
            (FIRST_LONG_WAIT, LONGEST_LONG_WAIT)
        } else {
            (self.first_wait, LONGEST_WAIT)
        };
        let doubled = first.saturating_mul(2_u32.saturating_pow(self.failures.min(16)));
        self.failures = self.failures.saturating_add(1);
        // Between half and all of the wait, so that devices that failed together do not retry together.
        let jittered = doubled.min(longest).mul_f64(0.5 + draw() / 2.0);
        let asked = retry_after.map(|wait| wait.min(MOST_ASKED));
        // At least what the server asked for, and up to a tenth more for the same reason.
        let asked = asked.map(|asked| asked.mul_f64(1.0 + draw() / 10.0));
        let wait = match asked {
            Some(asked) if long => asked.max(jittered),
            asked => asked.unwrap_or(jittered),
        };
        self.not_before = Some(Wait {
            until: Moment::now().after(wait),
            asked: asked.is_some() || long,
        });
    }
}

fn verdict(response: &Response, batch_id: Uuid) -> Verdict {
    let retry_after = response.retry_after.as_deref().and_then(asked_wait);
    let later = |long| Verdict::Later { retry_after, long };
    match response.status {
        202 => accepted(&response.body, batch_id).unwrap_or(later(false)),
        400 | 415 | 422 if problem::is_of_the_way(response) => Verdict::Changed { retry_after },
        400 | 415 | 422 => Verdict::Refused,
        413 => Verdict::TooLarge,
        401 | 403 => later(true),
        _ => later(false),
    }
}

/// Parses a `Retry-After` header: seconds, or a date, which is compared with this device's clock. Returns `None` for no wait at
/// all, so that the usual back-off applies.
pub(crate) fn asked_wait(text: &str) -> Option<Duration> {
    let text = text.trim();
    let seconds = text.parse().ok().map(Duration::from_secs);
    let wait = seconds.or_else(|| {
        let until = httpdate::parse_http_date(text).ok()?;
        let until = until.duration_since(UNIX_EPOCH).ok()?;
        let now = u64::try_from(wall_clock().as_micros()).ok()?;
        until.checked_sub(Duration::from_micros(now))
    });
    wait.filter(|wait| !wait.is_zero())
}

/// Returns `None` for a 202 whose receipt cannot be parsed or names another batch. It may come from a proxy: the batch is sent
/// again, and the server stores it once.
fn accepted(body: &[u8], batch_id: Uuid) -> Option<Verdict> {
    let receipt: Receipt<'_> = serde_json::from_slice(body).ok()?;
    if receipt.batch_id != batch_id {
        return None;
    }
    let rejected = receipt.rejected.iter();
    let rejected = rejected.map(|one| (one.signal, Reason::Refused, 1));
    let unlisted = receipt.rejected_unlisted.iter();
    let unlisted = unlisted.map(|more| (more.signal, Reason::Refused, more.events));
    let held_back = receipt.rate_limits.iter().filter(|one| one.dropped > 0);
    let held_back = held_back.map(|one| (one.signal, Reason::RateLimited, one.dropped));
    Some(Verdict::Accepted {
        // Also for a duplicate: it is sent only if no receipt for it has arrived.
        lost: rejected.chain(unlisted).chain(held_back).collect(),
        config_etag: receipt.config_etag.map(|etag| etag.to_string()),
        rate_limits: receipt.rate_limits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, body: &str) -> Verdict {
        let response = Response {
            status,
            body: body.as_bytes().to_vec(),
            ..Response::default()
        };
        verdict(&response, Uuid::from_u128(1))
    }

    #[test]
    fn each_status_maps_to_the_documented_verdict() {
        for status in [400, 415, 422] {
            let refused = answered(status, r#"{"code":"invalid_envelope"}"#);
            assert_eq!(refused, Verdict::Refused, "{status}");
            for body in ["", "<html>", r#"{"code":"body_truncated"}"#] {
                let changed = answered(status, body);
                let expected = Verdict::Changed { retry_after: None };
                assert_eq!(changed, expected, "{status} {body}");
            }
        }
        assert_eq!(answered(413, ""), Verdict::TooLarge);
        for (statuses, is_long) in [
            (vec![401, 403], true),
            (vec![408, 429, 500, 502, 503, 504, 302, 404], false),
        ] {
            for status in statuses {
                let verdict = answered(status, "");
                assert!(
                    matches!(verdict, Verdict::Later { long, .. } if long == is_long),
                    "{status}: {verdict:?}"
                );
            }
        }
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_as_a_date() {
        assert_eq!(asked_wait(" 120 "), Some(Duration::from_secs(120)));
        let until = |seconds: u64| {
            let now = u64::try_from(wall_clock().as_micros()).unwrap();
            let now = UNIX_EPOCH + Duration::from_micros(now);
            httpdate::fmt_http_date(now + Duration::from_secs(seconds))
        };
        let wait = asked_wait(&until(600)).unwrap().as_secs();
        assert!((598..=600).contains(&wait), "{wait}");
        for nothing in ["0", "soon", "-5", "Sun, 06 Nov 1994 08:49:37 GMT"] {
            assert_eq!(asked_wait(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_receipt_reports_losses_rate_limits_and_the_configuration() {
        let receipt = r#"{"batch_id":"00000000-0000-0000-0000-000000000001","accepted":3,
            "rejected":[{"signal":"spans","index":1,"code":"x","detail":"y"}],
            "rejected_unlisted":[{"signal":"spans","events":7}],
            "rate_limits":[{"signal":"metrics","retry_after_s":60,"dropped":5}],"config_etag":"\"abc\""}"#;
        let Verdict::Accepted {
            lost,
            rate_limits,
            config_etag,
        } = answered(202, receipt)
        else {
            panic!("expected an accepted batch");
        };
        assert_eq!(
            lost,
            [
                (Signal::Spans, Reason::Refused, 1),
                (Signal::Spans, Reason::Refused, 7),
                (Signal::Metrics, Reason::RateLimited, 5)
            ]
        );
        assert_eq!(rate_limits.len(), 1);
        assert_eq!(config_etag.as_deref(), Some("\"abc\""));
    }

    #[test]
    fn a_202_without_a_receipt_is_not_an_acknowledgement() {
        assert!(matches!(
            answered(202, "<html>"),
            Verdict::Later { long: false, .. }
        ));
    }

    #[test]
    fn a_receipt_for_another_batch_is_not_an_acknowledgement() {
        let receipt =
            |id: u128| format!(r#"{{"batch_id":"{}","accepted":3}}"#, Uuid::from_u128(id));
        let taken = answered(202, &receipt(1));
        assert!(matches!(taken, Verdict::Accepted { .. }), "{taken:?}");
        let another = answered(202, &receipt(2));
        let later = Verdict::Later {
            retry_after: None,
            long: false,
        };
        assert_eq!(another, later);
    }
}
