//! Numbers of folds, of the ranges in them, and of single records in those: no two are ever the same, whatever server drew them.
//!
//! ```text
//! milliseconds since the epoch 48 bits | of the log 32 | random 12 | range in its fold 12 | record in its range 24
//! ```
//! A row tells by its number which range brought it, which fold rolls it up, and whose log it was in. Numbers grow with time, so that an
//! index finds them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::fingerprint::fingerprint;

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

/// A fold has room for so many ranges.
pub(super) const RANGES: u16 = (1 << RANGE_BITS) - 1;

impl Number {
    /// The number of a new fold, greater than `after`. `at`: microseconds since the epoch.
    pub(super) fn draw(log_id: Uuid, at: i64, after: Self, random: u64) -> Self {
        let millis = u128::try_from(at / 1_000).unwrap_or_default();
        let earliest = (after.0 >> TIME_AT) + 1;
        let log = u128::from(Self::log_bits(log_id));
        let random = u128::from(random >> (u64::BITS - RANDOM_BITS));
        let log_and_random = (log << RANDOM_BITS) | random;
        Self((millis.max(earliest) << TIME_AT) | (log_and_random << FOLD_BITS))
    }

    /// A lower bound of all numbers drawn up to `time` before this one.
    pub(super) fn earlier_by(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(time.as_millis() << TIME_AT) >> TIME_AT << TIME_AT)
    }

    /// The fold that the number belongs to.
    pub(super) fn fold(self) -> Self {
        Self(self.0 >> FOLD_BITS << FOLD_BITS)
    }

    /// The range that the number belongs to.
    pub(super) fn range(self) -> Self {
        Self(self.0 >> RECORD_BITS << RECORD_BITS)
    }

    /// A fold's range, counted from 1.
    pub(super) fn of_range(self, count: u16) -> Self {
        Self(self.fold().0 | (u128::from(count) << RECORD_BITS))
    }

    /// A range's record, when it is sent alone.
    pub(super) fn of_record(self, seq: u64) -> Self {
        const RECORDS: u64 = (1 << RECORD_BITS) - 1;
        Self(self.range().0 | u128::from(1 + seq % RECORDS))
    }

    /// SQL: the fold of `range_id`.
    pub(super) const FOLD_SQL: &str = "bitShiftLeft(bitShiftRight(range_id, 36), 36)";
    /// The log in a number, as SQL says it of `range_id`.
    pub(super) const LOG_SQL: &str = "toUInt32(bitAnd(bitShiftRight(range_id, 48), 4294967295))";
    /// The bits of a log as a literal of the type that [`Self::LOG_SQL`] has.
    pub(super) fn sql_of_log(log: u32) -> String {
        format!("toUInt32({log})")
    }

    /// The time in a number, in milliseconds since the epoch.
    pub(super) const MILLIS_SQL: &str = "bitShiftRight(range_id, 80)";

    /// What stands for a log in its numbers.
    pub(super) fn log_bits(log_id: Uuid) -> u32 {
        (fingerprint(&[log_id.as_bytes()]) >> (u64::BITS - LOG_BITS)) as u32
    }

    /// The bits of the log, see [`Self::log_bits`].
    #[cfg(test)]
    pub(super) fn log(self) -> u32 {
        (self.0 >> (FOLD_BITS + RANDOM_BITS)) as u32
    }

    /// No number is greater whose counts are in when this is the mark of `outcomes`: a range's records, or all of a fold that is one item.
    pub(super) fn last_counted(self) -> Self {
        if self == self.fold() {
            self.last_of_fold()
        } else {
            self.last_of_range()
        }
    }

    /// No number that belongs to the fold is greater.
    pub(super) fn last_of_fold(self) -> Self {
        Self(self.0 | ((1 << FOLD_BITS) - 1))
    }

    /// A lower bound of all numbers drawn from a time on, in seconds since the epoch.
    pub(super) fn first_at(seconds: i64) -> Self {
        let millis = u128::try_from(seconds.saturating_mul(1_000)).unwrap_or_default();
        Self(millis << TIME_AT)
    }

    /// When the number was drawn, in seconds since the epoch.
    pub(super) fn seconds(self) -> i64 {
        i64::try_from((self.0 >> TIME_AT) / 1_000).unwrap_or(i64::MAX)
    }

    pub(super) fn value(self) -> u128 {
        self.0
    }

    pub(super) fn from_value(value: u128) -> Self {
        Self(value)
    }

    /// As an SQL literal: a bare one of this size is a float.
    pub(super) fn sql(self) -> String {
        format!("toUInt128('{}')", self.0)
    }

    /// What an SQL condition says of a column with a number of a record of the range.
    pub(super) fn sql_of_records(self) -> String {
        format!(
            "BETWEEN {} AND {}",
            self.of_record(0).sql(),
            self.last_of_range().sql()
        )
    }

    /// No number of a record of the range is greater.
    pub(super) fn last_of_range(self) -> Self {
        Self(self.range().0 | ((1 << RECORD_BITS) - 1))
    }

    /// What an SQL condition says of a column with a number that belongs to the fold.
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
    fn numbers_grow_even_when_the_clock_stands_or_goes_back() {
        let first = Number::draw(LOG, 1_000_000, Number::default(), 7);
        let second = Number::draw(
            LOG,
            1_000_000,
            first.of_range(RANGES).of_record(u64::MAX),
            7,
        );
        let third = Number::draw(LOG, 0, second, 7);
        assert!(first < second && second < third);
        assert!(Number::draw(LOG, 5_000_000_000, third, 7) > third);
    }

    #[test]
    fn a_number_tells_its_range_and_its_fold() {
        let fold = Number::draw(LOG, 1_700_000_000_000_000, Number::default(), u64::MAX);
        let range = fold.of_range(RANGES);
        let record = range.of_record(u64::MAX);
        assert!(fold < range && range < record && record <= fold.last_of_fold());
        assert_eq!((record.fold(), record.range()), (fold, range));
        assert_ne!(
            range.of_record(0),
            range,
            "the range itself is nobody's record"
        );
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), record);
    }
}
