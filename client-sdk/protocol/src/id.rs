//! Trace and span identifiers: hex text on the wire, numbers in memory.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Reads exactly `digits` hex digits of either case.
fn parse_hex(text: &str, digits: usize) -> Option<u128> {
    // `from_str_radix` alone would take a leading plus sign.
    let plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if plain {
        u128::from_str_radix(text, 16).ok()
    } else {
        None
    }
}

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $number:ty, $digits:literal, $visitor:ident, $expecting:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $number);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!("{:0", $digits, "x}"), self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str($visitor)
            }
        }

        struct $visitor;

        impl Visitor<'_> for $visitor {
            type Value = $name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($expecting)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<$name, E> {
                let number = parse_hex(text, $digits)
                    .and_then(|number| <$number>::try_from(number).ok())
                    .filter(|number| *number != 0);
                number.map($name).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
    };
}

hex_id!(
    /// 16 bytes that name a trace: 32 hex digits on the wire, never all zero.
    TraceId, u128, 32, TraceIdVisitor, "32 hex digits, not all zero"
);
hex_id!(
    /// 8 bytes that name a span within its trace: 16 hex digits on the wire, never all zero.
    SpanId, u64, 16, SpanIdVisitor, "16 hex digits, not all zero"
);
