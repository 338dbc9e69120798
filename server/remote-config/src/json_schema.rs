//! The document that operators write, as JSON Schema for the API document and for the form of the web interface.
//!
//! Keys and ranges come from [`super::schema`], defaults and descriptions from the type that devices read.

use serde_json::{Map, Value, json};
use unjank_protocol::config::Document;
use utoipa::{PartialSchema, ToSchema};

use super::schema::DOCUMENT;
use super::shape::{Key, Shape};

/// Returns the schema of a configuration's base. Omitted keys take their defaults.
#[must_use]
pub fn base_schema() -> Value {
    let mut schemas = Vec::new();
    Document::schemas(&mut schemas);
    let known = schemas.into_iter();
    let known = known
        .map(|(name, schema)| (name, to_json(&schema)))
        .collect();
    let defaults = to_json(&Document::default());
    let described = to_json(&Document::schema());
    Described { known }.schema(&DOCUMENT, Some(&defaults), &described)
}

fn to_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// The schemas of the types in the document, by name.
struct Described {
    known: Map<String, Value>,
}

impl Described {
    /// Returns the schema of a shape. `about` is the schema of the type that devices read.
    fn schema(&self, shape: &Shape, default: Option<&Value>, about: &Value) -> Value {
        let about = self.followed(about);
        match shape {
            Shape::Object(keys) => self.object(keys, default, about),
            Shape::List {
                of: one,
                at_least,
                at_most,
            } => {
                let items = self.schema(one, None, &about["items"]);
                json!({"type": "array", "items": items, "minItems": at_least, "maxItems": at_most})
            }
            Shape::Map { of: one, at_most } => {
                let one = or_null(self.schema(one, None, &about["additionalProperties"]));
                json!({"type": "object", "additionalProperties": one, "maxProperties": at_most})
            }
            shape => scalar(shape),
        }
    }

    fn object(&self, keys: &[Key], default: Option<&Value>, about: &Value) -> Value {
        let mut properties = Map::new();
        for (place, key) in keys.iter().enumerate() {
            let default = default.and_then(|default| default.get(key.name));
            let about = &about["properties"][key.name];
            let mut schema = self.schema(&key.shape, default, about);
            // Key order in JSON objects is not preserved.
            schema["x-order"] = json!(place);
            if let Some(unit) = unit(key) {
                schema["x-unit"] = json!(unit);
            }
            if let Some(text) = about.get("description") {
                schema["description"] = text.clone();
            }
            if !matches!(key.shape, Shape::Object(_))
                && let Some(default) = default
            {
                schema["default"] = default.clone();
            }
            let schema = if key.required {
                schema
            } else {
                or_null(schema)
            };
            properties.insert(key.name.to_owned(), schema);
        }
        let required = keys.iter().filter(|key| key.required);
        let required: Vec<_> = required.map(|key| key.name).collect();
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    /// Follows a reference to the schema of a type.
    fn followed<'s>(&'s self, about: &'s Value) -> &'s Value {
        let name = about["$ref"]
            .as_str()
            .and_then(|path| path.rsplit('/').next());
        name.and_then(|name| self.known.get(name)).unwrap_or(about)
    }
}

fn scalar(shape: &Shape) -> Value {
    match shape {
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Integer { min, max } => {
            json!({"type": "integer", "format": "int64", "minimum": min, "maximum": max})
        }
        Shape::Share => json!({"type": "number", "minimum": 0, "maximum": 1}),
        Shape::Text => json!({"type": "string", "minLength": 1, "maxLength": 1024}),
        Shape::Regex => json!({"type": "string", "format": "regex"}),
        // `null` must be in the list: an `enum` allows only the values that it lists.
        Shape::OneOf(names) => {
            let names = names.iter().map(|name| json!(name));
            let values: Vec<Value> = names.chain([Value::Null]).collect();
            json!({"type": "string", "enum": values})
        }
        Shape::List { .. } | Shape::Map { .. } | Shape::Object(_) | Shape::Anything => json!({}),
    }
}

/// Returns the unit of a value, from the suffix of its name.
fn unit(key: &Key) -> Option<&'static str> {
    let ends = [("_ms", "ms"), ("_s", "s"), ("_bytes", "bytes")];
    match key.shape {
        Shape::Share => Some("share"),
        Shape::Integer { .. } => ends
            .iter()
            .find(|(end, _)| key.name.ends_with(end))
            .map(|(_, unit)| *unit),
        _ => None,
    }
}

/// Also allows `null`, which means the default, or in a map no entry.
fn or_null(mut shape: Value) -> Value {
    if let Some(kind) = shape.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_its_range_default_unit_and_description() {
        let schema = base_schema();
        let anr = &schema["properties"]["jank"]["properties"]["anr_ms"];
        assert_eq!(anr["minimum"], 1_000);
        assert_eq!(anr["maximum"], 60_000);
        assert_eq!(anr["default"], 5_000);
        assert_eq!(anr["x-unit"], "ms");
        let text = anr["description"].as_str().unwrap();
        assert!(text.starts_with("The minimum duration of an ANR"), "{text}");
    }

    #[test]
    fn every_field_is_described() {
        fn undescribed(path: &str, schema: &Value, found: &mut Vec<String>) {
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                let path = format!("{path}.{name}");
                found.extend((!field["description"].is_string()).then(|| path.clone()));
                undescribed(&path, field, found);
                undescribed(&path, &field["items"], found);
                undescribed(&path, &field["additionalProperties"], found);
            }
        }
        let mut found = Vec::new();
        undescribed("", &base_schema(), &mut found);
        assert!(found.is_empty(), "{found:?}");
    }
}
