//! Fields with a number, a name of a closed set, or a time.

use unjank_protocol::{
    AppStartKind, Day, JankEnd, JankKind, LaunchKind, Network, PageOutcome, Signal, SpanKind,
    SpanStatus, Timestamp,
};

use super::{Key, Kind, Layout};
use crate::column::{NumberCursor, Numbers, SECOND, Table};
use crate::faults::{Fault, Unreadable};
use crate::state::{Incoming, Outgoing};
use crate::varint::{from_zigzag, put, zigzag};

/// A value with a number on the wire. 0 is the default of the field.
pub(crate) trait Number: Sized + Copy {
    /// Stands for a malformed value.
    const ANY: Self;

    fn number(self) -> u64;

    fn from_number(number: u64) -> Option<Self>;

    /// Whether an option of this value is written at all.
    fn is_present(self) -> bool {
        true
    }

    /// Reads the value of an option. `Err` if it is malformed.
    fn option(number: u64) -> Result<Option<Self>, Fault> {
        Self::from_number(number).map(Some).ok_or(Fault::OutOfRange)
    }
}

macro_rules! unsigned {
    ($($number:ty),+) => {$(
        impl Number for $number {
            const ANY: Self = 0;

            fn number(self) -> u64 {
                u64::from(self)
            }

            fn from_number(number: u64) -> Option<Self> {
                Self::try_from(number).ok()
            }
        }
    )+};
}

unsigned!(u16, u32, u64);

macro_rules! names {
    ($($name:ident),+) => {$(
        impl Number for $name {
            const ANY: Self = Self::Other;

            fn number(self) -> u64 {
                match self {
                    _ if self == Self::default() => 0,
                    Self::Other => 1,
                    known => known as u64 + 2,
                }
            }

            fn from_number(number: u64) -> Option<Self> {
                let known = number.checked_sub(2).map(|place| usize::try_from(place).ok());
                Some(match known {
                    None if number == 0 => Self::default(),
                    None => Self::Other,
                    Some(place) => {
                        let named = place.and_then(|place| Self::ALL.get(place));
                        named.copied().unwrap_or(Self::Other)
                    }
                })
            }
        }
    )+};
}

names!(
    AppStartKind,
    JankEnd,
    JankKind,
    LaunchKind,
    Network,
    PageOutcome,
    Signal,
    SpanKind,
    SpanStatus
);

impl Number for bool {
    const ANY: Self = false;

    fn number(self) -> u64 {
        u64::from(self)
    }

    fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

/// Durations: rarely negative, and then not valid.
impl Number for i64 {
    const ANY: Self = 0;

    fn number(self) -> u64 {
        self.cast_unsigned()
    }

    fn from_number(number: u64) -> Option<Self> {
        Some(number.cast_signed())
    }
}

impl Number for i32 {
    const ANY: Self = 0;

    fn number(self) -> u64 {
        zigzag(i64::from(self))
    }

    fn from_number(number: u64) -> Option<Self> {
        Self::try_from(from_zigzag(number)).ok()
    }
}

/// Bytes in reverse order, because short fractions and whole numbers have zeros at the end.
impl Number for f64 {
    const ANY: Self = 0.0;

    fn number(self) -> u64 {
        self.to_bits().swap_bytes()
    }

    fn from_number(number: u64) -> Option<Self> {
        Some(Self::from_bits(number.swap_bytes())).filter(|number| number.is_finite())
    }

    fn is_present(self) -> bool {
        self.is_finite()
    }

    /// JSON has no other numbers, and its `null` is a missing one.
    fn option(number: u64) -> Result<Option<Self>, Fault> {
        Ok(Self::from_number(number))
    }
}

impl Number for Day {
    const ANY: Self = Self::from_days(0);

    fn number(self) -> u64 {
        self.as_days().number()
    }

    fn from_number(number: u64) -> Option<Self> {
        /// The years 0 to 9999.
        const KNOWN: std::ops::Range<i32> = -719_528..2_932_897;
        let days = i32::from_number(number).filter(|days| KNOWN.contains(days));
        days.map(Self::from_days)
    }
}

/// The years 0 to 9999, as in JSON.
pub(crate) fn is_known(time: Timestamp) -> bool {
    (-62_167_219_200_000_000..253_402_300_800_000_000).contains(&time.as_micros())
}

/// Marks a layout of one column of numbers.
macro_rules! one_column {
    ($($kind:ident),+) => {$(
        impl Layout for $kind {
            type Column = Numbers;
            type Cursor<'a> = NumberCursor<'a>;

            fn write(column: &mut Numbers, tag: u64, _: &mut Outgoing, out: &mut Vec<u8>) {
                column.write(tag, out);
            }

            fn open<'a>(table: &Table<'a>, tag: u64, _: &mut Incoming<'a>) -> Result<NumberCursor<'a>, Unreadable> {
                table.numbers(tag)
            }

            fn is_done(cursor: &NumberCursor<'_>, _: &Incoming<'_>) -> bool {
                cursor.is_done()
            }
        }
    )+};
}

one_column!(Plain, Line, Rate);

fn next<T: Number>(
    cursor: &mut NumberCursor<'_>,
    state: &mut Incoming<'_>,
    field: &'static str,
) -> T {
    let number = T::from_number(cursor.next(state));
    number.unwrap_or_else(|| {
        state.malformed(field, Fault::OutOfRange);
        T::ANY
    })
}

/// A number as it is.
pub(crate) struct Plain;

impl<'a, T: Number> Kind<'a, T> for Plain {
    #[inline]
    fn push(column: &mut Numbers, value: &T, _: &mut Outgoing) {
        column.push(value.number());
    }

    #[inline]
    fn next(cursor: &mut NumberCursor<'a>, state: &mut Incoming<'a>, field: &'static str) -> T {
        next(cursor, state, field)
    }
}

impl<'a, T: Number> Key<'a, T> for Plain {
    fn key(value: &T, _: &mut Outgoing, key: &mut Vec<u8>) {
        put(key, value.number());
    }
}

/// A line of a frame. Everything below 1 is unknown, and written as 0.
pub(crate) struct Line;

impl Kind<'_, i64> for Line {
    #[inline]
    fn push(column: &mut Numbers, line: &i64, _: &mut Outgoing) {
        column.push((*line).max(0).number());
    }

    #[inline]
    fn next(cursor: &mut NumberCursor<'_>, state: &mut Incoming<'_>, field: &'static str) -> i64 {
        next(cursor, state, field)
    }
}

impl Key<'_, i64> for Line {
    fn key(line: &i64, _: &mut Outgoing, key: &mut Vec<u8>) {
        put(key, (*line).max(0).number());
    }
}

/// A sample rate. The default is 1, so its difference from 1 is written.
pub(crate) struct Rate;

const WHOLE: u64 = 1.0_f64.to_bits();

impl Kind<'_, f64> for Rate {
    #[inline]
    fn push(column: &mut Numbers, rate: &f64, _: &mut Outgoing) {
        // JSON has no other numbers, and is read as this.
        let rate = if rate.is_finite() { *rate } else { 1.0 };
        column.push((rate.to_bits() ^ WHOLE).swap_bytes());
    }

    /// The range of rates is not checked here: a rate that is not finite has the same code as others that are out of range.
    #[inline]
    fn next(cursor: &mut NumberCursor<'_>, state: &mut Incoming<'_>, _: &'static str) -> f64 {
        f64::from_bits(cursor.next(state).swap_bytes() ^ WHOLE)
    }
}

/// A time, as its distance from the one before in the order of reading, whichever field of the signal that is. The time of an event is
/// required. Times inside events need no column if all of them are 0 microseconds after the one before.
pub(crate) struct Times<const REQUIRED: bool = false>;

impl<const REQUIRED: bool> Layout for Times<REQUIRED> {
    type Column = Numbers;
    /// `None` if the column is left out.
    type Cursor<'a> = Option<NumberCursor<'a>>;

    fn write(column: &mut Numbers, tag: u64, _: &mut Outgoing, out: &mut Vec<u8>) {
        if REQUIRED {
            column.write_with_zeros(tag, out);
        } else {
            column.write(tag, out);
        }
    }

    fn open<'a>(
        table: &Table<'a>,
        tag: u64,
        _: &mut Incoming<'a>,
    ) -> Result<Self::Cursor<'a>, Unreadable> {
        table.numbers_if_any(tag)
    }

    fn is_done(cursor: &Self::Cursor<'_>, _: &Incoming<'_>) -> bool {
        cursor.as_ref().is_none_or(NumberCursor::is_done)
    }
}

impl<'a, const REQUIRED: bool> Kind<'a, Timestamp> for Times<REQUIRED> {
    #[inline]
    fn push(column: &mut Numbers, time: &Timestamp, state: &mut Outgoing) {
        let micros = time.as_micros();
        column.push(zigzag(micros.wrapping_sub(state.time)));
        state.time = micros;
    }

    #[inline]
    fn next(
        cursor: &mut Self::Cursor<'a>,
        state: &mut Incoming<'a>,
        field: &'static str,
    ) -> Timestamp {
        if let Some(cursor) = cursor {
            let step = from_zigzag(cursor.next(state));
            state.time = state.time.wrapping_add(step);
        } else if REQUIRED {
            state.malformed(field, Fault::Missing);
        }
        let time = Timestamp::from_micros(state.time);
        if !is_known(time) {
            state.malformed(field, Fault::OutOfRange);
        }
        time
    }
}

/// A natural day, as its number.
impl<'a> Kind<'a, Day> for Times<true> {
    fn push(column: &mut Numbers, day: &Day, _: &mut Outgoing) {
        column.push(day.number());
    }

    fn next(cursor: &mut Self::Cursor<'a>, state: &mut Incoming<'a>, field: &'static str) -> Day {
        if let Some(cursor) = cursor {
            return next(cursor, state, field);
        }
        state.malformed(field, Fault::Missing);
        Day::ANY
    }
}

/// The time since the app started, in milliseconds. It runs with the time of the event, so only the change of the difference is written. If
/// the column is left out, the uptime of all rows is unknown: 0.
pub(crate) struct Uptime;

impl Layout for Uptime {
    type Column = (Numbers, i64);
    type Cursor<'a> = Option<(NumberCursor<'a>, i64)>;

    fn write(column: &mut Self::Column, tag: u64, _: &mut Outgoing, out: &mut Vec<u8>) {
        column.0.write_with_zeros(tag, out);
        column.1 = 0;
    }

    fn open<'a>(
        table: &Table<'a>,
        tag: u64,
        _: &mut Incoming<'a>,
    ) -> Result<Self::Cursor<'a>, Unreadable> {
        Ok(table.numbers_if_any(tag)?.map(|numbers| (numbers, 0)))
    }

    fn is_done(cursor: &Self::Cursor<'_>, _: &Incoming<'_>) -> bool {
        cursor.as_ref().is_none_or(|(numbers, _)| numbers.is_done())
    }
}

impl<'a> Kind<'a, u64> for Uptime {
    #[inline]
    fn push((column, last): &mut Self::Column, uptime_ms: &u64, state: &mut Outgoing) {
        let booted = state
            .time
            .div_euclid(1_000)
            .wrapping_sub(uptime_ms.cast_signed());
        column.push(zigzag(booted.wrapping_sub(*last)));
        *last = booted;
    }

    #[inline]
    fn next(cursor: &mut Self::Cursor<'a>, state: &mut Incoming<'a>, _: &'static str) -> u64 {
        let Some((cursor, last)) = cursor else {
            return 0;
        };
        *last = last.wrapping_add(from_zigzag(cursor.next(state)));
        state
            .time
            .div_euclid(1_000)
            .wrapping_sub(*last)
            .cast_unsigned()
    }
}

/// A number that may be missing: whether it is there, and those that are there.
pub(crate) struct Maybe;

impl Layout for Maybe {
    type Column = [Numbers; 2];
    type Cursor<'a> = [NumberCursor<'a>; 2];

    fn write([present, values]: &mut Self::Column, tag: u64, _: &mut Outgoing, out: &mut Vec<u8>) {
        present.write(tag, out);
        values.write(tag | SECOND, out);
    }

    fn open<'a>(
        table: &Table<'a>,
        tag: u64,
        _: &mut Incoming<'a>,
    ) -> Result<Self::Cursor<'a>, Unreadable> {
        Ok([table.numbers(tag)?, table.numbers(tag | SECOND)?])
    }

    fn is_done([present, values]: &Self::Cursor<'_>, _: &Incoming<'_>) -> bool {
        present.is_done() && values.is_done()
    }
}

impl<'a, T: Number> Kind<'a, Option<T>> for Maybe {
    #[inline]
    fn push([present, values]: &mut Self::Column, value: &Option<T>, _: &mut Outgoing) {
        let value = value.filter(|value| value.is_present());
        present.push(u64::from(value.is_some()));
        if let Some(value) = value {
            values.push(value.number());
        }
    }

    #[inline]
    fn next(
        [present, values]: &mut Self::Cursor<'a>,
        state: &mut Incoming<'a>,
        field: &'static str,
    ) -> Option<T> {
        if !next::<bool>(present, state, field) {
            return None;
        }
        T::option(values.next(state)).unwrap_or_else(|fault| {
            state.malformed(field, fault);
            None
        })
    }
}

impl<'a, T: Number> Key<'a, Option<T>> for Maybe {
    fn key(value: &Option<T>, _: &mut Outgoing, key: &mut Vec<u8>) {
        let value = value.filter(|value| value.is_present());
        put(key, u64::from(value.is_some()));
        put(key, value.map_or(0, Number::number));
    }
}
