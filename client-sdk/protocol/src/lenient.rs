//! Types that accept more than they write: maps stored as lists, scalars read as text, `null` read as a default.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::{FRAMES, ITEMS};
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
    if text.bytes().all(|digit| digit == b'0') {
        return Ok(None);
    }
    SpanId::deserialize(text.as_str().into_deserializer()).map(Some)
}

/// Reads a number of hertz. Systems report fractions, such as 59.94.
pub(crate) fn hertz<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    let hertz = Option::<f64>::deserialize(deserializer)?.unwrap_or_default();
    if !(0.0..=f64::from(u16::MAX)).contains(&hertz) {
        return Err(D::Error::custom(format!(
            "{hertz} is not a number of hertz from 0 to 65,535"
        )));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked"
    )]
    Ok(hertz.round() as u16)
}

/// Reads a build number: a number, or the text of one, as systems of Apple have it.
pub(crate) fn build<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let Scalar(text) = Scalar::deserialize(deserializer)?;
    let digits = text.strip_suffix(".0").unwrap_or(&text).trim();
    if digits.is_empty() {
        return Ok(0);
    }
    let wrong = || D::Error::custom(format!("a build is a whole number, not `{text}`"));
    digits.parse().map_err(|_| wrong())
}

/// A list that never holds more than `MOST` + 1 items, however many are sent. Items after those are skipped and take no memory.
/// The extra item shows that the list was longer. `null` is read as an empty list.
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

/// Reads at most [`ITEMS`] + 1 entries of a map.
fn entries<'de, A, K, V>(mut map: A) -> Result<Vec<(K, V)>, A::Error>
where
    A: MapAccess<'de>,
    K: Deserialize<'de>,
    V: Deserialize<'de>,
{
    let mut entries = Vec::new();
    while entries.len() <= ITEMS {
        let Some(entry) = map.next_entry()? else {
            return Ok(entries);
        };
        entries.push(entry);
    }
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(entries)
}

/// Attributes: a map of strings on the wire, in the order sent. Numbers, booleans, lists and maps are read as text.
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
        deserializer.deserialize_map(AttributesVisitor)
    }
}

struct AttributesVisitor;

impl<'de> Visitor<'de> for AttributesVisitor {
    type Value = Attributes<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Attributes<'de>, A::Error> {
        let pairs = entries(map)?.into_iter();
        Ok(Attributes(
            pairs.map(|(key, Scalar(value))| (key, value)).collect(),
        ))
    }
}

/// A string, or the text of a number or boolean.
struct Scalar<'a>(Text<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor).map(Self)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number or a boolean")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Text<'de>, A::Error> {
        let value = serde_json::Value::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(Text::from(value.to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Text<'de>, A::Error> {
        let value = serde_json::Value::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Text::from(value.to_string()))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text::from(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text::from(text.to_owned()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Text<'de>, E> {
        Ok(Text::from(if value { "true" } else { "false" }))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Text<'de>, E> {
        Ok(Text::from(value.to_string()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Text<'de>, E> {
        Ok(Text::from(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Text<'de>, E> {
        Ok(Text::from(value.to_string()))
    }

    fn visit_unit<E: Error>(self) -> Result<Text<'de>, E> {
        Ok(Text::default())
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
        deserializer.deserialize_map(HistogramVisitor)
    }
}

struct HistogramVisitor;

impl<'de> Visitor<'de> for HistogramVisitor {
    type Value = Histogram;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from milliseconds to a count")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Histogram, A::Error> {
        Ok(Histogram(entries(map)?))
    }
}
