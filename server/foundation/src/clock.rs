//! Time as a parameter: code that needs the time takes a [`Clock`], so that tests can set it.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use unjank_protocol::{Day, Timestamp};
use utoipa::ToSchema;

/// An hour.
pub const HOUR: Duration = Duration::from_secs(3_600);
/// A day of 24 hours.
pub const DAY: Duration = Duration::from_secs(86_400);

/// A point in time in microseconds since 1970-01-01T00:00:00Z. It is an integer in JSON and in the databases.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    ToSchema,
)]
#[serde(transparent)]
pub struct UnixTime(i64);

impl UnixTime {
    /// Later than every other time.
    pub const MAX: Self = Self(i64::MAX);

    /// Creates a time from microseconds since the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Creates a time from seconds since the Unix epoch.
    #[must_use]
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// Returns the microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Returns the microseconds in the byte order of ClickHouse's native format.
    #[must_use]
    pub const fn to_le_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// Returns the whole seconds since the Unix epoch.
    #[must_use]
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Returns the time that passed since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        match self.0.saturating_sub(earlier.0) {
            passed if passed > 0 => Duration::from_micros(passed.unsigned_abs()),
            _ => Duration::ZERO,
        }
    }

    /// Returns how many whole `unit`s passed since the Unix epoch: the number of the day, for example.
    #[must_use]
    pub const fn number_of(self, unit: Duration) -> i64 {
        self.0.div_euclid(micros(unit))
    }

    /// Returns the start of the `unit` (an hour, a day) that contains this time.
    #[must_use]
    pub const fn floor(self, unit: Duration) -> Self {
        Self(self.number_of(unit).saturating_mul(micros(unit)))
    }

    /// Returns the first start of a `unit` (an hour, a day) that is not before this time.
    #[must_use]
    pub const fn ceil(self, unit: Duration) -> Self {
        Self(
            -((-self.0)
                .div_euclid(micros(unit))
                .saturating_mul(micros(unit))),
        )
    }
}

/// Returns `duration` in microseconds. Saturates.
#[must_use]
pub const fn micros(duration: Duration) -> i64 {
    let micros = duration.as_micros();
    if micros > i64::MAX as u128 {
        i64::MAX
    } else {
        micros as i64
    }
}

// Sums and differences saturate.
impl Add<Duration> for UnixTime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }
}

impl Sub<Duration> for UnixTime {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros(duration)))
    }
}

impl AddAssign<Duration> for UnixTime {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl From<Timestamp> for UnixTime {
    fn from(time: Timestamp) -> Self {
        Self(time.as_micros())
    }
}

/// The start of the day in UTC.
impl From<Day> for UnixTime {
    fn from(day: Day) -> Self {
        Self::from_secs(i64::from(day.as_days()) * 86_400)
    }
}

impl From<UnixTime> for Timestamp {
    fn from(time: UnixTime) -> Self {
        Self::from_micros(time.0)
    }
}

/// RFC 3339, such as `2026-11-20T12:00:00.123Z`.
impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Timestamp::from(*self).fmt(f)
    }
}

/// A source of wall-clock time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> UnixTime + Send + Sync>);

impl Clock {
    /// The machine's own clock.
    #[must_use]
    pub fn system() -> Self {
        Self::new(|| {
            #[expect(
                clippy::disallowed_methods,
                reason = "the one place that reads the machine's clock"
            )]
            let since_epoch = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            UnixTime::default() + since_epoch
        })
    }

    /// Creates a clock from a function that returns the time.
    pub fn new(now: impl Fn() -> UnixTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> UnixTime {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
