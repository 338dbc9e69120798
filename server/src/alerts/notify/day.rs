//! The day that a digest covers.

use std::fmt;
use std::str::FromStr;

use time::Date;
use time::macros::format_description;

use crate::clock::{DAY, UnixTime};

/// The Julian day of 1970-01-01.
const EPOCH: i32 = 2_440_588;

/// A UTC day, written `2026-11-20`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day(i32);

impl Day {
    /// Returns the last day that was over at a time.
    #[must_use]
    pub fn before(now: UnixTime) -> Self {
        Self(i32::try_from(now.number_of(DAY) - 1).unwrap_or_default())
    }

    #[must_use]
    pub fn begin(self) -> UnixTime {
        UnixTime::from_secs(i64::from(self.0) * 86_400)
    }

    #[must_use]
    pub fn end(self) -> UnixTime {
        self.begin() + DAY
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = Date::from_julian_day(self.0 + EPOCH).map_err(|_| fmt::Error)?;
        let (year, month, day) = date.to_calendar_date();
        write!(f, "{year:04}-{:02}-{day:02}", u8::from(month))
    }
}

impl FromStr for Day {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let date = Date::parse(text, format_description!("[year]-[month]-[day]"));
        date.map(|date| Self(date.to_julian_day() - EPOCH))
            .map_err(|_| "`day` must be a date such as 2026-11-20".to_owned())
    }
}
