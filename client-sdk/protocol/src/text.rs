//! A string that borrows from the input when it can.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest text of a number without an exponent: `1e308` would have 309 digits.
const LONGEST_DECIMAL: usize = 24;

/// A string of the wire: borrowed from the JSON text unless it holds escapes.
///
/// Serde borrows a plain `Cow<str>` field only, not one inside an `Option` or a list. This type always borrows.
/// `null` is read as the empty string, because no field of the protocol distinguishes them. A number or a boolean is read as its text.
/// A text never has a NUL, because PostgreSQL cannot store one: each NUL becomes U+FFFD.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a>(Cow<'a, str>);

impl<'a> Text<'a> {
    /// Returns a text of which the caller knows that it has no NUL.
    #[must_use]
    pub const fn without_nul(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// The text as a plain slice.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text, borrowed or owned.
    #[must_use]
    pub fn into_cow(self) -> Cow<'a, str> {
        self.0
    }

    /// Truncates the text to at most `max_bytes`, with `…` at the end. Returns whether it was longer.
    pub fn truncate(&mut self, max_bytes: usize) -> bool {
        if self.0.len() <= max_bytes {
            return false;
        }
        const MARK: &str = "…";
        let end = self
            .0
            .floor_char_boundary(max_bytes.saturating_sub(MARK.len()));
        let mut short = String::with_capacity(max_bytes);
        short.push_str(self.0.get(..end).unwrap_or_default());
        if max_bytes >= MARK.len() {
            short.push_str(MARK);
        }
        self.0 = Cow::Owned(short);
        true
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        match replaced_nul(text) {
            Some(text) => Self(Cow::Owned(text)),
            None => Self(Cow::Borrowed(text)),
        }
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(replaced_nul(&text).unwrap_or(text)))
    }
}

/// Replaces each NUL. `None` if there is none.
fn replaced_nul(text: &str) -> Option<String> {
    text.as_bytes()
        .contains(&0)
        .then(|| text.replace('\0', "\u{fffd}"))
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor {
            takes_lists_and_maps: false,
        })
    }
}

/// Reads a string, or the text of another value.
pub(crate) struct TextVisitor {
    /// Whether lists and maps are read as their JSON.
    pub(crate) takes_lists_and_maps: bool,
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.takes_lists_and_maps {
            false => "a string, a number or a boolean",
            true => "a string, a number, a boolean, a list or a map",
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Text<'de>, A::Error> {
        if !self.takes_lists_and_maps {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        let value = serde_json::Value::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(Text::from(value.to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Text<'de>, A::Error> {
        if !self.takes_lists_and_maps {
            return Err(A::Error::invalid_type(Unexpected::Map, &self));
        }
        let value = serde_json::Value::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Text::from(value.to_string()))
    }

    /// A text that JSON lends has no escapes. Without one, JSON has no NUL.
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text::without_nul(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text::from(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Text<'de>, E> {
        Ok(Text::from(text))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(if value { "true" } else { "false" })))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(value.to_string())))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(value.to_string())))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Text<'de>, E> {
        let decimal = value.to_string();
        Ok(Text(Cow::Owned(match decimal.len() > LONGEST_DECIMAL {
            true => format!("{value:e}"),
            false => decimal,
        })))
    }

    fn visit_unit<E: Error>(self) -> Result<Text<'de>, E> {
        Ok(Text::default())
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;

    use super::Text;

    #[test]
    fn numbers_are_read_as_short_texts() {
        let cases = [
            ("1e308", "1e308"),
            ("-1.7976931348623157e308", "-1.7976931348623157e308"),
            ("5e-324", "5e-324"),
            ("8.0", "8"),
            ("0.25", "0.25"),
            ("4.125e4", "41250"),
        ];
        for (json, expected) in cases {
            let text: Text<'_> = serde_json::from_str(json).unwrap();
            assert_eq!(text.as_str(), expected);
        }
    }

    #[test]
    fn a_nul_becomes_a_character_that_every_database_stores() {
        let read: Text<'_> = serde_json::from_str(r#""Cart\u0000\n""#).unwrap();
        let value = serde_json::json!("Cart\0\n");
        let value = Text::deserialize(value).unwrap();
        for text in [
            read,
            value,
            Text::from("Cart\0\n"),
            Text::from("Cart\0\n".to_owned()),
        ] {
            assert_eq!(text.as_str(), "Cart\u{fffd}\n");
        }
    }

    #[test]
    fn lists_and_maps_are_no_texts() {
        for json in ["[]", "{}"] {
            let error = serde_json::from_str::<Text<'_>>(json).unwrap_err();
            let error = error.to_string();
            assert!(error.contains("a string, a number or a boolean"), "{error}");
        }
    }
}
