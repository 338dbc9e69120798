//! When to send again after a failure: the back-off, and the wait that the server asks for in `Retry-After`.

use std::time::{Duration, UNIX_EPOCH};

use crate::clock::{Moment, wall_clock};
use crate::random::draw;

const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);
/// After 401 and 403: retrying often does not help when a key was rotated or the project requires tokens.
const FIRST_LONG_WAIT: Duration = Duration::from_secs(5 * 60);
const LONGEST_LONG_WAIT: Duration = Duration::from_secs(6 * 3_600);
/// The longest wait that a server can ask for.
pub(super) const MOST_ASKED: Duration = Duration::from_secs(24 * 3_600);

/// When to send again after a failure.
#[derive(Debug)]
pub(super) struct BackOff {
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

impl BackOff {
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

    /// Notes a failure: the wait is twice as long as after the previous failure, or as long as the server asked for.
    pub(super) fn failed(&mut self, retry_after: Option<Duration>, long: bool) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
