//! The trait `Event`, and the limits that all signals share. `device_clock` checks times, and `resource` normalizes the resource of a
//! batch.

use std::cell::Cell;

use unjank_foundation::clock::UnixTime;
use unjank_protocol::{Attributes, Histogram, Limits, Signal, Text, Timestamp};

use super::attribute_names::keep_last_of_each_name;
use super::device_clock::DeviceClock;
use super::reject::Reject;
use super::rows::{Envelope, Table};
use super::text_filter::TextFilter;
use crate::records::FrameBuilder;

/// An event of a signal: its checks and its columns.
pub(super) trait Event {
    const SIGNAL: Signal;

    /// Corrects the clock, truncates long texts and lists, and rejects impossible values.
    fn check(&mut self, checks: &Checks<'_>) -> Result<(), Reject>;

    /// Passes every text to the filter, which may replace it.
    fn filter_texts(&mut self, filter: &mut TextFilter<'_>);

    /// Memory of its attributes, stacks and other lists in bytes, without their texts.
    fn lists_bytes(&self) -> usize {
        0
    }

    /// The place of the row among the rows of its batch, in the order of the table. `None` if the table is not ordered by hour.
    fn place(&self) -> Option<Place<'_>> {
        None
    }

    /// Writes the columns of the signal, after those of the envelope.
    fn columns(events: &[&Self], envelope: &Envelope<'_>, frame: &mut FrameBuilder)
    where
        Self: Sized;
}

/// What decides the order of the rows of a batch in their table. The hour of the time comes first.
#[derive(Clone, Copy)]
pub(super) struct Place<'e> {
    /// `None` if the table is ordered by hour and time alone.
    pub(super) name: Option<&'e str>,
    pub(super) time: UnixTime,
}

impl<'e> Place<'e> {
    /// For a table that is ordered by hour and time.
    pub(super) fn at(time: Timestamp) -> Self {
        Self {
            name: None,
            time: UnixTime::from(time),
        }
    }

    /// For a table that is ordered by hour, name and time.
    pub(super) fn named(name: &'e str, time: Timestamp) -> Self {
        Self {
            name: Some(name),
            ..Self::at(time)
        }
    }
}

impl<E: Event> Table for E {
    const NAME: &'static str = E::SIGNAL.as_str();
}

const DAY_MS: i64 = 86_400_000;
const MAX_VALUE: f64 = 1e240;

pub(super) struct Checks<'c> {
    limits: &'c Limits,
    pub(super) clock: DeviceClock<'c>,
    truncated: Cell<bool>,
}

impl<'c> Checks<'c> {
    pub(super) fn new(limits: &'c Limits, clock: DeviceClock<'c>) -> Self {
        Self {
            limits,
            clock,
            truncated: Cell::new(false),
        }
    }

    /// Whether anything was truncated since the last call.
    pub(super) fn take_truncated(&self) -> bool {
        self.truncated.take()
    }

    pub(super) fn duration_us(&self, name: &str, value: i64) -> Result<(), Reject> {
        if (0..=self.limits.span_us).contains(&value) {
            return Ok(());
        }
        Err(Reject::new(
            "duration_out_of_range",
            format!(
                "`{name}` is {value}, allowed is 0 to {}",
                self.limits.span_us
            ),
        ))
    }

    pub(super) fn duration_ms(&self, name: &str, value: i64) -> Result<(), Reject> {
        if (0..=DAY_MS).contains(&value) {
            return Ok(());
        }
        Err(Reject::new(
            "duration_out_of_range",
            format!("`{name}` is {value}, allowed is 0 to {DAY_MS}"),
        ))
    }

    pub(super) fn sample_rate(&self, rate: f64) -> Result<(), Reject> {
        if (Limits::SMALLEST_RATE..=1.0).contains(&rate) {
            return Ok(());
        }
        Err(Reject::new(
            "sample_rate_out_of_range",
            format!(
                "`sample_rate` is {rate:?}, allowed is {:?} to 1",
                Limits::SMALLEST_RATE
            ),
        ))
    }

    /// Checks a number that has 64 bits on the wire.
    pub(super) fn number(&self, name: &str, value: u64) -> Result<(), Reject> {
        if value <= Limits::LARGEST_NUMBER {
            return Ok(());
        }
        let detail = outside(name, value, 0);
        Err(Reject::new("value_out_of_range", detail))
    }

    /// Checks the number of values that a sample represents.
    pub(super) fn count(&self, name: &str, count: u64) -> Result<(), Reject> {
        let detail = || outside(name, count, 1);
        if count == 0 {
            return Err(Reject::new("count_out_of_range", detail()));
        }
        if count > Limits::LARGEST_NUMBER {
            return Err(Reject::new("value_out_of_range", detail()));
        }
        Ok(())
    }

    /// Larger numbers have no bucket in a distribution, and their sums are infinite.
    pub(super) fn finite(&self, name: &str, value: f64) -> Result<(), Reject> {
        if value.is_finite() {
            if value.abs() <= MAX_VALUE {
                return Ok(());
            }
            return Err(Reject::new(
                "value_out_of_range",
                format!("`{name}` is {value:e}, allowed is -1e240 to 1e240"),
            ));
        }
        Err(Reject::new(
            "value_not_finite",
            format!("`{name}` is {value}"),
        ))
    }

    pub(super) fn required(&self, name: &str, text: &Text<'_>) -> Result<(), Reject> {
        if text.is_empty() {
            return Err(Reject::new(
                "name_missing",
                format!("`{name}` is missing or empty"),
            ));
        }
        Ok(())
    }

    /// Truncates a text to the limit.
    pub(super) fn text(&self, text: &mut Text<'_>) {
        if text.len() > self.limits.string_bytes && text.truncate(self.limits.string_bytes) {
            self.truncated.set(true);
        }
    }

    /// Truncates a list to the limit.
    pub(super) fn list<T>(&self, list: &mut Vec<T>) {
        self.cut(list, self.limits.attributes);
    }

    /// Truncates a list to its last items.
    pub(super) fn latest<T>(&self, list: &mut Vec<T>) {
        let excess = list.len().saturating_sub(self.limits.attributes);
        if excess > 0 {
            list.drain(..excess);
            self.truncated.set(true);
        }
    }

    pub(super) fn frames<T>(&self, frames: &mut Vec<T>) {
        self.cut(frames, self.limits.frames);
    }

    fn cut<T>(&self, list: &mut Vec<T>, limit: usize) {
        if list.len() > limit {
            list.truncate(limit);
            self.truncated.set(true);
        }
    }

    pub(super) fn attributes(&self, attributes: &mut Attributes<'_>) {
        for (key, value) in &mut attributes.0 {
            self.text(key);
            self.text(value);
        }
        // Names may be equal once they are truncated.
        keep_last_of_each_name(attributes);
        self.list(&mut attributes.0);
    }

    pub(super) fn histogram(&self, histogram: &mut Histogram) {
        self.list(&mut histogram.0);
        histogram.0.sort_unstable();
    }
}

fn outside(name: &str, value: u64, least: u64) -> String {
    let most = Limits::LARGEST_NUMBER;
    format!("`{name}` is {value}, allowed is {least} to {most}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_names_that_are_equal_once_truncated_the_last_one_stays() {
        let limits = Limits::default();
        let clock = DeviceClock::new(&limits, UnixTime::from_micros(0), None);
        let checks = Checks::new(&limits, clock);
        let long = "a".repeat(limits.string_bytes);
        let attribute = |end: &str| {
            (
                Text::from(format!("{long}{end}")),
                Text::from(end.to_owned()),
            )
        };
        let mut attributes = Attributes(["b", "c"].map(attribute).into());
        checks.attributes(&mut attributes);
        let values = attributes.0.iter().map(|(_, value)| value.as_str());
        assert_eq!(values.collect::<Vec<_>>(), ["c"]);
    }
}
