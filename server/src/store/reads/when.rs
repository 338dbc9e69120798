//! Stretches of time as conditions on rows.

use super::define::Time;
use super::statement::{Grain, Reading, Span, Statement};

impl Reading {
    /// When a row happened, or arrived where that is asked, in seconds since the epoch.
    pub(super) fn seconds(&self) -> String {
        if self.received {
            return "toUnixTimestamp(s.received_at)".to_owned();
        }
        match (self.grain, self.subject.time) {
            (Grain::Hourly, _) => "toUnixTimestamp(s.hour)".to_owned(),
            (Grain::Daily, _) => "toUnixTimestamp(toDateTime(s.day, 'UTC'))".to_owned(),
            (Grain::Raw, Time::Instant(column)) => format!("toUnixTimestamp(s.{column})"),
            (Grain::Raw, Time::Hour(column)) => format!("toUnixTimestamp(s.{column})"),
            (Grain::Raw, Time::Day(column)) => {
                format!("toUnixTimestamp(toDateTime(s.{column}, 'UTC'))")
            }
        }
    }

    /// The condition that a row lies in one of some stretches of time.
    pub(super) fn within_any(
        &self,
        spans: &[Span],
        name: &str,
        statement: &mut Statement,
    ) -> String {
        let grain = match self.grain {
            Grain::Raw => "raw",
            Grain::Hourly => "hour",
            Grain::Daily => "day",
        };
        let mut within = |(place, span): (usize, &Span)| {
            self.within(*span, &format!("{grain}_{name}{place}"), statement)
        };
        let all: Vec<_> = spans
            .iter()
            .enumerate()
            .map(|one| format!("({})", within(one)))
            .collect();
        if all.is_empty() {
            "0".to_owned()
        } else {
            format!("({})", all.join(" OR "))
        }
    }

    /// The condition that a row lies in a stretch of time, on the column as it is, so that the index is used.
    fn within(&self, span: Span, name: &str, statement: &mut Statement) -> String {
        if self.received {
            return self.arrived_within(span, name, statement);
        }
        let seconds = |micros: i64| micros.div_euclid(1_000_000);
        let (column, from, to, scale) = match (self.grain, self.subject.time) {
            (Grain::Raw, Time::Instant(column)) => {
                (column, span.from, span.to, "fromUnixTimestamp64Micro")
            }
            (Grain::Raw, Time::Hour(column)) => {
                (column, seconds(span.from), seconds(span.to), "toDateTime")
            }
            (Grain::Hourly, _) => ("hour", seconds(span.from), seconds(span.to), "toDateTime"),
            (Grain::Raw, Time::Day(column)) => {
                return self.within_days(column, span, name, statement);
            }
            (Grain::Daily, _) => return self.within_days("day", span, name, statement),
        };
        statement.numbers.push((format!("{name}_from"), from));
        statement.numbers.push((format!("{name}_to"), to));
        format!(
            "s.{column} >= {scale}({{{name}_from:Int64}}, 'UTC') AND s.{column} < {scale}({{{name}_to:Int64}}, 'UTC')"
        )
    }

    /// The condition that a row arrived in a stretch of time. What happened a week before is not looked for, so that not every
    /// partition is read.
    fn arrived_within(&self, span: Span, name: &str, statement: &mut Statement) -> String {
        const LATEST: i64 = 7 * 86_400_000_000;
        let numbers = &mut statement.numbers;
        numbers.push((format!("{name}_from"), span.from));
        numbers.push((format!("{name}_to"), span.to));
        let arrived = format!(
            "s.received_at >= fromUnixTimestamp64Micro({{{name}_from:Int64}}, 'UTC') \
             AND s.received_at < fromUnixTimestamp64Micro({{{name}_to:Int64}}, 'UTC')"
        );
        let Time::Instant(column) = self.subject.time else {
            return arrived;
        };
        numbers.push((format!("{name}_since"), span.from - LATEST));
        format!(
            "{arrived} AND s.{column} >= fromUnixTimestamp64Micro({{{name}_since:Int64}}, 'UTC')"
        )
    }

    /// Whole days: the one that the stretch ends in is in it.
    fn within_days(
        &self,
        column: &str,
        span: Span,
        name: &str,
        statement: &mut Statement,
    ) -> String {
        const DAY: i64 = 86_400_000_000;
        statement
            .numbers
            .push((format!("{name}_from"), span.from.div_euclid(DAY)));
        statement
            .numbers
            .push((format!("{name}_to"), (span.to - 1).div_euclid(DAY)));
        format!(
            "s.{column} >= toDate({{{name}_from:Int64}}) AND s.{column} <= toDate({{{name}_to:Int64}})"
        )
    }
}
