//! Time as the machines see it, and how it becomes wall time in an event.

use unjank_protocol::Timestamp;

/// Time since the app started, in microseconds, on a clock that never goes back.
///
/// Any monotonic clock will do as long as one app uses the same one everywhere; it should stand still while the device
/// sleeps, so that a night is not a frozen frame. The uptime in events is this number in milliseconds.
///
/// ```
/// use unjank_monitors::Uptime;
/// let begin = Uptime::from_millis(20);
/// assert_eq!(Uptime::from_micros(36_700).micros_since(begin), 16_700);
/// assert_eq!(begin.micros_since(Uptime::from_millis(21)), 0, "never negative");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uptime(u64);

impl Uptime {
    /// From microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// From milliseconds, stopping at the end of the range.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// In microseconds.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// In whole milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// Microseconds from `earlier` to this moment; 0 when `earlier` is later.
    #[must_use]
    pub const fn micros_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This moment, `micros` later.
    #[must_use]
    pub const fn plus(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// This moment, `micros` earlier, not before the start.
    #[must_use]
    pub const fn minus(self, micros: u64) -> Self {
        Self(self.0.saturating_sub(micros))
    }
}

/// What the wall clock said at one moment, from which the wall time of any other follows.
///
/// The SDK takes it anew when the system tells that the clock was set; events that are under way then keep their
/// duration and only begin at the corrected time.
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
    /// At the moment `at` the wall clock said `wall`, in UTC.
    #[must_use]
    pub const fn new(at: Uptime, wall: Timestamp) -> Self {
        Self { at, wall }
    }

    /// The wall time at another moment.
    #[must_use]
    pub fn time(&self, moment: Uptime) -> Timestamp {
        let ahead = i64::try_from(moment.micros_since(self.at)).unwrap_or(i64::MAX);
        let behind = i64::try_from(self.at.micros_since(moment)).unwrap_or(i64::MAX);
        self.wall.shifted(ahead.saturating_sub(behind))
    }
}

/// The longest duration the protocol takes, 24 h, in microseconds.
pub(crate) const LONGEST_US: u64 = 24 * 3_600 * 1_000_000;

/// Whole milliseconds of a duration, as an event holds them: at most 24 h.
pub(crate) fn millis(micros: u64) -> i64 {
    i64::try_from(micros.min(LONGEST_US) / 1_000).unwrap_or(i64::MAX)
}

/// Whole milliseconds of a part of an event.
pub(crate) fn millis_u32(micros: u64) -> u32 {
    u32::try_from(micros / 1_000).unwrap_or(u32::MAX)
}
