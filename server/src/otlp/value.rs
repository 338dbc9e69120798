//! Attributes of OTLP. Since version 1.9 of the specification, any attribute may have a value of any type; each is kept as text.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value as Json};
use unjank_protocol::Text;

use super::Unreadable;
use super::message::{Field, Raw, bytes, message, text, wrong_type};
use super::wire::{Fields, Value};

message! {
    /// A name and a value.
    KeyValue<'a> {
        1 key: Text<'a>,
        2 value: Any<'a>,
    }
}

/// A value of any type as text: numbers and booleans as JSON writes them, bytes that are no text in Base64, lists and maps as JSON.
#[derive(Debug, Default)]
pub(super) struct Any<'a>(pub(super) Text<'a>);

/// Values may contain values. Deeper ones are left out.
const DEPTH: u32 = 32;
/// Longer lists, maps and bytes are left out, because their parts take many times their length in memory, and 1 KiB of their text is kept.
const LONGEST: usize = 16 << 10;
const LEFT_OUT: &str = "…";

impl<'a> Field<'a> for Any<'a> {
    fn read(&mut self, value: Value<'a>) -> Result<(), Unreadable> {
        for field in Fields::new(bytes(value)?) {
            let (number, value) = field?;
            self.0 = match (number, value) {
                (1, Value::Bytes(bytes)) => text(bytes),
                (2, Value::Varint(0)) => "false".into(),
                (2, Value::Varint(_)) => "true".into(),
                (3, Value::Varint(number)) => digits(number.cast_signed()),
                (_, Value::Bytes(bytes)) if bytes.len() > LONGEST => LEFT_OUT.into(),
                (1..=7, value) => plain(&json_of_field(number, value, DEPTH)?),
                _ => continue,
            };
        }
        Ok(())
    }
}

/// The texts of small numbers. Most whole numbers are small, such as status codes and lines, and so need no memory of their own.
static SMALL: LazyLock<Vec<String>> =
    LazyLock::new(|| (0..1_000).map(|number| number.to_string()).collect());

fn digits(number: i64) -> Text<'static> {
    let small = usize::try_from(number).ok();
    match small.and_then(|number| SMALL.get(number)) {
        Some(text) => text.as_str().into(),
        None => number.to_string().into(),
    }
}

/// The text of a value of JSON, without the quotes of a text.
fn plain(value: &Json) -> Text<'static> {
    match value {
        Json::String(text) => text.clone().into(),
        Json::Null => Text::default(),
        other => other.to_string().into(),
    }
}

/// The value that a field of `AnyValue` has.
fn json_of_field(number: u32, value: Value<'_>, depth: u32) -> Result<Json, Unreadable> {
    let Some(depth) = depth.checked_sub(1) else {
        return Ok(LEFT_OUT.into());
    };
    Ok(match (number, value) {
        (1, Value::Bytes(bytes)) => text(bytes).as_str().into(),
        (2, Value::Varint(flag)) => (flag != 0).into(),
        (3, Value::Varint(number)) => number.cast_signed().into(),
        (4, Value::Fixed64(bits)) => float(f64::from_bits(bits)),
        (5, Value::Bytes(list)) => {
            let items = Fields::new(list).map(|item| json(bytes(item?.1)?, depth));
            Json::Array(items.collect::<Result<_, _>>()?)
        }
        (6, Value::Bytes(list)) => {
            let pairs = Fields::new(list).map(|pair| pair_of(bytes(pair?.1)?, depth));
            Json::Object(pairs.collect::<Result<_, _>>()?)
        }
        (7, Value::Bytes(bytes)) => of_bytes(bytes),
        (1..=7, _) => return Err(wrong_type()),
        _ => Json::Null,
    })
}

fn json(message: &[u8], depth: u32) -> Result<Json, Unreadable> {
    let mut found = Json::Null;
    for field in Fields::new(message) {
        let (number, value) = field?;
        if (1..=7).contains(&number) {
            found = json_of_field(number, value, depth)?;
        }
    }
    Ok(found)
}

fn pair_of(message: &[u8], depth: u32) -> Result<(String, Json), Unreadable> {
    let (mut key, mut value) = (String::new(), Json::Null);
    for field in Fields::new(message) {
        match field? {
            (1, of_key) => key = text(bytes(of_key)?).as_str().to_owned(),
            (2, of_value) => value = json(bytes(of_value)?, depth)?,
            _ => {}
        }
    }
    Ok((key, value))
}

/// A text without NUL, as in protobuf.
fn of_text(text: String) -> String {
    Text::from(text).into_cow().into_owned()
}

/// Bytes that are text are kept as text, so that they are scrubbed. Others are kept in Base64.
fn of_bytes(bytes: &[u8]) -> Json {
    let is_binary = |letter: char| letter.is_control() && !letter.is_whitespace();
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(is_binary) => text.into(),
        _ => BASE64_STANDARD.encode(bytes).into(),
    }
}

/// Decodes bytes in JSON, which may have either alphabet of Base64, with or without padding.
pub(super) fn decoded(text: &str) -> Option<Vec<u8>> {
    let standard = text.trim_end_matches('=').replace('-', "+");
    let standard = standard.replace('_', "/");
    BASE64_STANDARD_NO_PAD.decode(standard).ok()
}

/// JSON has no number for infinity and `NaN`, so they become text.
fn float(number: f64) -> Json {
    Number::from_f64(number).map_or_else(|| number.to_string().into(), Json::Number)
}

impl<'de: 'a, 'a> Deserialize<'de> for Any<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Texts are most of the values, and need no copy. Some encoders write the fields of the other types, too, as `null`.
        #[derive(Deserialize)]
        struct OfText<'a> {
            #[serde(borrow, default, rename = "stringValue")]
            value: Option<Text<'a>>,
        }
        let Some(Raw::Json(raw)) = Option::<Raw<'de>>::deserialize(deserializer)? else {
            return Ok(Self::default());
        };
        if let Ok(OfText { value: Some(value) }) = serde_json::from_str(raw.get()) {
            return Ok(Self(value));
        }
        if raw.get().len() > LONGEST {
            return Ok(Self(LEFT_OUT.into()));
        }
        let value = serde_json::from_str(raw.get()).map_err(serde::de::Error::custom)?;
        Ok(Self(plain(&unwrapped(value))))
    }
}

/// Takes the wrapping with types from a value of JSON: `{"arrayValue": {"values": [{"intValue": "1"}]}}` is `[1]`.
fn unwrapped(value: Json) -> Json {
    let Json::Object(object) = value else {
        return Json::Null;
    };
    let Some((name, value)) = object.into_iter().find(|(_, value)| !value.is_null()) else {
        return Json::Null;
    };
    match (name.as_str(), value) {
        ("stringValue", Json::String(text)) => of_text(text).into(),
        ("intValue", Json::String(text)) => whole(&text).map_or(Json::String(text), Json::from),
        ("intValue", Json::Number(number)) => Json::Number(whole_number(number)),
        ("bytesValue", Json::String(text)) => {
            decoded(&text).map_or(Json::String(text), |bytes| of_bytes(&bytes))
        }
        ("arrayValue", list) => values(list).map(unwrapped).collect(),
        ("kvlistValue", list) => Json::Object(
            values(list)
                .filter_map(unwrapped_pair)
                .collect::<Map<_, _>>(),
        ),
        (_, value) => value,
    }
}

/// A whole number without the fraction that a language without whole numbers writes. Larger floats are not exact, so they stay as they are.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is checked, and the fraction is 0"
)]
fn whole_number(number: Number) -> Number {
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= LARGEST => {
            (float as i64).into()
        }
        _ => number,
    }
}

/// Parses the text of a whole number, also one that a language without whole numbers writes: `7.0`.
fn whole(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches('0').strip_suffix('.');
    digits.unwrap_or(text).parse().ok()
}

fn values(list: Json) -> impl Iterator<Item = Json> {
    let list = match list {
        Json::Object(mut object) => object.remove("values"),
        _ => None,
    };
    let list = match list {
        Some(Json::Array(items)) => items,
        _ => Vec::new(),
    };
    list.into_iter()
}

fn unwrapped_pair(pair: Json) -> Option<(String, Json)> {
    let Json::Object(mut pair) = pair else {
        return None;
    };
    let key = of_text(pair.remove("key")?.as_str()?.to_owned());
    Some((key, unwrapped(pair.remove("value").unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_text_if_they_can_be() {
        for (sent, read) in [
            (
                r#"{"bytesValue":"cGFzc3dvcmQ9aHVudGVyMg=="}"#,
                "password=hunter2",
            ),
            (
                r#"{"bytesValue":"cGFzc3dvcmQ9aHVudGVyMg"}"#,
                "password=hunter2",
            ),
            (r#"{"bytesValue":"Pz8-Pn5-"}"#, "??>>~~"),
            (r#"{"bytesValue":"AQID"}"#, "AQID"),
            (r#"{"bytesValue":"_w=="}"#, "/w=="),
            (r#"{"bytesValue":"no Base64"}"#, "no Base64"),
            (
                r#"{"arrayValue":{"values":[{"bytesValue":"cGFzc3dvcmQ9aHVudGVyMg=="}]}}"#,
                r#"["password=hunter2"]"#,
            ),
        ] {
            let Any(text) = serde_json::from_str(sent).unwrap();
            assert_eq!(text.as_str(), read, "{sent}");
        }
        assert_eq!(of_bytes(b"password=hunter2"), "password=hunter2");
        assert_eq!(of_bytes(b"\x01\x02\x03"), "AQID");
        for number in [i64::MIN, -1, 0, 7, 999, 1_000, i64::MAX] {
            assert_eq!(digits(number).as_str(), number.to_string());
        }
    }

    #[test]
    fn null_is_no_value() {
        let rest = r#""boolValue":null,"doubleValue":null,"arrayValue":null,"kvlistValue":null,"bytesValue":null"#;
        for (sent, read) in [
            (r#""stringValue":null,"intValue":"5""#, "5"),
            (r#""intValue":"5","stringValue":null"#, "5"),
            (r#""intValue":null,"stringValue":"five""#, "five"),
            (r#""intValue":null,"stringValue":"""#, ""),
            (r#""intValue":null,"stringValue":null"#, ""),
        ] {
            for sent in [format!("{{{sent},{rest}}}"), format!("{{{rest},{sent}}}")] {
                let Any(text) = serde_json::from_str(&sent).unwrap();
                assert_eq!(text.as_str(), read, "{sent}");
            }
            let list = format!(r#"{{"arrayValue":{{"values":[{{{sent}}}]}},"stringValue":null}}"#);
            let Any(text) = serde_json::from_str(&list).unwrap();
            assert!(text.contains(read), "{list}");
        }
    }

    #[test]
    fn whole_numbers_keep_all_their_digits() {
        for (sent, read) in [
            (
                r#"{"intValue":18446744073709551615}"#,
                "18446744073709551615",
            ),
            (
                r#"{"intValue":-9223372036854775808}"#,
                "-9223372036854775808",
            ),
            (
                r#"{"intValue":"-9223372036854775808"}"#,
                "-9223372036854775808",
            ),
            (r#"{"intValue":9007199254740993}"#, "9007199254740993"),
            (r#"{"intValue":7.0}"#, "7"),
            (r#"{"intValue":"7.0"}"#, "7"),
            (r#"{"intValue":-0.0}"#, "0"),
            (r#"{"intValue":1e3}"#, "1000"),
            (r#"{"intValue":1e300}"#, "1e+300"),
            (r#"{"intValue":7.5}"#, "7.5"),
            (r#"{"doubleValue":7.0}"#, "7.0"),
            (r#"{"doubleValue":-0.0}"#, "-0.0"),
            (
                r#"{"arrayValue":{"values":[{"intValue":18446744073709551615},{"intValue":7.0}]}}"#,
                "[18446744073709551615,7]",
            ),
        ] {
            let Any(text) = serde_json::from_str(sent).unwrap();
            assert_eq!(text.as_str(), read, "{sent}");
        }
    }
}
