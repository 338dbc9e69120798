//! Time as the state machines use it, and its conversion to the wall time of events.

use unjank_protocol::Timestamp;

/// Time since the app started, in microseconds, on a clock that never goes back.
///
/// Any monotonic clock will do, as long as the app uses the same one everywhere. It should stop while the device sleeps, so that
/// a night does not become a frozen frame. Events report this value in milliseconds.
///
/// ```
/// use unjank_monitors::Uptime;
/// let begin = Uptime::from_millis(20);
/// assert_eq!(Uptime::from_micros(36_700).micros_since(begin), 16_700);
/// assert_eq!(begin.micros_since(Uptime::from_millis(21)), 0, "negative");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uptime(u64);

impl Uptime {
    /// Creates a time from microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Creates a time from milliseconds. Saturates.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Returns the time in microseconds.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the time in whole milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns the microseconds from `earlier` to this time, or 0 if `earlier` is later.
    #[must_use]
    pub const fn micros_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the time `micros` later.
    #[must_use]
    pub const fn plus(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// Returns the time `micros` earlier, but not before the start.
    #[must_use]
    pub const fn minus(self, micros: u64) -> Self {
        Self(self.0.saturating_sub(micros))
    }
}

/// What the wall clock showed at one time, from which all other wall times follow.
///
/// The SDK creates a new one when the clock is set. An event in progress then keeps its duration, and its start moves to the
/// corrected time.
///
/// ```
/// use unjank_monitors::{Uptime, WallClock};
/// use unjank_protocol::Timestamp;
/// let wall = WallClock::new(Uptime::from_millis(500), Timestamp::from_micros(9_000_000));
/// assert_eq!(wall.time(Uptime::from_millis(400)), Timestamp::from_micros(8_900_000));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallClock {
    at: Uptime,
    wall: Timestamp,
}

impl WallClock {
    /// Creates a clock that showed `wall`, in UTC, at the time `at`.
    #[must_use]
    pub const fn new(at: Uptime, wall: Timestamp) -> Self {
        Self { at, wall }
    }

    /// Returns the wall time at another time.
    #[must_use]
    pub fn time(&self, moment: Uptime) -> Timestamp {
        let ahead = i64::try_from(moment.micros_since(self.at)).unwrap_or(i64::MAX);
        let behind = i64::try_from(self.at.micros_since(moment)).unwrap_or(i64::MAX);
        self.wall.shifted(ahead.saturating_sub(behind))
    }
}

/// The longest duration the protocol accepts, 24 h, in microseconds.
pub(crate) const LONGEST_US: u64 = 24 * 3_600 * 1_000_000;

/// Converts a duration to whole milliseconds for an event, at most 24 h.
pub(crate) fn millis(micros: u64) -> i64 {
    i64::try_from(micros.min(LONGEST_US) / 1_000).unwrap_or(i64::MAX)
}

/// Converts the duration of a part of an event to whole milliseconds.
pub(crate) fn millis_u32(micros: u64) -> u32 {
    u32::try_from(micros / 1_000).unwrap_or(u32::MAX)
}
