//! What each response of the server means for a batch, and when to send again.

use std::time::{Duration, UNIX_EPOCH};

use unjank_protocol::{RateLimit, Receipt, Signal};
use uuid::Uuid;

use super::losses::Reason;
use super::problem;
use super::transport::Response;
use crate::clock::{Moment, wall_clock};
use crate::random::draw;

const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);
/// After 401 and 403: retrying often does not help when a key was rotated or the project requires tokens.
const FIRST_LONG_WAIT: Duration = Duration::from_secs(5 * 60);
const LONGEST_LONG_WAIT: Duration = Duration::from_secs(6 * 3_600);
/// The longest wait that a server can ask for.
pub(super) const MOST_ASKED: Duration = Duration::from_secs(24 * 3_600);

/// What a response means for the batch.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
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

/// When to send again after a failure.
#[derive(Debug)]
pub(super) struct Retry {
    pub(super) first_wait: Duration,
    /// Nothing is sent before this.
    not_before: Option<Wait>,
    failures: u32,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    until: Moment,
    /// The server asked for the wait: not even a flush is sent earlier.
    asked: bool,
}

impl Retry {
    pub(super) fn new(first_wait: Duration) -> Self {
        Self {
            first_wait,
            not_before: None,
            failures: 0,
        }
    }

    /// Returns whether it is too early to send. With `urgent`, only waits that the server asked for count.
    pub(super) fn waits(&self, now: Moment, urgent: bool) -> bool {
        let wait = self.not_before.filter(|wait| now < wait.until);
        wait.is_some_and(|wait| wait.asked || !urgent)
    }

    /// Notes that the server accepted a batch.
    pub(super) fn reset(&mut self) {
        (self.failures, self.not_before) = (0, None);
    }

    /// Waits twice as long as after the previous failure, or as long as the server asked for.
    pub(super) fn back_off(&mut self, retry_after: Option<Duration>, long: bool) {
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

/// Returns what a response means for the batch that was sent.
pub(super) fn verdict(response: &Response, batch_id: Uuid) -> Verdict {
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
pub(super) fn asked_wait(text: &str) -> Option<Duration> {
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
