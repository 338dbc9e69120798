//! Checks a JSON value against its shape and collects every fault with its path.

use serde_json::{Map, Value};
use unjank_foundation::expressions::ExpressionError;

use super::fault::{Fault, FaultCode, Faults};
use super::schema::{DOCUMENT, paths_of};
use super::shape::{Key, Shape};

const MAX_TEXT_BYTES: usize = 1_024;
const MAX_KEY_BYTES: usize = 128;
/// The maximum nesting depth of objects and lists in a toggle.
const MAX_DEPTH: usize = 16;

/// Checks a document as operators write it, complete or as a patch: every key may be omitted or `null`.
pub(super) fn check_document(value: &Value, path: &str, faults: &mut Faults) {
    Check { root: path, faults }.value(value, &DOCUMENT, path);
}

struct Check<'a> {
    /// The path of the document itself.
    root: &'a str,
    faults: &'a mut Faults,
}

impl Check<'_> {
    fn value(&mut self, value: &Value, shape: &Shape, path: &str) {
        if self.faults.is_full() {
            return;
        }
        match (shape, value) {
            (Shape::Flag, Value::Bool(_)) => {}
            (Shape::Integer { min, max }, Value::Number(number)) => {
                if number.is_f64() {
                    self.wrong_type(value, "a whole number", path);
                } else if !number
                    .as_u64()
                    .is_some_and(|number| (*min..=*max).contains(&number))
                {
                    let message = format!("is {number}; must be {min} to {max}");
                    self.fault(path, FaultCode::OutOfRange, message);
                }
            }
            (Shape::Share, Value::Number(number)) => {
                if !number
                    .as_f64()
                    .is_some_and(|number| (0.0..=1.0).contains(&number))
                {
                    let message = format!("is {number}; must be 0 to 1");
                    self.fault(path, FaultCode::OutOfRange, message);
                }
            }
            (Shape::Text, Value::String(text)) => self.text(text, path),
            (Shape::Regex, Value::String(text)) => self.regex(text, path),
            (Shape::OneOf(names), Value::String(text)) => {
                if !names.contains(&text.as_str()) {
                    let message = format!("is {text:?}; must be one of {}", names.join(", "));
                    self.fault(path, FaultCode::UnknownName, message);
                }
            }
            (
                Shape::List {
                    of,
                    at_least,
                    at_most,
                },
                Value::Array(list),
            ) => {
                if self.is_fit(list.len(), *at_least, *at_most, path) {
                    self.entries_of_list(list, of, path);
                }
            }
            (Shape::Map { of, at_most }, Value::Object(map)) => {
                if self.is_fit(map.len(), 0, *at_most, path) {
                    self.entries(map, of, path);
                }
            }
            (Shape::Object(keys), Value::Object(map)) => self.object(map, keys, path),
            (Shape::Anything, value) => {
                if depth(value) > MAX_DEPTH {
                    let message = format!(
                        "nests objects and lists too deeply; at most {MAX_DEPTH} levels are allowed"
                    );
                    self.fault(path, FaultCode::TooLarge, message);
                }
            }
            (shape, value) => self.wrong_type(value, expected(shape), path),
        }
    }

    fn entries_of_list(&mut self, list: &[Value], of: &Shape, path: &str) {
        for (index, value) in list.iter().enumerate() {
            self.value(value, of, &format!("{path}[{index}]"));
        }
    }

    fn entries(&mut self, map: &Map<String, Value>, of: &Shape, path: &str) {
        for (name, value) in map {
            if name.is_empty() || name.len() > MAX_KEY_BYTES {
                let message = format!("the name {name:?} must be 1 to {MAX_KEY_BYTES} bytes long");
                self.fault(path, FaultCode::OutOfRange, message);
            }
            if !value.is_null() {
                self.value(value, of, &format!("{path}.{name}"));
            }
        }
    }

    fn object(&mut self, map: &Map<String, Value>, keys: &[Key], path: &str) {
        for (name, value) in map {
            if self.faults.is_full() {
                return;
            }
            match keys.iter().find(|key| key.name == name) {
                // `null` means the default. A required key has none and is reported as missing below.
                Some(_) if value.is_null() => {}
                Some(key) => self.value(value, &key.shape, &format!("{path}.{name}")),
                None => self.unknown_key(name, keys, path),
            }
        }
        for key in keys.iter().filter(|key| key.required) {
            if map.get(key.name).is_none_or(Value::is_null) {
                let message = format!("`{}` is missing", key.name);
                self.fault(path, FaultCode::Missing, message);
            }
        }
    }

    fn unknown_key(&mut self, name: &str, keys: &[Key], path: &str) {
        let message = if path == self.root && matches!(name, "schema" | "revision") {
            format!("`{name}` is set by the server; remove it")
        } else {
            let sibling = closest(name, keys.iter().map(|key| key.name)).map(str::to_owned);
            let known = sibling.or_else(|| paths_of(name).into_iter().next());
            format!("unknown key `{name}`{}", hint(known.as_deref()))
        };
        self.fault(&format!("{path}.{name}"), FaultCode::UnknownKey, message);
    }

    fn text(&mut self, text: &str, path: &str) {
        if text.is_empty() {
            self.fault(path, FaultCode::Empty, "is empty");
        } else if text.len() > MAX_TEXT_BYTES {
            let message = format!(
                "is {} bytes long; the limit is {MAX_TEXT_BYTES}",
                text.len()
            );
            self.fault(path, FaultCode::TooLarge, message);
        }
    }

    fn regex(&mut self, text: &str, path: &str) {
        let before = self.faults.len();
        self.text(text, path);
        if self.faults.len() > before {
            return;
        }
        if let Err(error) = self.faults.expressions.check(text) {
            let code = match error {
                ExpressionError::Invalid(_) => FaultCode::InvalidRegex,
                ExpressionError::TooLarge | ExpressionError::UsedUp { .. } => FaultCode::TooLarge,
            };
            self.fault(path, code, error.to_string());
        }
    }

    /// Checks the number of entries of a list or map.
    fn is_fit(&mut self, size: usize, at_least: usize, at_most: usize, path: &str) -> bool {
        if size < at_least {
            self.fault(path, FaultCode::Empty, "is empty");
        } else if size > at_most {
            let message = format!("has {size} entries; the limit is {at_most}");
            self.fault(path, FaultCode::TooLarge, message);
        }
        (at_least..=at_most).contains(&size)
    }

    fn wrong_type(&mut self, value: &Value, expected: &str, path: &str) {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) => number.to_string(),
            Value::String(_) => "text".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "an object".to_owned(),
        };
        let message = format!("is {found}; must be {expected}");
        self.fault(path, FaultCode::WrongType, message);
    }

    fn fault(&mut self, path: &str, code: FaultCode, message: impl Into<String>) {
        self.faults.push(Fault::new(path, code, message));
    }
}

fn expected(shape: &Shape) -> &'static str {
    match shape {
        Shape::Flag => "true or false",
        Shape::Integer { .. } => "a whole number",
        Shape::Share => "a number from 0 to 1",
        Shape::Text | Shape::OneOf(_) => "text",
        Shape::Regex => "text, a regular expression",
        Shape::List { .. } => "a list",
        Shape::Map { .. } | Shape::Object(_) => "an object",
        Shape::Anything => "any value",
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns the name that was probably meant.
pub(super) fn closest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const ALIKE: f64 = 0.8;
    let similarity = |name: &'a str| (strsim::jaro_winkler(wrong, name), name);
    let best = names
        .map(similarity)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(likeness, _)| *likeness >= ALIKE)
        .map(|(_, name)| name)
}

/// Returns a suggestion to append to a message.
pub(super) fn hint(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}
