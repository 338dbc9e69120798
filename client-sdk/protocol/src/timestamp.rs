//! Points in time and natural days.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::format_description::well_known::Rfc3339;
use time::macros::{date, format_description};
use time::{Date, OffsetDateTime};

/// A point in time: microseconds since 1970-01-01T00:00:00Z. RFC 3339 on the wire, years 0000 to 9999.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Creates a time from microseconds since the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Returns this time plus `micros`. Saturates.
    #[must_use]
    pub const fn shifted(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// Returns the microseconds from `earlier` to this time; negative if `earlier` is later.
    #[must_use]
    pub const fn micros_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Parses RFC 3339, such as `2026-11-20T12:00:00.123Z`. Digits below the microsecond are cut.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parsed = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        let micros = parsed.unix_timestamp_nanos().div_euclid(1_000);
        i64::try_from(micros).ok().map(Self)
    }
}

/// The longest time is `2026-11-20T12:00:00.123456Z`.
type Buffer = [u8; 32];

impl Timestamp {
    /// Writes the time as RFC 3339. `None` before the year 0 and after the year 9999.
    fn rfc_3339(self, buffer: &mut Buffer) -> Option<&str> {
        let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000).ok()?;
        // `format_into` returns a length without the digits below the second.
        let mut rest = buffer.as_mut_slice();
        time.format_into(&mut rest, &Rfc3339).ok()?;
        let unused = rest.len();
        let length = buffer.len().checked_sub(unused)?;
        str::from_utf8(buffer.get(..length)?).ok()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rfc_3339(&mut Buffer::default()) {
            Some(text) => f.write_str(text),
            None => write!(f, "{}us", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.rfc_3339(&mut Buffer::default()) {
            Some(text) => serializer.serialize_str(text),
            None => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TimestampVisitor)
    }
}

struct TimestampVisitor;

impl Visitor<'_> for TimestampVisitor {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an RFC 3339 time such as 2026-11-20T12:00:00.123Z")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Timestamp, E> {
        Timestamp::parse(text)
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

const EPOCH: Date = date!(1970 - 01 - 01);

/// A day on the device's calendar: `2026-11-20` on the wire, days since 1970-01-01 in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i32);

impl Day {
    /// Creates a day from the days since 1970-01-01.
    #[must_use]
    pub const fn from_days(days: i32) -> Self {
        Self(days)
    }

    /// Returns the days since 1970-01-01.
    #[must_use]
    pub const fn as_days(self) -> i32 {
        self.0
    }

    /// Returns the UTC day that contains `time`.
    #[must_use]
    pub fn containing(time: Timestamp) -> Self {
        let days = time.0.div_euclid(86_400_000_000);
        Self(i32::try_from(days).unwrap_or(if days < 0 { i32::MIN } else { i32::MAX }))
    }

    /// Parses `YYYY-MM-DD`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let date = Date::parse(text, format_description!("[year]-[month]-[day]")).ok()?;
        Some(Self(
            date.to_julian_day().saturating_sub(EPOCH.to_julian_day()),
        ))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Date::from_julian_day(self.0.saturating_add(EPOCH.to_julian_day())) {
            Ok(date) => write!(
                f,
                "{:04}-{:02}-{:02}",
                date.year(),
                u8::from(date.month()),
                date.day()
            ),
            Err(_) => write!(f, "day {}", self.0),
        }
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(DayVisitor)
    }
}

struct DayVisitor;

impl Visitor<'_> for DayVisitor {
    type Value = Day;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a day such as 2026-11-20")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Day, E> {
        Day::parse(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}
