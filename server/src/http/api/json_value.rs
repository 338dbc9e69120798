//! JSON of any shape, read within a memory limit. Three characters such as `{},` become a value of 32 bytes, and eight characters such as `{"a":1},`
//! become one of 700.

use std::fmt::{self, Formatter};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Memory of a value without its contents.
const VALUE: usize = size_of::<Value>();
/// Memory of the first member of an object, and of each other member.
const OBJECT: usize = 11 * MEMBER;
const MEMBER: usize = VALUE + size_of::<String>();

/// Why a body cannot be read.
#[derive(Debug)]
pub(crate) enum Unread {
    NotJson(serde_json::Error),
    TooLarge,
}

/// Reads a value that takes at most `memory` bytes.
pub(crate) fn read(json: &[u8], memory: usize) -> Result<Value, Unread> {
    let mut left = Some(memory);
    let mut reader = serde_json::Deserializer::from_slice(json);
    let value = Weighed(&mut left).deserialize(&mut reader);
    let value = value.and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| match left {
        Some(_) => Unread::NotJson(error),
        None => Unread::TooLarge,
    })
}

/// Reads one value and subtracts its memory from the rest. `None` if the memory is used up.
struct Weighed<'l>(&'l mut Option<usize>);

impl Weighed<'_> {
    fn take<E: Error>(&mut self, bytes: usize) -> Result<(), E> {
        *self.0 = self.0.and_then(|left| left.checked_sub(bytes));
        match self.0 {
            Some(_) => Ok(()),
            None => Err(E::custom("too large")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Weighed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<Value, D::Error> {
        self.take(VALUE)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Weighed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(mut self, text: &str) -> Result<Value, E> {
        self.take(text.len())?;
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(Weighed(self.0))? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let own = if members.is_empty() { OBJECT } else { MEMBER };
            self.take(own + name.len())?;
            members.insert(name, map.next_value_seed(Weighed(self.0))?);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_json_is_read_unchanged() {
        let text = r#"{"a":[1,-2,2.5,"text\n",null,true,{"b":{}}],"c":18446744073709551615}"#;
        let value = read(text.as_bytes(), 1 << 20).unwrap();
        assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
        for wrong in ["", "{", "[1,]", "{} {}"] {
            let unread = read(wrong.as_bytes(), 1 << 20);
            assert!(matches!(unread, Err(Unread::NotJson(_))), "{wrong}");
        }
    }

    #[test]
    fn json_that_takes_too_much_memory_is_rejected() {
        for text in [r#"{"a":1},"#, "{},", "0,", r#""text","#] {
            let list = format!("[{}0]", text.repeat(10_000));
            let unread = read(list.as_bytes(), 300_000);
            assert!(matches!(unread, Err(Unread::TooLarge)), "{text}");
            assert!(read(list.as_bytes(), 10_000 * 800).is_ok(), "{text}");
        }
    }
}
