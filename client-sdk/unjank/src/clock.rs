//! Time: moments that only go forward, and the wall clock they are shown with.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use unjank_protocol::Timestamp;

/// A point in time that only goes forward, and stands still while the device sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Instant);

impl Moment {
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0.checked_add(duration).unwrap_or(self.0))
    }

    /// Microseconds since this process first asked.
    pub(crate) fn micros(self) -> i64 {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        let origin = *ORIGIN.get_or_init(Instant::now);
        // In 64 bits: this is asked for each frame.
        let micros = |duration: Duration| {
            let whole = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
            let whole = whole.saturating_mul(1_000_000);
            whole.saturating_add(i64::from(duration.subsec_micros()))
        };
        match self.0.checked_duration_since(origin) {
            Some(after) => micros(after),
            None => micros(origin.saturating_duration_since(self.0)).saturating_neg(),
        }
    }
}

impl From<Instant> for Moment {
    fn from(instant: Instant) -> Self {
        Self(instant)
    }
}

/// The device's wall clock, whatever it says.
pub(crate) fn wall_clock() -> Timestamp {
    let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the SDK takes its time from"
    )]
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp::from_micros(match since_epoch {
        Ok(after) => micros(after),
        Err(before) => micros(before.duration()).saturating_neg(),
    })
}

/// What turns moments into times: how far the wall clock is ahead of them.
#[derive(Debug)]
pub(crate) struct WallClock(AtomicI64);

/// The wall clock may drift this far from the moments before they are anchored anew, in microseconds.
const DRIFT_US: i64 = 1_000_000;

impl WallClock {
    pub(crate) fn new() -> Self {
        Self(AtomicI64::new(Self::offset()))
    }

    fn offset() -> i64 {
        wall_clock()
            .as_micros()
            .saturating_sub(Moment::now().micros())
    }

    pub(crate) fn at(&self, moment: Moment) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed)).shifted(moment.micros())
    }

    /// After a device slept its moments are behind, after somebody set the clock it is elsewhere: what comes now is told by the
    /// new one. Answers whether it was so.
    pub(crate) fn follow(&self) -> bool {
        let now = Self::offset();
        let moved = now
            .saturating_sub(self.0.load(Ordering::Relaxed))
            .saturating_abs()
            > DRIFT_US;
        if moved {
            self.0.store(now, Ordering::Relaxed);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_by_the_wall_clock() {
        let clock = WallClock::new();
        let (before, shown) = (wall_clock(), clock.at(Moment::now()));
        assert!(
            shown.micros_since(before).abs() < 100_000,
            "{before} {shown}"
        );
        assert!(!clock.follow());
    }

    #[test]
    fn a_clock_that_was_set_is_followed() {
        let clock = WallClock::new();
        clock.0.fetch_add(3_600_000_000, Ordering::Relaxed);
        assert!(clock.follow());
        assert!(clock.at(Moment::now()).micros_since(wall_clock()).abs() < 100_000);
    }

    #[test]
    fn moments_do_not_go_back() {
        let first = Moment::now();
        let second = Moment::now();
        assert!(second >= first);
        assert_eq!(
            first.since(second.after(Duration::from_secs(1))),
            Duration::ZERO
        );
    }
}
