//! Numbers and ids of OTLP. In JSON, whole numbers of 64 bits are texts, but exporters also write them as numbers.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::Unreadable;
use super::message::{Field, bytes, wrong_type};
use super::value::decoded;
use super::wire::{Value, varint, zigzag};

/// A scalar of JSON: a number or its text.
enum Scalar {
    Whole(i128),
    Float(f64),
    Missing,
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a text with a number")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Whole(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar::Whole(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
        if text.is_empty() {
            return Ok(Scalar::Missing);
        }
        if let Ok(number) = text.parse() {
            return Ok(Scalar::Whole(number));
        }
        // Rust also reads `NaN` and `Infinity`, as protobuf writes them.
        text.parse().map(Scalar::Float).map_err(|_| {
            let start: String = text.chars().take(40).collect();
            E::custom(format!("`{start}` is not a number"))
        })
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
        Ok(Scalar::Missing)
    }
}

impl Scalar {
    #[expect(clippy::cast_possible_truncation, reason = "a float is saturated")]
    fn whole(&self) -> i128 {
        match self {
            Self::Whole(number) => *number,
            Self::Float(number) => number.round() as i128,
            Self::Missing => 0,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a float is what is asked for")]
    fn float(&self) -> f64 {
        match self {
            Self::Whole(number) => *number as f64,
            Self::Float(number) => *number,
            Self::Missing => 0.,
        }
    }
}

macro_rules! whole_number {
    ($(#[$doc:meta])* $name:ident($type:ty), $value:pat => $number:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(super) struct $name(pub(super) $type);

        impl Field<'_> for $name {
            fn read(&mut self, value: Value<'_>) -> Result<(), Unreadable> {
                let $value = value else { return Err(wrong_type()) };
                self.0 = $number;
                Ok(())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let number = Scalar::deserialize(deserializer)?.whole();
                let out_of_range = || D::Error::custom(format!("{number} is out of range"));
                <$type>::try_from(number).map(Self).map_err(|_| out_of_range())
            }
        }
    };
}

whole_number! {
    /// `fixed64`, such as nanoseconds since the epoch.
    Fixed(u64), Value::Fixed64(number) => number
}

whole_number! {
    /// `sfixed64`.
    SignedFixed(i64), Value::Fixed64(number) => number.cast_signed()
}

whole_number! {
    /// `sint32`.
    Signed(i32), Value::Varint(number) => i32::try_from(zigzag(number)).map_err(|_| wrong_type())?
}

/// `uint32`: a number that informs only, such as that of dropped attributes. In JSON, 0 if it cannot be read, so that no event is rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count(pub(super) u64);

impl Field<'_> for Count {
    fn read(&mut self, value: Value<'_>) -> Result<(), Unreadable> {
        let Value::Varint(number) = value else {
            return Err(wrong_type());
        };
        self.0 = number;
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sent = <&RawValue>::deserialize(deserializer)?;
        let number = serde_json::from_str(sent.get()).map_or(0, |number: Scalar| number.whole());
        Ok(Self(u64::try_from(number).unwrap_or_default()))
    }
}

/// `double`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Double(pub(super) f64);

impl Field<'_> for Double {
    fn read(&mut self, value: Value<'_>) -> Result<(), Unreadable> {
        let Value::Fixed64(bits) = value else {
            return Err(wrong_type());
        };
        self.0 = f64::from_bits(bits);
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Double {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Scalar::deserialize(deserializer).map(|number| Self(number.float()))
    }
}

macro_rules! optional {
    ($($type:ty)*) => {$(
        impl Field<'_> for Option<$type> {
            fn read(&mut self, value: Value<'_>) -> Result<(), Unreadable> {
                self.get_or_insert_default().read(value)
            }
        }
    )*};
}

optional!(Double SignedFixed);

/// A value of an enumeration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Enum(pub(super) u64);

impl Field<'_> for Enum {
    fn read(&mut self, value: Value<'_>) -> Result<(), Unreadable> {
        let Value::Varint(number) = value else {
            return Err(wrong_type());
        };
        self.0 = number;
        Ok(())
    }
}

/// OTLP writes numbers, other libraries for protobuf the names. All names of one number end in the same words.
const NAMES: [(&str, u64); 15] = [
    // Severities, of which `SEVERITY_NUMBER_ERROR2` and so on follow their first one.
    ("SEVERITY_NUMBER_TRACE", 1),
    ("SEVERITY_NUMBER_DEBUG", 5),
    ("SEVERITY_NUMBER_INFO", 9),
    ("SEVERITY_NUMBER_WARN", 13),
    ("SEVERITY_NUMBER_ERROR", 17),
    ("SEVERITY_NUMBER_FATAL", 21),
    ("_INTERNAL", 1),
    ("_SERVER", 2),
    ("_CLIENT", 3),
    ("_PRODUCER", 4),
    ("_CONSUMER", 5),
    ("_OK", 1),
    ("_ERROR", 2),
    ("_DELTA", 1),
    ("_CUMULATIVE", 2),
];

impl<'de> Deserialize<'de> for Enum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EnumVisitor;
        impl Visitor<'_> for EnumVisitor {
            type Value = Enum;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number or the name of a value")
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Enum, E> {
                Ok(Enum(number))
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Enum, E> {
                let first = name.trim_end_matches(['2', '3', '4']);
                let named = NAMES.iter().find(|(end, _)| first.ends_with(end));
                let number = named.map(|(_, number)| *number);
                Ok(Enum(
                    number.or_else(|| name.parse().ok()).unwrap_or_default(),
                ))
            }
            fn visit_unit<E: Error>(self) -> Result<Enum, E> {
                Ok(Enum::default())
            }
        }
        deserializer.deserialize_any(EnumVisitor)
    }
}

/// An id of up to 16 bytes: bytes in protobuf, hexadecimal digits in JSON. Encoders for any protobuf write padded Base64 there. 0 if the id is
/// missing or has another length than `BYTES`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Id<const BYTES: usize>(pub(super) u128);

impl<const BYTES: usize> Id<BYTES> {
    fn of_bytes(bytes: &[u8]) -> Self {
        let id = <[u8; BYTES]>::try_from(bytes).unwrap_or([0; BYTES]);
        let mut wide = [0; size_of::<u128>()];
        if let Some((_, end)) = wide.split_last_chunk_mut() {
            *end = id;
        }
        Self(u128::from_be_bytes(wide))
    }
}

impl<const BYTES: usize> Field<'_> for Id<BYTES> {
    fn read(&mut self, value: Value<'_>) -> Result<(), Unreadable> {
        *self = Self::of_bytes(bytes(value)?);
        Ok(())
    }
}

impl<'de, const BYTES: usize> Deserialize<'de> for Id<BYTES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = unjank_protocol::Text::deserialize(deserializer)?;
        let is_id = text.len() == 2 * BYTES && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        if text.ends_with('=') {
            return Ok(Self::of_bytes(&decoded(&text).unwrap_or_default()));
        }
        let id = u128::from_str_radix(&text, 16).ok().filter(|_| is_id);
        Ok(Self(id.unwrap_or_default()))
    }
}

macro_rules! numbers {
    ($(#[$doc:meta])* $name:ident($type:ty), $value:pat => $one:expr, $rest:ident => $packed:expr) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $name(pub(super) Vec<$type>);

        impl Field<'_> for $name {
            fn read(&mut self, value: Value<'_>) -> Result<(), Unreadable> {
                match value {
                    $value => self.0.push($one),
                    Value::Bytes(mut $rest) => {
                        while !$rest.is_empty() && self.0.len() <= MOST_NUMBERS {
                            self.0.push($packed);
                        }
                    }
                    _ => return Err(wrong_type()),
                }
                if self.0.len() > MOST_NUMBERS {
                    return Err(Unreadable::proto(TOO_MANY_NUMBERS));
                }
                Ok(())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let numbers = unjank_protocol::AtMost::<Scalar, MOST_NUMBERS>::deserialize(deserializer)?.0;
                if numbers.len() > MOST_NUMBERS {
                    return Err(D::Error::custom(TOO_MANY_NUMBERS));
                }
                let numbers: Option<_> = numbers.iter().map(<$type>::from_scalar).collect();
                numbers.map(Self).ok_or_else(|| D::Error::custom("a count is a whole number from 0 on"))
            }
        }
    };
}

/// The most buckets of a data point.
const MOST_NUMBERS: usize = 1024;
const TOO_MANY_NUMBERS: &str = "a data point has more than 1,024 buckets";

trait FromScalar: Sized {
    fn from_scalar(scalar: &Scalar) -> Option<Self>;
}

impl FromScalar for u64 {
    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        let is_number = !scalar.float().is_nan();
        is_number.then(|| Self::try_from(scalar.whole()).ok())?
    }
}

impl FromScalar for f64 {
    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        Some(scalar.float())
    }
}

/// The next eight bytes of a packed list.
fn eight(rest: &mut &[u8]) -> Result<[u8; 8], Unreadable> {
    let (first, others) = rest.split_first_chunk().ok_or_else(wrong_type)?;
    *rest = others;
    Ok(*first)
}

numbers! {
    /// A list of `fixed64`.
    FixedList(u64), Value::Fixed64(number) => number, rest => u64::from_le_bytes(eight(&mut rest)?)
}

numbers! {
    /// A list of `uint64`.
    WholeList(u64), Value::Varint(number) => number, rest => varint(&mut rest)?
}

numbers! {
    /// A list of `double`.
    DoubleList(f64), Value::Fixed64(number) => f64::from_bits(number), rest => f64::from_le_bytes(eight(&mut rest)?)
}
