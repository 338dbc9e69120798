//! Lists of which the end matters.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::lenient::no_entries;
use crate::limits::ITEMS;

/// Reads the last items of a list inside an event: at most [`ITEMS`], however many are sent. If the list was longer, a copy of the first of
/// them precedes them. Items that are left out are only skipped, so they need not be valid. `null` and an empty map are read as an empty list.
pub(crate) fn latest<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Clone + Deserialize<'de>,
{
    deserializer.deserialize_any(LatestVisitor(PhantomData))
}

struct LatestVisitor<T>(PhantomData<T>);

impl<'de, T: Clone + Deserialize<'de>> Visitor<'de> for LatestVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let (mut last, mut sent) = (VecDeque::new(), 0_usize);
        while let Some(item) = list.next_element::<&'de RawValue>()? {
            if last.len() == ITEMS {
                last.pop_front();
            }
            last.push_back(item);
            sent += 1;
        }
        let left_out = sent - last.len();
        let mut items = Vec::with_capacity(last.len() + 1);
        for (index, item) in (left_out..).zip(last) {
            let read = serde_json::from_str::<T>(item.get());
            // The index is that of the list as sent.
            items.push(read.map_err(|error| A::Error::custom(format!("item {index}: {error}")))?);
        }
        if left_out > 0
            && let Some(first) = items.first().cloned()
        {
            items.insert(0, first);
        }
        Ok(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
        no_entries(map, &self).map(|()| Vec::new())
    }

    fn visit_unit<E: Error>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }
}
