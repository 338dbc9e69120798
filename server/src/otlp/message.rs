//! Reads the messages of OTLP from protobuf and from JSON into the same types.
//!
//! A message is declared once by [`message!`], with the numbers and names of its fields. Texts borrow from the body. The events are not
//! decoded with the message that has them: they stay [`Raw`] until they are needed, so one at a time takes memory, and a malformed event
//! costs that event only.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;
use unjank_protocol::{AtMost, Text};

use super::Unreadable;
use super::wire::{Fields, Value};

/// A message of OTLP.
pub(super) trait Message<'a>: Default + Deserialize<'a> {
    /// Reads a field from protobuf. An unknown field is ignored, and one of a wrong type is an error.
    fn field(&mut self, number: u32, value: Value<'a>) -> Result<(), Unreadable>;

    /// Reads all fields. Protobuf says that a message that occurs twice is one message with the fields of both.
    fn merge(&mut self, message: &'a [u8]) -> Result<(), Unreadable> {
        for field in Fields::new(message) {
            let (number, value) = field?;
            self.field(number, value)?;
        }
        Ok(())
    }
}

/// The type of a field.
pub(super) trait Field<'a> {
    fn read(&mut self, value: Value<'a>) -> Result<(), Unreadable>;
}

/// Declares a message, which may borrow from the body. Each field has its number in protobuf and the type that reads it; JSON has its name
/// in lower camel case.
macro_rules! message {
    ($(#[$doc:meta])* $name:ident<'a> { $($(#[$field_doc:meta])* $number:literal $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
        pub(super) struct $name<'a> {
            $($(#[$field_doc])* pub(super) $field: $type,)*
        }

        $crate::otlp::message::message!(@read $name<'a> { $($number $field,)* });
    };
    ($(#[$doc:meta])* $name:ident { $($number:literal $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub(super) struct $name {
            $(pub(super) $field: $type,)*
        }

        $crate::otlp::message::message!(@read $name { $($number $field,)* });
    };
    (@read $name:ty { $($number:literal $field:ident,)* }) => {
        impl<'a> $crate::otlp::message::Message<'a> for $name {
            fn field(
                &mut self,
                number: u32,
                value: $crate::otlp::wire::Value<'a>,
            ) -> Result<(), $crate::otlp::Unreadable> {
                match number {
                    $($number => $crate::otlp::message::Field::read(&mut self.$field, value),)*
                    _ => Ok(()),
                }
            }
        }
    };
}
pub(super) use message;

/// An item of a list that is not decoded yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Raw<'a> {
    Proto(&'a [u8]),
    Json(&'a RawValue),
}

impl<'a> Raw<'a> {
    pub(super) fn decode<M: Message<'a>>(self) -> Result<M, Unreadable> {
        match self {
            Self::Proto(bytes) => from_proto(bytes),
            Self::Json(text) => from_json(text.get()),
        }
    }
}

pub(super) fn from_proto<'a, M: Message<'a>>(bytes: &'a [u8]) -> Result<M, Unreadable> {
    let mut message = M::default();
    message.merge(bytes)?;
    Ok(message)
}

pub(super) fn from_json<'a, M: Message<'a>>(text: &'a str) -> Result<M, Unreadable> {
    serde_json::from_str(text).map_err(|error| Unreadable::json(&error))
}

/// A message that has events. In JSON, looking for its end takes nearly as long as decoding it, so that is done at once.
#[derive(Debug)]
pub(super) enum Part<'a, M> {
    Proto(&'a [u8]),
    Decoded(M),
}

impl<'a, M: Message<'a>> Part<'a, M> {
    pub(super) fn decode(self) -> Result<M, Unreadable> {
        match self {
            Self::Proto(bytes) => from_proto(bytes),
            Self::Decoded(message) => Ok(message),
        }
    }
}

/// A list of [`Raw`] or [`Part`]. It never holds more than [`Self::MOST`] + 1 items, however many are sent.
#[derive(Debug)]
pub(super) struct List<T>(Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> List<T> {
    /// A request with more events than that is refused in any case.
    const MOST: usize = 10_000;

    pub(super) fn items(self) -> Result<Vec<T>, Unreadable> {
        if self.0.len() > Self::MOST {
            let what = "items in one list";
            return Err(Unreadable::TooMany {
                what,
                limit: Self::MOST,
            });
        }
        Ok(self.0)
    }
}

impl<'a, T: From<&'a [u8]>> Field<'a> for List<T> {
    fn read(&mut self, value: Value<'a>) -> Result<(), Unreadable> {
        let item = bytes(value)?.into();
        if self.0.len() <= Self::MOST {
            self.0.push(item);
        }
        Ok(())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        AtMost::<T, 10_000>::deserialize(deserializer).map(|list| Self(list.0))
    }
}

impl<'a> From<&'a [u8]> for Raw<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Proto(bytes)
    }
}

impl<'a, M> From<&'a [u8]> for Part<'a, M> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Proto(bytes)
    }
}

impl<'de, M: Deserialize<'de>> Deserialize<'de> for Part<'_, M> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        M::deserialize(deserializer).map(Self::Decoded)
    }
}

/// A list that is decoded with its message. Items after the first [`Self::MOST`] are skipped, and take no memory. Their number follows the list.
#[derive(Debug)]
pub(super) struct Short<T>(pub(super) Vec<T>, pub(super) u64);

impl<T> Short<T> {
    /// One more than an event may have, so that the cut is noticed.
    pub(super) const MOST: usize = 65;

    /// The first `most` items, and how many there are besides.
    pub(super) fn first(self, most: usize) -> (Vec<T>, u64) {
        let Self(mut items, skipped) = self;
        let cut = items.len().saturating_sub(most);
        items.truncate(most);
        (items, skipped.saturating_add(cut as u64))
    }
}

impl<T> Default for Short<T> {
    fn default() -> Self {
        Self(Vec::new(), 0)
    }
}

impl<'a, T: Message<'a>> Field<'a> for Short<T> {
    fn read(&mut self, value: Value<'a>) -> Result<(), Unreadable> {
        let bytes = bytes(value)?;
        if self.0.len() < Self::MOST {
            self.0.push(Raw::Proto(bytes).decode()?);
        } else {
            self.1 += 1;
        }
        Ok(())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Short<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShortVisitor(PhantomData))
    }
}

struct ShortVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ShortVisitor<T> {
    type Value = Short<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Short<T>, A::Error> {
        let mut short = Short::default();
        while short.0.len() < Short::<T>::MOST {
            let Some(item) = list.next_element()? else {
                return Ok(short);
            };
            short.0.push(item);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            short.1 += 1;
        }
        Ok(short)
    }

    /// Languages with one type for both write an empty list as an empty map.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Short<T>, A::Error> {
        match map.next_key::<IgnoredAny>()? {
            None => Ok(Short::default()),
            Some(_) => Err(A::Error::invalid_type(Unexpected::Map, &self)),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<Short<T>, E> {
        Ok(Short::default())
    }
}

/// A message inside another one.
#[derive(Debug, Default)]
pub(super) struct Inner<T>(pub(super) T);

impl<'a, T: Message<'a>> Field<'a> for Inner<T> {
    fn read(&mut self, value: Value<'a>) -> Result<(), Unreadable> {
        self.0.merge(bytes(value)?)
    }
}

impl<'de, T: Default + Deserialize<'de>> Deserialize<'de> for Inner<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer)
            .map(|message: Option<T>| Self(message.unwrap_or_default()))
    }
}

/// One of several possible messages, decoded once it is known which one is there.
impl<'a> Field<'a> for Option<Raw<'a>> {
    fn read(&mut self, value: Value<'a>) -> Result<(), Unreadable> {
        *self = Some(Raw::Proto(bytes(value)?));
        Ok(())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Self::Json)
    }
}

impl<'a> Field<'a> for Text<'a> {
    fn read(&mut self, value: Value<'a>) -> Result<(), Unreadable> {
        *self = text(bytes(value)?);
        Ok(())
    }
}

/// Protobuf demands UTF-8. A bad byte costs a character, not the event.
pub(super) fn text(bytes: &[u8]) -> Text<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned().into(),
    }
}

pub(super) fn bytes(value: Value<'_>) -> Result<&[u8], Unreadable> {
    match value {
        Value::Bytes(bytes) => Ok(bytes),
        _ => Err(wrong_type()),
    }
}

pub(super) fn wrong_type() -> Unreadable {
    Unreadable::proto("a field has the wrong type")
}
