//! Plans the parts of a rebuild, and finds periods whose raw rows may be gone.

use std::collections::{BTreeMap, BTreeSet};

use crate::store::raw_tables::{Month, RawTable};
use crate::store::roll_ups::fold::{RollUp, Target};
use crate::store::upkeep::books::{Kept, Period, bound, month_of};

pub(super) const HOUR: i64 = 3_600;
pub(super) const DAY: i64 = 86_400;

/// A month of one roll-up, and its hours or days to rebuild from raw rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub target: String,
    /// Year and month, such as 202611.
    pub month: u32,
    /// The project whose rows are rebuilt; `None` for all projects.
    pub(super) project: Option<String>,
    pub(super) periods: Vec<Period>,
}

impl Part {
    /// The number of hours to rebuild.
    #[must_use]
    pub fn hours(&self) -> u64 {
        let hours = self.periods.iter().map(|one| (one.to - one.from) / HOUR);
        hours.sum::<i64>().unsigned_abs()
    }
}

/// Why a period cannot be rebuilt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Refused(pub(super) Vec<String>);

/// Returns the length of a roll-up's entry.
pub(super) fn unit(target: &Target) -> i64 {
    if target.time() == "day" { DAY } else { HOUR }
}

/// Returns the entries of the roll-up that overlap the periods.
pub(super) fn entries(target: &Target, periods: &[Period]) -> BTreeSet<i64> {
    let unit = unit(target);
    let mut entries = BTreeSet::new();
    for period in periods {
        let mut at = period.from - period.from.rem_euclid(unit);
        while at < period.to {
            entries.insert(at);
            at += unit;
        }
    }
    entries
}

/// Returns the time from which the roll-up can be rebuilt: its raw rows and its own rows must still be stored.
pub(super) fn since(roll_up: &RollUp, target: &Target, kept: &Kept, now: i64) -> Option<i64> {
    let since = kept
        .since(&roll_up.table, now)
        .max(kept.since(&target.table, now))?;
    Some(since + (-since).rem_euclid(unit(target)))
}

/// Joins adjacent entries into periods.
pub(super) fn joined(entries: &BTreeSet<i64>, unit: i64) -> Vec<Period> {
    let mut periods: Vec<Period> = Vec::new();
    for &from in entries {
        let to = from + unit;
        match periods.last_mut() {
            Some(last) if last.to == from => last.to = to,
            _ => periods.push(Period { from, to }),
        }
    }
    periods
}

/// Splits entries into parts by month.
pub(super) fn parts(target: &Target, entries: &BTreeSet<i64>) -> Vec<Part> {
    let mut months: BTreeMap<Month, BTreeSet<i64>> = BTreeMap::new();
    for &at in entries {
        months.entry(month_of(at)).or_default().insert(at);
    }
    let part = |(month, entries)| Part {
        target: target.table.clone(),
        month,
        project: None,
        periods: joined(&entries, unit(target)),
    };
    months.into_iter().map(part).collect()
}

/// Returns an SQL condition on the rows that a part rebuilds. Excludes other projects if the part has one, and rows of projects
/// whose raw rows are `gone`. `time` is the column with the time of a row.
pub(super) fn scope(part: &Part, time: &str, gone: &[(String, i64)]) -> String {
    let mut conditions = vec!["project != ''".to_owned()];
    if let Some(project) = &part.project {
        conditions.push(format!("project = '{project}'"));
    }
    for (project, before) in gone {
        let before = bound(time, *before);
        conditions.push(format!("NOT (project = '{project}' AND {time} < {before})"));
    }
    conditions.join(" AND ")
}

/// Returns a condition on rows whose time lies in one of the periods.
pub(super) fn within(time: &str, periods: &[Period]) -> String {
    let within: Vec<String> = periods
        .iter()
        .map(|period| {
            format!(
                "({time} >= {} AND {time} < {})",
                bound(time, period.from),
                bound(time, period.to)
            )
        })
        .collect();
    if within.is_empty() {
        "1 = 0".to_owned()
    } else {
        format!("({})", within.join(" OR "))
    }
}

/// Returns the whole month as a period.
pub(crate) fn of_month(month: Month) -> Period {
    let first = |month: Month| {
        let number = u8::try_from(month % 100).unwrap_or(1);
        let year = i32::try_from(month / 100).unwrap_or_default();
        let date = time::Month::try_from(number)
            .and_then(|month| time::Date::from_calendar_date(year, month, 1));
        date.map_or(0, |date| date.midnight().assume_utc().unix_timestamp())
    };
    let next = if month % 100 == 12 {
        month + 89
    } else {
        month + 1
    };
    Period {
        from: first(month),
        to: first(next),
    }
}

/// Returns the unit by which raw rows of a table are counted.
pub(super) fn raw_unit(raw: &RawTable) -> i64 {
    if raw.time == "day" { DAY } else { HOUR }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_ends_where_the_next_one_begins() {
        assert_eq!(of_month(202_612).to, of_month(202_701).from);
        assert_eq!(of_month(202_602).to - of_month(202_602).from, 28 * DAY);
        assert_eq!(of_month(197_001).from, 0);
    }

    #[test]
    fn neighbours_are_joined() {
        let hours = BTreeSet::from([0, HOUR, 3 * HOUR]);
        let found: Vec<_> = joined(&hours, HOUR)
            .iter()
            .map(|one| (one.from, one.to))
            .collect();
        assert_eq!(found, [(0, 2 * HOUR), (3 * HOUR, 4 * HOUR)]);
    }
}
