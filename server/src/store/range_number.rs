//! Numbers of folds, of ranges in a fold, and of single records in a range. No two are ever equal, on any server.
//!
//! ```text
//! milliseconds since the epoch 48 bits | log 32 | random 12 | range in its fold 12 | record in its range 24
//! ```
//! The number of a row identifies its range, its fold and its log. Numbers grow with time, so that an index finds them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use unjank_foundation::clock::UnixTime;
use unjank_foundation::fingerprint::fingerprint;
use uuid::Uuid;

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Number(u128);

const RECORD_BITS: u32 = 24;
const RANGE_BITS: u32 = 12;
const FOLD_BITS: u32 = RECORD_BITS + RANGE_BITS;
const RANDOM_BITS: u32 = 12;
const LOG_BITS: u32 = 32;
const TIME_AT: u32 = FOLD_BITS + RANDOM_BITS + LOG_BITS;

/// Maximum number of ranges in a fold.
pub(super) const RANGES: u16 = (1 << RANGE_BITS) - 1;

impl Number {
    /// Draws the number of a new fold, which is greater than `after`.
    pub(super) fn draw(log_id: Uuid, at: UnixTime, after: Self, random: u64) -> Self {
        let millis = u128::try_from(at.as_micros() / 1_000).unwrap_or_default();
        let earliest = (after.0 >> TIME_AT) + 1;
        let log = u128::from(Self::log_bits(log_id));
        let random = u128::from(random >> (u64::BITS - RANDOM_BITS));
        let log_and_random = (log << RANDOM_BITS) | random;
        Self((millis.max(earliest) << TIME_AT) | (log_and_random << FOLD_BITS))
    }

    /// Returns a lower bound of all numbers that were drawn in the period `time` before this one.
    pub(super) fn earlier_by(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(time.as_millis() << TIME_AT) >> TIME_AT << TIME_AT)
    }

    /// Returns the fold to which the number belongs.
    pub(super) fn fold(self) -> Self {
        Self(self.0 >> FOLD_BITS << FOLD_BITS)
    }

    /// Returns the range to which the number belongs.
    pub(super) fn range(self) -> Self {
        Self(self.0 >> RECORD_BITS << RECORD_BITS)
    }

    /// Returns the number of a range of the fold, counted from 1.
    pub(super) fn of_range(self, count: u16) -> Self {
        Self(self.fold().0 | (u128::from(count) << RECORD_BITS))
    }

    /// Returns the number of a record of the range that is sent alone.
    pub(super) fn record_number(self, seq: u64) -> Self {
        const RECORDS: u64 = (1 << RECORD_BITS) - 1;
        Self(self.range().0 | u128::from(1 + seq % RECORDS))
    }

    /// The fold of `range_id` in SQL.
    pub(super) const FOLD_SQL: &str = "bitShiftLeft(bitShiftRight(range_id, 36), 36)";
    /// The log of `range_id` in SQL.
    pub(super) const LOG_SQL: &str = "toUInt32(bitAnd(bitShiftRight(range_id, 48), 4294967295))";
    /// Returns the bits of a log as a literal of the type of [`Self::LOG_SQL`].
    pub(super) fn sql_of_log(log: u32) -> String {
        format!("toUInt32({log})")
    }

    /// The time of `range_id` in SQL, in milliseconds since the epoch.
    pub(super) const MILLIS_SQL: &str = "bitShiftRight(range_id, 80)";

    /// Returns the bits that identify a log in its numbers.
    pub(super) fn log_bits(log_id: Uuid) -> u32 {
        (fingerprint(&[log_id.as_bytes()]) >> (u64::BITS - LOG_BITS)) as u32
    }

    /// Returns the bits of the log, see [`Self::log_bits`].
    pub(super) fn log(self) -> u32 {
        (self.0 >> (FOLD_BITS + RANDOM_BITS)) as u32
    }

    /// Returns the last number that is counted if this number is the mark of `outcomes`. The mark is a range, or the fold of a single dead letter.
    pub(super) fn last_counted(self) -> Self {
        if self == self.fold() {
            self.last_of_fold()
        } else {
            self.last_of_range()
        }
    }

    /// Returns the last number of the fold.
    pub(super) fn last_of_fold(self) -> Self {
        Self(self.0 | ((1 << FOLD_BITS) - 1))
    }

    /// Returns a lower bound of all numbers that are drawn from this time on. `seconds` is since the epoch.
    pub(super) fn first_at(seconds: i64) -> Self {
        let millis = u128::try_from(seconds.saturating_mul(1_000)).unwrap_or_default();
        Self(millis << TIME_AT)
    }

    /// Returns when the number was drawn, in seconds since the epoch.
    pub(super) fn seconds(self) -> i64 {
        i64::try_from((self.0 >> TIME_AT) / 1_000).unwrap_or(i64::MAX)
    }

    pub(super) fn value(self) -> u128 {
        self.0
    }

    pub(super) fn from_value(value: u128) -> Self {
        Self(value)
    }

    /// Returns an SQL literal. ClickHouse reads a bare number of this size as a float.
    pub(super) fn sql(self) -> String {
        format!("toUInt128('{}')", self.0)
    }

    /// Returns the SQL condition for numbers of single records of the range.
    pub(super) fn sql_of_records(self) -> String {
        format!(
            "BETWEEN {} AND {}",
            self.record_number(0).sql(),
            self.last_of_range().sql()
        )
    }

    /// Returns the last number of the range.
    pub(super) fn last_of_range(self) -> Self {
        Self(self.range().0 | ((1 << RECORD_BITS) - 1))
    }

    /// Returns the SQL condition for numbers of the fold.
    pub(super) fn sql_of_fold(self) -> String {
        format!(
            "BETWEEN {} AND {}",
            self.fold().sql(),
            self.last_of_fold().sql()
        )
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl From<Number> for String {
    fn from(number: Number) -> Self {
        number.to_string()
    }
}

impl TryFrom<String> for Number {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        u128::from_str_radix(&text, 16).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: Uuid = Uuid::from_u128(7);

    #[test]
    fn numbers_grow_even_if_the_clock_stops_or_goes_back() {
        let first = Number::draw(LOG, UnixTime::from_micros(1_000_000), Number::default(), 7);
        let second = Number::draw(
            LOG,
            UnixTime::from_micros(1_000_000),
            first.of_range(RANGES).record_number(u64::MAX),
            7,
        );
        let third = Number::draw(LOG, UnixTime::from_micros(0), second, 7);
        assert!(first < second && second < third);
        assert!(Number::draw(LOG, UnixTime::from_micros(5_000_000_000), third, 7) > third);
    }

    #[test]
    fn a_number_identifies_its_range_and_its_fold() {
        let fold = Number::draw(
            LOG,
            UnixTime::from_micros(1_700_000_000_000_000),
            Number::default(),
            u64::MAX,
        );
        let range = fold.of_range(RANGES);
        let record = range.record_number(u64::MAX);
        assert!(fold < range && range < record && record <= fold.last_of_fold());
        assert_eq!((record.fold(), record.range()), (fold, range));
        assert_ne!(
            range.record_number(0),
            range,
            "the number of a range is not the number of a record"
        );
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), record);
    }
}
