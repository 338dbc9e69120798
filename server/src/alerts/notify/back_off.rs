//! The back-off of deliveries: the waits between attempts grow to an hour, and end after about a day.

use std::time::{Duration, UNIX_EPOCH};

use unjank_foundation::clock::UnixTime;

/// The most that a receiver can ask senders to wait.
const LONGEST: Duration = Duration::from_secs(3_600);

/// How the waits between attempts grow.
#[derive(Clone, Copy, Debug)]
pub struct BackOff {
    pub first: Duration,
    pub longest: Duration,
    pub most_attempts: i64,
}

/// Nine waits that grow to an hour, then one per hour: about a day.
pub(super) const MESSAGES: BackOff = BackOff {
    first: Duration::from_secs(10),
    longest: LONGEST,
    most_attempts: 32,
};

/// How long a receiver asks senders to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    For(Duration),
    Until(UnixTime),
}

impl Wait {
    /// Parses `Retry-After`: seconds, or a date.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Ok(seconds) = text.trim().parse::<u32>() {
            return Some(Self::For(Duration::from_secs(seconds.into())));
        }
        let date = httpdate::parse_http_date(text.trim()).ok()?;
        let since_epoch = date.duration_since(UNIX_EPOCH).ok()?;
        Some(Self::Until(UnixTime::default() + since_epoch))
    }
}

impl BackOff {
    /// Returns when to try again after this many attempts, or `None` after the last. `dice`, 0 to 1, spreads the retries of messages that
    /// failed together.
    #[must_use]
    pub fn next_attempt(
        self,
        attempts: i64,
        now: UnixTime,
        wait: Option<Wait>,
        dice: f64,
    ) -> Option<UnixTime> {
        if attempts >= self.most_attempts {
            return None;
        }
        let doublings = u32::try_from(attempts - 1).unwrap_or(u32::MAX).min(20);
        let full = self.first.saturating_mul(1 << doublings).min(self.longest);
        // Half of the wait is fixed, the other half is jitter.
        let jitter = (full / 2).mul_f64(dice.clamp(0.0, 1.0));
        let own = now + full / 2 + jitter;
        let asked = match wait {
            None => own,
            Some(Wait::For(wait)) => now + wait,
            Some(Wait::Until(at)) => at,
        };
        // Wait an hour at most, whatever the receiver asks for: a person waits for the message.
        Some(asked.clamp(own, now + LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: UnixTime = UnixTime::from_secs(0);

    #[test]
    fn waits_grow_and_attempts_end_after_about_a_day() {
        let (mut now, mut waits) = (EPOCH, Vec::new());
        let mut attempts = 1;
        while let Some(next) = MESSAGES.next_attempt(attempts, now, None, 0.5) {
            waits.push(next.since(now).as_secs());
            (now, attempts) = (next, attempts + 1);
        }
        assert_eq!(waits[..4], [7, 15, 30, 60]);
        assert_eq!(*waits.last().unwrap(), 2_700);
        let hours = now.as_secs() / 3_600;
        assert!((17..=25).contains(&hours), "{hours}");
    }

    #[test]
    fn jitter_keeps_half_of_the_wait() {
        assert_eq!(
            MESSAGES.next_attempt(1, EPOCH, None, 0.0),
            Some(UnixTime::from_secs(5))
        );
        assert_eq!(
            MESSAGES.next_attempt(1, EPOCH, None, 1.0),
            Some(UnixTime::from_secs(10))
        );
    }

    #[test]
    fn retry_after_is_honoured_up_to_an_hour() {
        let after = |text: &str| {
            let next = MESSAGES.next_attempt(1, EPOCH, Wait::parse(text), 0.0);
            next.unwrap().as_secs()
        };
        assert_eq!(after("120"), 120);
        assert_eq!(after("1"), 5);
        assert_eq!(after("86400"), 3_600);
        assert_eq!(after("soon"), 5);
        let date = "Thu, 01 Jan 1970 00:10:00 GMT";
        assert_eq!(after(date), 600);
    }
}
