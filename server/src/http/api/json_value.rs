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

/// The name of the values that belong to the app. Its clients may distinguish 2.0 from 2.
const TOGGLES: &str = "toggles";

/// Reads a value that takes at most `memory` bytes. A whole number is read as an integer, however it is written: JSON Schema defines 600.0
/// as an integer, and serde does not.
pub(crate) fn read(json: &[u8], memory: usize) -> Result<Value, Unread> {
    let mut left = Some(memory);
    let mut reader = serde_json::Deserializer::from_slice(json);
    let weighed = Weighed {
        left: &mut left,
        floats_stay: false,
    };
    let value = weighed.deserialize(&mut reader);
    let value = value.and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| match left {
        Some(_) => Unread::NotJson(error),
        None => Unread::TooLarge,
    })
}

/// The integer that is written with a fraction or an exponent: 600.0, 5e3. Larger numbers are not exact.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the number is whole and in range"
)]
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_whole = number.fract() == 0.0 && number.abs() < EXACT;
    is_whole.then_some(number as i64)
}

/// Reads one value and subtracts its memory from the rest.
struct Weighed<'l> {
    /// `None` if the memory is used up.
    left: &'l mut Option<usize>,
    /// Whether whole numbers stay as they are written.
    floats_stay: bool,
}

impl Weighed<'_> {
    /// Reads a value inside this one.
    fn inner(&mut self, floats_stay: bool) -> Weighed<'_> {
        Weighed {
            left: self.left,
            floats_stay,
        }
    }

    fn take<E: Error>(&mut self, bytes: usize) -> Result<(), E> {
        *self.left = self.left.and_then(|left| left.checked_sub(bytes));
        match self.left {
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
        Ok(match whole(value) {
            Some(integer) if !self.floats_stay => integer.into(),
            _ => value.into(),
        })
    }

    fn visit_str<E: Error>(mut self, text: &str) -> Result<Value, E> {
        self.take(text.len())?;
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self.inner(self.floats_stay))? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let own = if members.is_empty() { OBJECT } else { MEMBER };
            self.take(own + name.len())?;
            let floats_stay = self.floats_stay || name == TOGGLES;
            members.insert(name, map.next_value_seed(self.inner(floats_stay))?);
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
    fn whole_numbers_are_integers_except_in_toggles() {
        for (sent, expected) in [
            ("[600.0, 5e3, -2.0, -0]", "[600, 5000, -2, 0]"),
            (r#"["600.0", 0.5, 5e-3]"#, r#"["600.0", 0.5, 5e-3]"#),
            ("[9007199254740992.0, 1e300]", "[9007199254740992.0, 1e300]"),
            (
                r#"{"a": 1.0, "toggles": {"price": 2.0, "list": [{"b": 3.0}]}, "c": 4.0}"#,
                r#"{"a": 1, "toggles": {"price": 2.0, "list": [{"b": 3.0}]}, "c": 4}"#,
            ),
        ] {
            let value = read(sent.as_bytes(), 1 << 20).unwrap();
            let expected: Value = serde_json::from_str(expected).unwrap();
            assert_eq!(value, expected, "{sent}");
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
