//! Periods, and the steps and roll-ups that fit them. The two periods of a comparison are in `same_age`.

use std::time::Duration;

use unjank_foundation::clock::{DAY, HOUR};

use crate::store::reads::{Grain, Kept, Reading, Span};

/// Minimum length of a period that is read from daily roll-ups: hourly roll-ups would have too many rows.
pub(super) const DAYS_FROM: Duration = Duration::from_secs(3 * 86_400);
/// Maximum length of a period in which one value of a roll-up's leading dimension is shown by the hour. The sort order of the roll-up makes
/// this fast.
const HOURS_OF_ONE: Duration = Duration::from_secs(10 * 86_400);
/// Maximum length of a period: longer than any screen needs, and short enough for a query to finish.
pub(super) const LONGEST: Duration = Duration::from_secs(800 * 86_400);

/// A requested period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period(pub Span);

impl Period {
    pub(super) const fn length(self) -> Duration {
        self.0.to.since(self.0.from)
    }

    /// Returns the period, widened to whole UTC hours or days as the roll-up stores them.
    pub(super) const fn aligned(self, grain: Grain) -> Span {
        let unit = unit(grain);
        Span {
            from: self.0.from.floor(unit),
            to: self.0.to.ceil(unit),
        }
    }

    /// Returns the period in whole units, with its end rounded down. A base that ends where the period begins does not overlap the
    /// widened period.
    pub(super) const fn before(self, grain: Grain) -> Span {
        let unit = unit(grain);
        Span {
            from: self.0.from.floor(unit),
            to: self.0.to.floor(unit),
        }
    }
}

const fn unit(grain: Grain) -> Duration {
    match grain {
        Grain::Raw => Duration::from_micros(1),
        Grain::Hourly => HOUR,
        Grain::Daily => DAY,
    }
}

/// Returns the source of a reading: the coarsest roll-up that keeps all of its dimensions and is fine enough for its steps.
pub(super) fn grain_of(reading: &Reading, step_s: Option<u32>) -> Grain {
    let subject = reading.subject;
    let filtered = reading.filters.iter().map(|filter| filter.dimension);
    let kept: Vec<Kept> = reading
        .by
        .iter()
        .copied()
        .chain(filtered)
        .map(|one| one.kept)
        .collect();
    if kept.contains(&Kept::Never) {
        return Grain::Raw;
    }
    let only_days = kept.iter().any(|one| *one != Kept::Always) || subject.hourly.is_none();
    let length = Period(reading.span).length();
    let whole_days = step_s.map_or(length >= DAYS_FROM, |step| {
        Duration::from_secs(u64::from(step)) >= DAY
    });
    if subject.daily.is_some() && whole_days {
        Grain::Daily
    } else if only_days {
        Grain::Raw
    } else {
        Grain::Hourly
    }
}

/// Returns the step of a series in seconds: hours for a few days, then days, then weeks. `of_one`: the series is filtered to one
/// value of the dimension that leads the roll-up.
#[must_use]
pub fn step_of(span: Span, finest_is_day: bool, of_one: bool) -> u32 {
    let length = Period(span).length();
    let longest_by_hours = if of_one { HOURS_OF_ONE } else { DAYS_FROM };
    match length {
        _ if length > 180 * DAY => 7 * 86_400,
        _ if finest_is_day || length > longest_by_hours => 86_400,
        _ if length > DAYS_FROM => 6 * 3_600,
        _ => 3_600,
    }
}
