//! A configuration as operators write it, and reading it with errors that say where.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unjank_protocol::Timestamp;

use super::check::{closest, hint};
use super::condition::Condition;
use super::fault::{Fault, FaultCode};

/// What one project's devices are told: a base, and what is different for some of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// The document of `GET /v1/config` without `schema` and `revision`. What is left out takes its default.
    #[serde(default = "empty")]
    #[schema(schema_with = super::json_schema::base)]
    pub base: Value,
    /// In order: of those that match a device all are applied, and the later one wins. At most 1,024.
    #[serde(default)]
    #[schema(max_items = 1_024)]
    pub overrides: Vec<Override>,
}

/// What is different for some devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Override {
    /// Names it: lower-case letters, digits, `-`, `_` and `.`, at most 64. Percentages depend on it, so it stays.
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")]
    pub id: String,
    /// Why it is there, for people. At most 1,024 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(max_length = 1_024)]
    pub note: String,
    /// Whether it is in force.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Which devices it is for. Never left out: an override for all says so with `{"all": []}`.
    pub when: Condition,
    /// A JSON Merge Patch (RFC 7396) over the complete base: objects are merged, everything else is replaced, and `null`
    /// puts a key back to the default of the program, or takes an entry out of a map.
    #[schema(value_type = Object)]
    pub patch: Value,
    /// It is in force before this time only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
}

impl Default for Configuration {
    /// Every device gets the defaults of the program.
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
    /// Reads a configuration. What it says is checked by [`super::Compiled::new`].
    ///
    /// # Errors
    /// When the text is not JSON, or not of this shape: the fault names the path.
    pub fn from_json(text: &[u8]) -> Result<Self, Fault> {
        // By way of a value: its errors do not depend on the order in which the text has things.
        let value: Value = serde_json::from_slice(text)
            .map_err(|error| Fault::new("", FaultCode::Unreadable, format!("not JSON: {error}")))?;
        Self::from_value(value)
    }

    /// Reads a configuration from a JSON value, as [`Self::from_json`] does from text.
    ///
    /// # Errors
    /// When the value is not of this shape: the fault names the path.
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

/// Serde would also take the members of a struct from a list, by their order. Whoever changes a saved configuration, such as the
/// kill switch, goes by names.
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

/// The fault of an error of serde, with a code and a hint.
fn explained(path: String, text: &str) -> Fault {
    // "unknown field `whne`, expected one of `id`, `note`, …": what stands between backquotes are names.
    let mut names = text.split('`').skip(1).step_by(2);
    let wrong = names.next().unwrap_or_default();
    let is_variant = text.starts_with("unknown variant");
    if is_variant || text.starts_with("unknown field") {
        // The path of a field ends with it, that of a variant does not.
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
