//! A configuration as operators write it, and a reader whose errors name the path.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unjank_protocol::Timestamp;

use super::check::{closest, hint};
use super::condition::Condition;
use super::fault::{Fault, FaultCode};

/// The configuration of a project's devices: a base, and overrides for some of the devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// The document of `GET /v1/config` without `schema` and `revision`. Omitted keys take their defaults.
    #[serde(default = "empty")]
    #[schema(value_type = Object)]
    pub base: Value,
    /// Overrides, in order. All that match a device are applied, and the last one wins. At most 1,024.
    #[serde(default)]
    #[schema(max_items = 1_024)]
    pub overrides: Vec<Override>,
}

/// A change for some devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Override {
    /// The id: at most 64 lower-case letters, digits, `-`, `_` and `.`. Do not change it: percentages depend on it.
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")]
    pub id: String,
    /// A note for other operators, such as the reason for the override. At most 1,024 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(max_length = 1_024)]
    pub note: String,
    /// Whether the override applies.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The devices the override applies to. Required; `{"all": []}` selects every device.
    pub when: Condition,
    /// A JSON Merge Patch (RFC 7396) on the complete base: objects are merged, everything else is replaced, and `null`
    /// resets a key to the program's default or removes an entry from a map.
    #[schema(value_type = Object)]
    pub patch: Value,
    /// When the override expires. It applies only before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
}

impl Default for Configuration {
    /// Gives every device the defaults of the program.
    fn default() -> Self {
        Self {
            base: empty(),
            overrides: Vec::new(),
        }
    }
}

fn empty() -> Value {
    Value::Object(serde_json::Map::new())
}

fn yes() -> bool {
    true
}

impl Configuration {
    /// Reads a configuration. [`super::Compiled::new`] checks its values.
    ///
    /// # Errors
    /// If the text is not JSON or not of this shape. The fault names the path.
    pub fn from_json(text: &[u8]) -> Result<Self, Fault> {
        // Goes through a value, so that errors do not depend on the order of keys in the text.
        let value: Value = serde_json::from_slice(text)
            .map_err(|error| Fault::new("", FaultCode::Unreadable, format!("not JSON: {error}")))?;
        Self::from_value(value)
    }

    /// Reads a configuration from a JSON value. See [`Self::from_json`].
    ///
    /// # Errors
    /// If the value is not of this shape. The fault names the path.
    pub fn from_value(value: Value) -> Result<Self, Fault> {
        only_objects(&value)?;
        serde_path_to_error::deserialize(value).map_err(|error| {
            let path = match error.path().to_string() {
                root if root == "." => String::new(),
                path => path,
            };
            explained(path, &error.into_inner().to_string())
        })
    }
}

/// Rejects lists in place of objects. Serde would read the members of a struct from a list by position, but code that
/// edits a saved configuration, such as the kill switch, looks members up by name.
fn only_objects(value: &Value) -> Result<(), Fault> {
    let wrong = |path| Fault::new(path, FaultCode::WrongType, "must be an object");
    if !value.is_object() {
        return Err(wrong(String::new()));
    }
    let overrides = value.get("overrides").and_then(Value::as_array);
    let mut overrides = overrides.into_iter().flatten();
    match overrides.position(|one| !one.is_object()) {
        Some(index) => Err(wrong(format!("overrides[{index}]"))),
        None => Ok(()),
    }
}

/// Turns a serde error into a fault with a code and a hint.
fn explained(path: String, text: &str) -> Fault {
    // In "unknown field `whne`, expected one of `id`, `note`, …" the names are between backquotes.
    let mut names = text.split('`').skip(1).step_by(2);
    let wrong = names.next().unwrap_or_default();
    let is_variant = text.starts_with("unknown variant");
    if is_variant || text.starts_with("unknown field") {
        // The path of an unknown field ends with the field; the path of an unknown variant does not include the variant.
        let path = if is_variant {
            format!("{path}.{wrong}")
        } else {
            path
        };
        let message = format!("{text}{}", hint(closest(wrong, names)));
        return Fault::new(path, FaultCode::UnknownKey, message);
    }
    let code = match text {
        _ if text.starts_with("missing field") => FaultCode::Missing,
        _ if text.starts_with("invalid type") => FaultCode::WrongType,
        _ => FaultCode::Unreadable,
    };
    Fault::new(path, code, text)
}
