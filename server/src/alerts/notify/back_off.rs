//! The back-off of deliveries: the waits between attempts grow to an hour, and end after about a day.

use std::time::UNIX_EPOCH;

use super::SECOND;

const FIRST: i64 = 10 * SECOND;
const LONGEST: i64 = 3_600 * SECOND;
/// Nine waits that grow to an hour, then one per hour: about a day.
const MOST_ATTEMPTS: i64 = 32;

/// How long a receiver asks senders to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// In microseconds.
    For(i64),
    Until(i64),
}

impl Wait {
    /// Parses `Retry-After`: seconds, or a date.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Ok(seconds) = text.trim().parse::<u32>() {
            return Some(Self::For(i64::from(seconds) * SECOND));
        }
        let date = httpdate::parse_http_date(text.trim()).ok()?;
        let micros = date.duration_since(UNIX_EPOCH).ok()?.as_micros();
        i64::try_from(micros).ok().map(Self::Until)
    }
}

/// Returns when to try again after this many attempts, or `None` after the last. `dice`, 0 to 1, spreads the retries of messages that
/// failed together.
pub(super) fn next_attempt(attempts: i64, now: i64, wait: Option<Wait>, dice: f64) -> Option<i64> {
    if attempts >= MOST_ATTEMPTS {
        return None;
    }
    let doublings = u32::try_from(attempts - 1).unwrap_or_default().min(20);
    let full = (FIRST << doublings).min(LONGEST);
    // Half of the wait is fixed, the other half is jitter.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "less than an hour in microseconds"
    )]
    let jitter = (full as f64 / 2.0 * dice.clamp(0.0, 1.0)) as i64;
    let own = now + full / 2 + jitter;
    let asked = match wait {
        None => own,
        Some(Wait::For(micros)) => now + micros,
        Some(Wait::Until(at)) => at,
    };
    // Wait an hour at most, whatever the receiver asks for: a person waits for the message.
    Some(asked.clamp(own, now + LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_attempts_end_after_about_a_day() {
        let (mut now, mut waits) = (0, Vec::new());
        let mut attempts = 1;
        while let Some(next) = next_attempt(attempts, now, None, 0.5) {
            waits.push((next - now) / SECOND);
            (now, attempts) = (next, attempts + 1);
        }
        assert_eq!(waits[..4], [7, 15, 30, 60]);
        assert_eq!(*waits.last().unwrap(), 2_700);
        let hours = now / SECOND / 3_600;
        assert!((17..=25).contains(&hours), "{hours}");
    }

    #[test]
    fn jitter_keeps_half_of_the_wait() {
        assert_eq!(next_attempt(1, 0, None, 0.0), Some(5 * SECOND));
        assert_eq!(next_attempt(1, 0, None, 1.0), Some(10 * SECOND));
    }

    #[test]
    fn retry_after_is_honoured_up_to_an_hour() {
        let after = |text: &str| next_attempt(1, 0, Wait::parse(text), 0.0).unwrap() / SECOND;
        assert_eq!(after("120"), 120);
        assert_eq!(after("1"), 5);
        assert_eq!(after("86400"), 3_600);
        assert_eq!(after("soon"), 5);
        let date = "Thu, 01 Jan 1970 00:10:00 GMT";
        assert_eq!(after(date), 600);
    }
}
