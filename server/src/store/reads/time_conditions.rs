//! Conditions on the time of rows.

use std::time::Duration;

use unjank_foundation::clock::DAY;

use super::define::Time;
use super::reading::{Grain, Reading, Span};
use super::statement::Statement;

impl Reading {
    /// Returns the time of a row in seconds since the epoch: the time of arrival if `received` is set.
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

    /// Returns the condition that a row lies in one of the periods.
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

    /// Returns the condition that a row lies in a period. It uses the bare column, so that the index applies.
    fn within(&self, span: Span, name: &str, statement: &mut Statement) -> String {
        if self.received {
            return self.arrived_within(span, name, statement);
        }
        let micros = |span: Span| (span.from.as_micros(), span.to.as_micros());
        let seconds = |span: Span| (span.from.as_secs(), span.to.as_secs());
        let (column, (from, to), scale) = match (self.grain, self.subject.time) {
            (Grain::Raw, Time::Instant(column)) => {
                (column, micros(span), "fromUnixTimestamp64Micro")
            }
            (Grain::Raw, Time::Hour(column)) => (column, seconds(span), "toDateTime"),
            (Grain::Hourly, _) => ("hour", seconds(span), "toDateTime"),
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

    /// Returns the condition that a row arrived in a period. Events that happened more than a week before the period are ignored;
    /// otherwise the query would read all partitions.
    fn arrived_within(&self, span: Span, name: &str, statement: &mut Statement) -> String {
        const LATEST: Duration = Duration::from_secs(7 * 86_400);
        let numbers = &mut statement.numbers;
        numbers.push((format!("{name}_from"), span.from.as_micros()));
        numbers.push((format!("{name}_to"), span.to.as_micros()));
        let arrived = format!(
            "s.received_at >= fromUnixTimestamp64Micro({{{name}_from:Int64}}, 'UTC') \
             AND s.received_at < fromUnixTimestamp64Micro({{{name}_to:Int64}}, 'UTC')"
        );
        let Time::Instant(column) = self.subject.time else {
            return arrived;
        };
        numbers.push((format!("{name}_since"), (span.from - LATEST).as_micros()));
        format!(
            "{arrived} AND s.{column} >= fromUnixTimestamp64Micro({{{name}_since:Int64}}, 'UTC')"
        )
    }

    /// Returns the condition for whole days. It includes the day in which the period ends.
    fn within_days(
        &self,
        column: &str,
        span: Span,
        name: &str,
        statement: &mut Statement,
    ) -> String {
        const INSTANT: Duration = Duration::from_micros(1);
        statement
            .numbers
            .push((format!("{name}_from"), span.from.number_of(DAY)));
        statement
            .numbers
            .push((format!("{name}_to"), (span.to - INSTANT).number_of(DAY)));
        format!(
            "s.{column} >= toDate({{{name}_from:Int64}}) AND s.{column} <= toDate({{{name}_to:Int64}})"
        )
    }
}
