//! Types that accept more than they write: maps stored as lists, scalars read as text, `null` and empty lists and maps read as a default.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    Error, Expected, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::{FRAMES, ITEMS};
use crate::scalar::{Count, whole_number};
use crate::text::TextVisitor;
use crate::{SpanId, Text};

/// Reads `null` as the default, because clients in many languages write `null` for missing values.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Values that say nothing are not written: they are what a missing field is read as.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A value that may be missing: `null` and the empty text are read as `None`, because clients in many languages have no other value for
/// a missing text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotEmpty<T>(pub Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NotEmpty<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Text::deserialize(deserializer)?;
        if text.is_empty() {
            return Ok(Self(None));
        }
        T::deserialize(text.as_str().into_deserializer()).map(|value| Self(Some(value)))
    }
}

/// Reads an optional value that is written as text.
pub(crate) fn not_empty<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    NotEmpty::deserialize(deserializer).map(|value| value.0)
}

/// Reads the id of a parent. OpenTelemetry writes zeros for none.
pub(crate) fn parent<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SpanId>, D::Error> {
    let text = Text::deserialize(deserializer)?;
    if text.bytes().all(|digit| matches!(digit, b'0' | b'-')) {
        return Ok(None);
    }
    SpanId::deserialize(text.as_str().into_deserializer()).map(Some)
}

/// Reads a build number: a number, or the text of one, as systems of Apple have it.
pub(crate) fn build<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = Text::deserialize(deserializer)?;
    let digits = text.trim();
    if digits.is_empty() {
        return Ok(0);
    }
    let wrong = || D::Error::custom(format!("a build is a whole number, not `{text}`"));
    whole_number(digits).ok_or_else(wrong)
}

/// An empty list where a map is expected, as languages write it that have one type for both.
fn no_items<'de, A: SeqAccess<'de>>(mut list: A, expected: &dyn Expected) -> Result<(), A::Error> {
    match list.next_element::<IgnoredAny>()? {
        None => Ok(()),
        Some(_) => Err(A::Error::invalid_type(Unexpected::Seq, expected)),
    }
}

/// An empty map where a list is expected.
pub(crate) fn no_entries<'de, A: MapAccess<'de>>(
    mut map: A,
    expected: &dyn Expected,
) -> Result<(), A::Error> {
    match map.next_key::<IgnoredAny>()? {
        None => Ok(()),
        Some(_) => Err(A::Error::invalid_type(Unexpected::Map, expected)),
    }
}

/// A list that never holds more than `MOST` + 1 items, however many are sent. Items after those are skipped and take no memory.
/// The extra item shows that the list was longer. `null` and an empty map are read as an empty list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtMost<T, const MOST: usize>(pub Vec<T>);

impl<T, const MOST: usize> Default for AtMost<T, MOST> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for AtMost<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AtMostVisitor(PhantomData))
    }
}

struct AtMostVisitor<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for AtMostVisitor<T, MOST> {
    type Value = AtMost<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while items.len() <= MOST {
            let Some(item) = list.next_element()? else {
                return Ok(AtMost(items));
            };
            items.push(item);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(AtMost(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        no_entries(map, &self).map(|()| AtMost::default())
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(AtMost::default())
    }
}

/// Reads a list inside an event.
pub(crate) fn items<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    AtMost::<T, ITEMS>::deserialize(deserializer).map(|list| list.0)
}

/// Reads a stack.
pub(crate) fn frames<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    AtMost::<T, FRAMES>::deserialize(deserializer).map(|list| list.0)
}

/// Reads at most [`ITEMS`] + 1 entries of a map that `present` does not leave out.
fn entries<'de, A, K, V, T>(
    mut map: A,
    present: impl Fn(K, V) -> Option<T>,
) -> Result<Vec<T>, A::Error>
where
    A: MapAccess<'de>,
    K: Deserialize<'de>,
    V: Deserialize<'de>,
{
    let mut entries = Vec::new();
    while entries.len() <= ITEMS {
        let Some((key, value)) = map.next_entry()? else {
            return Ok(entries);
        };
        entries.extend(present(key, value));
    }
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(entries)
}

/// Attributes: a map of strings on the wire, in the order sent. Numbers, booleans, lists and maps are read as text. An attribute that is
/// `null` is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a>(pub Vec<(Text<'a>, Text<'a>)>);

impl Serialize for Attributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Attributes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AttributesVisitor)
    }
}

struct AttributesVisitor;

impl<'de> Visitor<'de> for AttributesVisitor {
    type Value = Attributes<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Attributes<'de>, A::Error> {
        let present = |key: Text<'de>, value: Option<AttributeValue<'de>>| Some((key, value?.0));
        entries(map, present).map(Attributes)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Attributes<'de>, A::Error> {
        no_items(list, &self).map(|()| Attributes::default())
    }
}

/// A string, or the text of a number, boolean, list or map.
struct AttributeValue<'a>(Text<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for AttributeValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = TextVisitor {
            takes_lists_and_maps: true,
        };
        deserializer.deserialize_any(visitor).map(Self)
    }
}

/// Counts by bucket: `{"16": 61}` on the wire, where the key is the bucket's lower bound in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram(pub Vec<(u32, u32)>);

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (bucket, count) in &self.0 {
            map.serialize_entry(bucket, count)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HistogramVisitor)
    }
}

struct HistogramVisitor;

impl<'de> Visitor<'de> for HistogramVisitor {
    type Value = Histogram;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from milliseconds to a count")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Histogram, A::Error> {
        entries(map, |Bound(bound), Count(count)| Some((bound, count))).map(Histogram)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Histogram, A::Error> {
        no_items(list, &self).map(|()| Histogram::default())
    }
}

/// The lower bound of a bucket. It is the name of a member, so it is a text: `16`, or `16.0` from languages without whole numbers.
struct Bound(u32);

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Text::deserialize(deserializer)?;
        let bound = whole_number(&text).and_then(|bound| u32::try_from(bound).ok());
        let wrong = || D::Error::custom(format!("`{text}` is not a number of milliseconds"));
        bound.map(Self).ok_or_else(wrong)
    }
}
