//! Lists of which the end matters.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::lenient::no_entries;
use crate::limits::ITEMS;

/// Reads the last items of a list inside an event: at most [`ITEMS`] + 1, however many are sent. The extra item shows that the list was
/// longer. `null` and an empty map are read as an empty list.
pub(crate) fn latest<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(LatestVisitor(PhantomData))
}

struct LatestVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for LatestVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut items = VecDeque::new();
        while let Some(item) = list.next_element()? {
            if items.len() > ITEMS {
                items.pop_front();
            }
            items.push_back(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
        no_entries(map, &self).map(|()| Vec::new())
    }

    fn visit_unit<E: Error>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }
}
