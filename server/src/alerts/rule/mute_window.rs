//! Weekly times in which no incidents are opened.

use serde::{Deserialize, Serialize};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;

const DAY_MINUTES: i64 = 1_440;

/// A period from one time of day to another, on some days of the week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MuteWindow {
    /// The days on which the period begins. Default: every day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 7)]
    pub days: Vec<Weekday>,
    /// `HH:MM`.
    #[schema(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$")]
    pub from: String,
    /// `HH:MM`. If it is not after `from`, the period ends on the next day.
    #[schema(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$")]
    pub to: String,
    /// The offset of local time from UTC, in minutes: -840 to 840. Daylight saving time is not applied.
    #[serde(default)]
    #[schema(minimum = -840, maximum = 840)]
    pub utc_offset_minutes: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weekday {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl MuteWindow {
    /// Whether all fields are valid.
    pub(crate) fn fits(&self) -> bool {
        time_of_day(&self.from).is_some()
            && time_of_day(&self.to).is_some()
            && (-840..=840).contains(&self.utc_offset_minutes)
            && self.days.len() <= 7
    }

    /// Whether the window covers a time.
    pub(crate) fn holds(&self, now: UnixTime) -> bool {
        let (Some(from), Some(to)) = (time_of_day(&self.from), time_of_day(&self.to)) else {
            return false;
        };
        let local = now.as_secs().div_euclid(60) + i64::from(self.utc_offset_minutes);
        let (day, minute) = (local.div_euclid(DAY_MINUTES), local.rem_euclid(DAY_MINUTES));
        if from < to {
            return self.begins_on(day) && (from..to).contains(&minute);
        }
        (self.begins_on(day) && minute >= from) || (self.begins_on(day - 1) && minute < to)
    }

    fn begins_on(&self, day: i64) -> bool {
        // 1970-01-01 was a Thursday.
        let weekday = (day + 3).rem_euclid(7);
        self.days.is_empty() || self.days.iter().any(|one| *one as i64 == weekday)
    }
}

fn time_of_day(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    ((0..24).contains(&hours) && (0..60).contains(&minutes)).then_some(hours * 60 + minutes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use unjank_foundation::clock::HOUR;

    use super::*;

    /// 2026-11-20T12:00:00Z, a Friday.
    const FRIDAY_NOON: UnixTime = UnixTime::from_micros(1_795_176_000_000_000);

    fn window(days: &[Weekday], from: &str, to: &str, offset: i32) -> MuteWindow {
        MuteWindow {
            days: days.to_vec(),
            from: from.to_owned(),
            to: to.to_owned(),
            utc_offset_minutes: offset,
        }
    }

    #[test]
    fn a_window_covers_its_days_from_its_start_until_before_its_end() {
        let noon = window(&[Weekday::Fri], "12:00", "13:00", 0);
        assert!(noon.holds(FRIDAY_NOON));
        assert!(!noon.holds(FRIDAY_NOON - Duration::from_micros(1)));
        assert!(!noon.holds(FRIDAY_NOON + HOUR));
        assert!(!noon.holds(FRIDAY_NOON + 24 * HOUR));
        assert!(window(&[], "12:00", "13:00", 0).holds(FRIDAY_NOON + 24 * HOUR));
    }

    #[test]
    fn a_window_over_midnight_belongs_to_the_day_it_begins_on() {
        let night = window(&[Weekday::Fri], "22:00", "06:00", 0);
        assert!(night.holds(FRIDAY_NOON + 10 * HOUR));
        assert!(night.holds(FRIDAY_NOON + 17 * HOUR));
        assert!(!night.holds(FRIDAY_NOON - 7 * HOUR), "Thursday's");
        assert!(!night.holds(FRIDAY_NOON + 18 * HOUR));
    }

    #[test]
    fn the_offset_from_utc_shifts_a_window() {
        let noon = window(&[Weekday::Fri], "12:00", "13:00", 120);
        assert!(noon.holds(FRIDAY_NOON - 2 * HOUR));
        assert!(!noon.holds(FRIDAY_NOON));
    }

    #[test]
    fn invalid_times_are_refused() {
        for (from, to) in [("24:00", "06:00"), ("1:00", "02:00"), ("12:60", "13:00")] {
            assert!(!window(&[], from, to, 0).fits(), "{from} {to}");
        }
    }
}
