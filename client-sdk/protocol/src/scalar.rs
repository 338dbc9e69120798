//! Numbers and booleans in the notations of the languages that clients are written in: as texts, with fractions, and booleans as 0 and 1.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// From here on, floating-point numbers are not exact.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// Reads a number or a boolean of a required field, or an `Option` of one. Every field of the protocol with a number or a boolean is read with
/// this function or [`scalar_or_default`].
pub(crate) fn scalar<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Scalar,
{
    deserializer.deserialize_any(ScalarVisitor(PhantomData))
}

/// Reads a number or a boolean that may be missing.
pub(crate) fn scalar_or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Scalar + Default,
{
    scalar::<D, Option<T>>(deserializer).map(Option::unwrap_or_default)
}

/// Reads a sample rate. Missing and `null`: every event was sent. The text `NaN` is read as such, so that the server rejects it.
pub(crate) fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    scalar::<D, Option<f64>>(deserializer).map(|rate| rate.unwrap_or_else(whole))
}

/// The sample rate of events that were all sent.
pub(crate) fn whole() -> f64 {
    1.0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
pub(crate) fn is_whole(rate: &f64) -> bool {
    (*rate - 1.0).abs() < f64::EPSILON
}

/// A whole number that may be missing, in any notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeNumber(pub Option<u64>);

impl<'de> Deserialize<'de> for WholeNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        scalar(deserializer).map(Self)
    }
}

/// A count inside a map.
pub(crate) struct Count(pub(crate) u32);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        scalar(deserializer).map(Self)
    }
}

/// A number or a boolean. Each function returns `None` if the type has no such value.
pub(crate) trait Scalar: Sized {
    /// What a value must be.
    const EXPECTED: &'static str;

    fn from_u64(number: u64) -> Option<Self>;
    fn from_i64(number: i64) -> Option<Self>;
    fn from_f64(number: f64) -> Option<Self>;
    fn from_text(text: &str) -> Option<Self>;

    fn from_bool(_: bool) -> Option<Self> {
        None
    }

    /// The value of `null` and of the empty text.
    fn missing() -> Option<Self> {
        None
    }
}

macro_rules! whole_numbers {
    ($($type:ty, $expected:literal;)+) => {$(
        impl Scalar for $type {
            const EXPECTED: &'static str = $expected;

            #[inline]
            fn from_u64(number: u64) -> Option<Self> {
                Self::try_from(number).ok()
            }

            #[inline]
            fn from_i64(number: i64) -> Option<Self> {
                Self::try_from(number).ok()
            }

            #[cold]
            fn from_f64(number: f64) -> Option<Self> {
                Self::try_from(rounded(number)?).ok()
            }

            #[cold]
            fn from_text(text: &str) -> Option<Self> {
                Self::try_from(whole_of_text(text)?).ok()
            }
        }
    )+};
}

whole_numbers! {
    u64, "a whole number from 0 on";
    u32, "a whole number from 0 to 4294967295";
    u16, "a whole number from 0 to 65535";
    i64, "a whole number";
    i32, "a whole number from -2147483648 to 2147483647";
}

impl Scalar for f64 {
    const EXPECTED: &'static str = "a number";

    #[expect(clippy::cast_precision_loss, reason = "a float is what is asked for")]
    fn from_u64(number: u64) -> Option<Self> {
        Some(number as Self)
    }

    #[expect(clippy::cast_precision_loss, reason = "a float is what is asked for")]
    fn from_i64(number: i64) -> Option<Self> {
        Some(number as Self)
    }

    #[inline]
    fn from_f64(number: f64) -> Option<Self> {
        Some(number)
    }

    #[cold]
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// 1 and 0, and the names in any case.
impl Scalar for bool {
    const EXPECTED: &'static str = "true or false";

    #[inline]
    fn from_bool(value: bool) -> Option<Self> {
        Some(value)
    }

    fn from_u64(number: u64) -> Option<Self> {
        match number {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn from_i64(number: i64) -> Option<Self> {
        u64::try_from(number).ok().and_then(Self::from_u64)
    }

    fn from_f64(number: f64) -> Option<Self> {
        u64::from_f64(number).and_then(Self::from_u64)
    }

    #[cold]
    fn from_text(text: &str) -> Option<Self> {
        let is = |name: &str| text.eq_ignore_ascii_case(name);
        match whole_number(text) {
            Some(number) => Self::from_u64(number),
            None if is("true") => Some(true),
            None if is("false") => Some(false),
            None => None,
        }
    }
}

impl<T: Scalar> Scalar for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    #[inline]
    fn from_bool(value: bool) -> Option<Self> {
        T::from_bool(value).map(Some)
    }

    #[inline]
    fn from_u64(number: u64) -> Option<Self> {
        T::from_u64(number).map(Some)
    }

    #[inline]
    fn from_i64(number: i64) -> Option<Self> {
        T::from_i64(number).map(Some)
    }

    fn from_f64(number: f64) -> Option<Self> {
        T::from_f64(number).map(Some)
    }

    fn from_text(text: &str) -> Option<Self> {
        T::from_text(text).map(Some)
    }

    fn missing() -> Option<Self> {
        Some(None)
    }
}

struct ScalarVisitor<T>(PhantomData<T>);

impl<T: Scalar> Visitor<'_> for ScalarVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    #[inline]
    fn visit_bool<E: Error>(self, value: bool) -> Result<T, E> {
        T::from_bool(value).ok_or_else(|| E::invalid_type(Unexpected::Bool(value), &self))
    }

    #[inline]
    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::from_u64(number).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    #[inline]
    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::from_i64(number).ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        T::from_f64(number).ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let value = match text.trim() {
            "" => T::missing(),
            number => T::from_text(number),
        };
        value.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    #[inline]
    fn visit_unit<E: Error>(self) -> Result<T, E> {
        T::missing().ok_or_else(|| E::invalid_type(Unexpected::Unit, &self))
    }
}

/// The whole number next to a number, unless floating-point numbers of that size are not exact.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn rounded(number: f64) -> Option<i64> {
    let whole = number.round();
    (whole.abs() <= LARGEST_EXACT).then_some(whole as i64)
}

/// The whole number that a text has, of either sign. Measured times have fractions, such as `41.7`, and are rounded.
fn whole_of_text(text: &str) -> Option<i128> {
    let (digits, sign) = match text.strip_prefix('-') {
        Some(digits) => (digits, -1),
        None => (text, 1),
    };
    match whole_number(digits) {
        Some(number) => Some(i128::from(number) * sign),
        None => rounded(text.parse().ok()?).map(i128::from),
    }
}

/// Parses a whole number in any notation of the languages that clients are written in: `41250`, `41250.0`, `4.125e4`, `-0`.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
pub fn whole_number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches('0').strip_suffix('.');
    if let Ok(number) = digits.unwrap_or(text).parse() {
        return Some(number);
    }
    let number: f64 = text.parse().ok()?;
    let is_whole = number.fract() == 0.0 && (0.0..=LARGEST_EXACT).contains(&number);
    is_whole.then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_read<T: Scalar + PartialEq + fmt::Debug>(cases: &[(&str, Option<T>)]) {
        for (json, expected) in cases {
            let read: Result<T, _> = scalar(&mut serde_json::Deserializer::from_str(json));
            assert_eq!(read.ok().as_ref(), expected.as_ref(), "{json}");
        }
    }

    #[test]
    fn whole_numbers_are_read_in_every_notation() {
        assert_read::<u64>(&[
            ("18446744073709551615", Some(u64::MAX)),
            ("\"18446744073709551615\"", Some(u64::MAX)),
            ("\" 41250 \"", Some(41_250)),
            ("\"4.125e4\"", Some(41_250)),
            ("41.7", Some(42)),
            ("\"41.7\"", Some(42)),
            ("-0.4", Some(0)),
            ("-0.6", None),
            ("1e17", None),
            ("-1", None),
            ("\"-1\"", None),
            ("\"\"", None),
            ("\"NaN\"", None),
            ("null", None),
            ("true", None),
            ("[]", None),
        ]);
        assert_read::<i64>(&[
            ("-9223372036854775808", Some(i64::MIN)),
            ("\"-9223372036854775808\"", Some(i64::MIN)),
            ("\"9223372036854775808\"", None),
            ("-3.5", Some(-4)),
            ("\"-3.5\"", Some(-4)),
            ("\"-2.0\"", Some(-2)),
        ]);
        assert_read::<u16>(&[
            ("65535", Some(u16::MAX)),
            ("65536", None),
            ("65535.5", None),
        ]);
        assert_read::<Option<u32>>(&[
            ("null", Some(None)),
            ("\"\"", Some(None)),
            ("\"7\"", Some(Some(7))),
            ("\"x\"", None),
        ]);
    }

    #[test]
    fn numbers_and_booleans_are_read_in_every_notation() {
        assert_read::<f64>(&[
            ("7", Some(7.0)),
            ("-7", Some(-7.0)),
            ("\"0.5\"", Some(0.5)),
            ("\"-1.5e3\"", Some(-1_500.0)),
            ("\"half\"", None),
            ("null", None),
            ("true", None),
        ]);
        assert_read::<bool>(&[
            ("true", Some(true)),
            ("1", Some(true)),
            ("0.0", Some(false)),
            ("\"True\"", Some(true)),
            ("\"0\"", Some(false)),
            ("2", None),
            ("-1", None),
            ("\"yes\"", None),
            ("\"\"", None),
            ("null", None),
        ]);
        assert_read::<Option<bool>>(&[("\"\"", Some(None)), ("0", Some(Some(false)))]);
    }
}
