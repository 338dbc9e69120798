//! The clock of a device: corrects its times, and rejects events whose corrected time is impossible.

use std::fmt::Display;

use unjank_foundation::clock::UnixTime;
use unjank_protocol::{Day, Limits, Timestamp};

use super::reject::Reject;

/// The code of events whose times are too old or too far ahead when they arrive.
pub(super) const TIME_OUT_OF_RANGE: &str = "time_out_of_range";

/// A smaller skew is not corrected, because the network may have caused it.
const SKEW_FLOOR_US: i64 = 30_000_000;
const DAY_US: i64 = 86_400_000_000;

/// How the clock of a device differs from the server's.
pub(super) struct DeviceClock<'c> {
    limits: &'c Limits,
    received_at: UnixTime,
    skew_us: i64,
}

impl<'c> DeviceClock<'c> {
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

    /// Corrects `time` and rejects the event if the corrected time is too old or too far ahead.
    pub(super) fn time(&self, time: &mut Timestamp) -> Result<(), Reject> {
        let sent = *time;
        *time = time.shifted(self.shift_us());
        let age = Timestamp::from(self.received_at).micros_since(*time);
        if age > self.limits.age_us || age < -self.limits.ahead_us {
            let days = self.limits.age_us / DAY_US;
            let minutes = self.limits.ahead_us / 60_000_000;
            return Err(Reject::new(
                TIME_OUT_OF_RANGE,
                format!(
                    "{}; {days} days back and {minutes} minutes ahead are allowed",
                    self.as_corrected(&sent, &*time)
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

    /// The time or day of a rejected event, before and after the correction.
    fn as_corrected(&self, sent: &impl Display, corrected: &impl Display) -> String {
        if self.shift_us() == 0 {
            format!("{sent} is too old or too far ahead")
        } else {
            format!(
                "{sent}, which is {corrected} after clock correction, is too old or too far ahead"
            )
        }
    }

    /// Corrects a natural day, and rejects a day that is too old or too far ahead. Because of time zones, the limits are two days wider than
    /// for times.
    pub(super) fn day(&self, day: &mut Day) -> Result<(), Reject> {
        let sent = *day;
        let noon = i64::from(day.as_days())
            .saturating_mul(DAY_US)
            .saturating_add(DAY_US / 2);
        let noon = noon.saturating_add(self.shift_us());
        *day = Day::containing(Timestamp::from_micros(noon));
        let age = self.received_at.as_micros().saturating_sub(noon);
        let oldest = self.limits.age_us.saturating_add(2 * DAY_US);
        if age > oldest || age < -2 * DAY_US {
            let days = oldest / DAY_US;
            return Err(Reject::new(
                TIME_OUT_OF_RANGE,
                format!(
                    "{}; its noon (UTC) may be {days} days back and 2 days ahead",
                    self.as_corrected(&sent, &*day)
                ),
            ));
        }
        Ok(())
    }
}
