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

    /// Parses RFC 3339, such as `2026-11-20T12:00:00.123Z`, and the forms that languages write by default: `2026-11-20 12:00:00,123 +0000`.
    /// Digits below the microsecond are cut.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parsed = OffsetDateTime::parse(text, &Rfc3339).ok();
        let parsed = parsed.or_else(|| {
            let text = as_rfc_3339(text)?;
            OffsetDateTime::parse(&text, &Rfc3339).ok()
        })?;
        let micros = parsed.unix_timestamp_nanos().div_euclid(1_000);
        i64::try_from(micros).ok().map(Self)
    }
}

/// Puts a time with another separator, fraction or zone into the form of RFC 3339.
fn as_rfc_3339(text: &str) -> Option<String> {
    /// Longer texts are no times.
    const MOST_BYTES: usize = 64;
    let text = text.trim();
    if text.len() > MOST_BYTES {
        return None;
    }
    let (date, rest) = text.split_at_checked("2026-11-20".len())?;
    let rest = rest.strip_prefix([' ', 'T', 't'])?;
    let (time, zone) = rest.split_at_checked(rest.find(['Z', 'z', '+', '-'])?)?;
    let time = time.trim_end().replace(',', ".");
    let zone = match (zone.len(), zone.split_at_checked("+00".len())) {
        (3, _) => format!("{zone}:00"),
        (5, Some((hours, minutes))) => format!("{hours}:{minutes}"),
        _ => zone.to_uppercase(),
    };
    Some(format!("{date}T{time}{zone}"))
}

/// The longest time.
const LONGEST: &[u8; 27] = b"0000-00-00T00:00:00.000000Z";
type Buffer = [u8; LONGEST.len()];

/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;

impl Timestamp {
    /// Writes the time as RFC 3339. `None` before the year 0 and after the year 9999. Every span has a time, and a formatter takes
    /// several times as long.
    fn rfc_3339(self, buffer: &mut Buffer) -> Option<&str> {
        let day = Day::containing(self);
        let (year, month, date) = day.date()?.to_calendar_date();
        let year = u32::try_from(year).ok().filter(|year| *year <= 9_999)?;
        let micros = self.0.rem_euclid(DAY_US);
        let second = u32::try_from(micros / 1_000_000).ok()?;
        let fraction = u32::try_from(micros % 1_000_000).ok()?;
        buffer.copy_from_slice(LONGEST);
        put(&mut buffer[..4], year);
        put(&mut buffer[5..7], u32::from(u8::from(month)));
        put(&mut buffer[8..10], u32::from(date));
        put(&mut buffer[11..13], second / 3_600);
        put(&mut buffer[14..16], second / 60 % 60);
        put(&mut buffer[17..19], second % 60);
        put(&mut buffer[20..26], fraction);
        // Without the zeros at the end of the fraction, and without its point if nothing is left.
        let mut end = if fraction == 0 { 19 } else { 26 };
        while fraction > 0 && buffer[end - 1] == b'0' {
            end -= 1;
        }
        buffer[end] = b'Z';
        str::from_utf8(buffer.get(..=end)?).ok()
    }
}

/// Writes the last digits of a number.
#[inline]
fn put(digits: &mut [u8], number: u32) {
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789"[(rest % 10) as usize];
        rest /= 10;
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
        let days = time.0.div_euclid(DAY_US);
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

    fn date(self) -> Option<Date> {
        Date::from_julian_day(self.0.saturating_add(EPOCH.to_julian_day())).ok()
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.date() {
            Some(date) => write!(
                f,
                "{:04}-{:02}-{:02}",
                date.year(),
                u8::from(date.month()),
                date.day()
            ),
            None => write!(f, "day {}", self.0),
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
