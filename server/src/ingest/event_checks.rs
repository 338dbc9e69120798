//! The checks that all signals share: limits, clock correction, and the rejection of an event.

use std::cell::Cell;

use unjank_foundation::clock::UnixTime;
use unjank_protocol::{Attributes, Histogram, Limits, Rejected, Resource, Signal, Text, Timestamp};

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

    /// Writes the columns of the signal, after those of the envelope.
    fn columns(events: &[Self], envelope: &Envelope<'_>, frame: &mut FrameBuilder)
    where
        Self: Sized;
}

impl<E: Event> Table for E {
    const NAME: &'static str = E::SIGNAL.as_str();
}

/// Why one event is rejected. The code is stable and machine-readable.
#[derive(Debug, PartialEq, Eq)]
pub struct Reject {
    pub code: &'static str,
    pub detail: String,
}

impl Reject {
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
        }
    }

    pub(super) fn at(self, signal: Signal, index: u32) -> Rejected {
        Rejected {
            signal,
            index,
            code: self.code.to_owned(),
            detail: self.detail,
        }
    }
}

/// The code of events whose times are too old or too far ahead when they arrive.
pub(super) const TIME_OUT_OF_RANGE: &str = "time_out_of_range";

/// A smaller skew is not corrected, because the network may have caused it.
const SKEW_FLOOR_US: i64 = 30_000_000;
const DAY_US: i64 = 86_400_000_000;
const DAY_MS: i64 = 86_400_000;
const MAX_VALUE: f64 = 1e240;

pub(super) struct Checks<'c> {
    limits: &'c Limits,
    received_at: UnixTime,
    skew_us: i64,
    truncated: Cell<bool>,
}

impl<'c> Checks<'c> {
    /// skew = receive time − `sent_at`.
    pub(super) fn new(
        limits: &'c Limits,
        received_at: UnixTime,
        sent_at: Option<Timestamp>,
    ) -> Self {
        let skew_us = sent_at.map_or(0, |sent_at| {
            Timestamp::from(received_at).micros_since(sent_at)
        });
        Self {
            limits,
            received_at,
            skew_us,
            truncated: Cell::new(false),
        }
    }

    pub(super) fn skew_us(&self) -> i64 {
        self.skew_us
    }

    fn shift_us(&self) -> i64 {
        if self.skew_us.abs() > SKEW_FLOOR_US {
            self.skew_us
        } else {
            0
        }
    }

    /// Whether anything was truncated since the last call.
    pub(super) fn take_truncated(&self) -> bool {
        self.truncated.take()
    }

    /// Corrects `time` and rejects the event if the corrected time is too old or too far ahead.
    pub(super) fn time(&self, time: &mut Timestamp) -> Result<(), Reject> {
        let sent = *time;
        *time = time.shifted(self.shift_us());
        let age = Timestamp::from(self.received_at).micros_since(*time);
        if age > self.limits.age_us || age < -self.limits.ahead_us {
            return Err(Reject::new(
                TIME_OUT_OF_RANGE,
                format!(
                    "{sent} is {time} after clock correction; {} days back and {} minutes ahead are allowed",
                    self.limits.age_us / DAY_US,
                    self.limits.ahead_us / 60_000_000
                ),
            ));
        }
        Ok(())
    }

    /// Corrects a time inside an event that was checked already. A time outside the range of the column is clamped.
    pub(super) fn inner_time(&self, time: &mut Timestamp) {
        let received_at = Timestamp::from(self.received_at);
        let age = received_at.micros_since(time.shifted(self.shift_us()));
        *time = received_at.shifted(-age.clamp(-30 * DAY_US, 30 * DAY_US));
    }

    /// Corrects a natural day, and rejects a day that is too old or too far ahead. Because of time zones, the limits are two days wider than
    /// for times.
    pub(super) fn day(&self, day: &mut unjank_protocol::Day) -> Result<(), Reject> {
        let sent = *day;
        let noon = i64::from(day.as_days())
            .saturating_mul(DAY_US)
            .saturating_add(DAY_US / 2);
        let noon = noon.saturating_add(self.shift_us());
        *day = unjank_protocol::Day::containing(Timestamp::from_micros(noon));
        let age = self.received_at.as_micros().saturating_sub(noon);
        if age > self.limits.age_us.saturating_add(2 * DAY_US) || age < -2 * DAY_US {
            return Err(Reject::new(
                TIME_OUT_OF_RANGE,
                format!("{sent} is too old or ahead (after correction: {day})"),
            ));
        }
        Ok(())
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
        if rate > 0.0 && rate <= 1.0 {
            return Ok(());
        }
        Err(Reject::new(
            "sample_rate_out_of_range",
            format!("`sample_rate` is {rate}, allowed is above 0 to 1"),
        ))
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
            return Err(Reject::new("name_missing", format!("`{name}` is empty")));
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
        self.list(&mut attributes.0);
        for (key, value) in &mut attributes.0 {
            self.text(key);
            self.text(value);
        }
    }

    pub(super) fn histogram(&self, histogram: &mut Histogram) {
        self.list(&mut histogram.0);
        histogram.0.sort_unstable();
    }

    /// Truncates the texts of the resource. They never cause a rejection.
    pub(super) fn resource(&self, resource: &mut Resource<'_>) {
        for text in [
            &mut resource.app_id,
            &mut resource.app_version,
            &mut resource.channel,
            &mut resource.mode,
            &mut resource.os_name,
            &mut resource.os_version,
            &mut resource.device_model,
            &mut resource.device_manufacturer,
            &mut resource.device_class,
            &mut resource.locale,
            &mut resource.user_id,
            &mut resource.sdk_name,
            &mut resource.sdk_version,
        ] {
            self.text(text);
        }
        self.take_truncated();
        if resource.os_name.chars().any(char::is_uppercase) {
            resource.os_name = Text::from(resource.os_name.to_lowercase());
        }
    }
}
