//! Trace and span identifiers: hex text on the wire, numbers in memory.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// The value of each hex digit, and `NOT_HEX` for every other byte. Every span has ids, so this is a hot path.
const HEX: [u8; 256] = {
    let mut table = [NOT_HEX; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit] as usize] = digit as u8;
        table[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    table
};
const NOT_HEX: u8 = 0xff;

/// Reads 16 hex digits, or a UUID: both halves of it, combined. Swift, Kotlin and C# have no random ids but UUIDs.
fn parse_u64(text: &[u8]) -> Option<u64> {
    hex_u64(text).or_else(|| {
        let (high, low) = uuid(text)?.as_u64_pair();
        Some(high ^ low)
    })
}

/// Reads 32 hex digits, or a UUID.
fn parse_u128(text: &[u8]) -> Option<u128> {
    hex_u128(text).or_else(|| Some(uuid(text)?.as_u128()))
}

/// Reads a UUID with hyphens, in braces or as 32 hex digits.
#[cold]
fn uuid(text: &[u8]) -> Option<Uuid> {
    Uuid::try_parse_ascii(text).ok()
}

/// Reads exactly 16 hex digits of either case.
fn hex_u64(text: &[u8]) -> Option<u64> {
    let digits: &[u8; 16] = text.try_into().ok()?;
    let (mut number, mut bad) = (0_u64, 0_u8);
    for byte in digits {
        let value = HEX[usize::from(*byte)];
        bad |= value;
        number = number << 4 | u64::from(value & 0x0f);
    }
    // Digits are below 16: any higher bit comes from `NOT_HEX`.
    (bad < 16).then_some(number)
}

/// Reads exactly 32 hex digits of either case.
fn hex_u128(text: &[u8]) -> Option<u128> {
    let (high, low) = text.split_at_checked(16)?;
    Some(u128::from(hex_u64(high)?) << 64 | u128::from(hex_u64(low)?))
}

/// Hex digits. Aligned, because they are then read as a text several bytes at once.
#[repr(align(16))]
struct Digits<const COUNT: usize>([u8; COUNT]);

impl<const COUNT: usize> Digits<COUNT> {
    /// Writes the lowest digits of a number. Spans are written all the time, and `{:x}` takes five times as long.
    fn of(number: u128) -> Self {
        let mut rest = number;
        let mut digits = [b'0'; COUNT];
        for digit in digits.iter_mut().rev() {
            *digit = b"0123456789abcdef"[(rest & 0xf) as usize];
            rest >>= 4;
        }
        Self(digits)
    }

    fn text(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $number:ty, $digits:literal, $parse:ident, $visitor:ident, $expecting:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $number);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Digits::<$digits>::of(u128::from(self.0)).text())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(Digits::<$digits>::of(u128::from(self.0)).text())
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
                let number = $parse(text.as_bytes()).filter(|number| *number != 0);
                number.map($name).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
    };
}

hex_id!(
    /// The id of a trace: 16 bytes, 32 hex digits on the wire, never all zero.
    TraceId, u128, 32, parse_u128, TraceIdVisitor, "32 hex digits, not all zero"
);
hex_id!(
    /// The id of a span within its trace: 8 bytes, 16 hex digits on the wire, never all zero.
    SpanId, u64, 16, parse_u64, SpanIdVisitor, "16 hex digits, not all zero"
);
