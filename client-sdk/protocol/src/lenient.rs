//! Shapes that read more than they write: maps kept as lists, scalars taken as text, `null` taken as a default.

use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Text;

/// `null` reads as the default: clients of many languages write it for "nothing".
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Free attributes: a string map on the wire, kept in the order sent. Numbers and booleans are taken as text.
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

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Attributes<'de>, A::Error> {
        let mut pairs = Vec::new();
        while let Some((key, Scalar(value))) = map.next_entry()? {
            pairs.push((key, value));
        }
        Ok(Attributes(pairs))
    }
}

/// A string, or a number or boolean as its text.
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

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Histogram, A::Error> {
        let mut buckets = Vec::new();
        while let Some(entry) = map.next_entry()? {
            buckets.push(entry);
        }
        Ok(Histogram(buckets))
    }
}
