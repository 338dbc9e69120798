//! The document that operators write, as JSON Schema for the API document.

use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};

use super::schema::DOCUMENT;
use super::shape::Shape;

/// The schema of a configuration's base. Omitted keys take their defaults.
pub(super) fn base() -> RefOr<Schema> {
    written(&schema(&DOCUMENT))
}

fn written(schema: &Value) -> RefOr<Schema> {
    serde_json::from_value(schema.clone()).unwrap_or_else(|_| RefOr::T(Schema::default()))
}

fn schema(shape: &Shape) -> Value {
    match shape {
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Integer { min, max } => {
            json!({"type": "integer", "format": "int64", "minimum": min, "maximum": max})
        }
        Shape::Share => json!({"type": "number", "minimum": 0, "maximum": 1}),
        Shape::Text => json!({"type": "string", "minLength": 1, "maxLength": 1024}),
        Shape::Regex => json!({"type": "string", "format": "regex"}),
        Shape::List {
            of: one,
            at_least,
            at_most,
        } => {
            json!({"type": "array", "items": schema(one), "minItems": at_least, "maxItems": at_most})
        }
        Shape::Map { of: one, at_most } => {
            json!({"type": "object", "additionalProperties": or_null(schema(one)), "maxProperties": at_most})
        }
        Shape::Object(keys) => {
            let properties: Map<_, _> = keys
                .iter()
                .map(|key| {
                    let shape = schema(&key.shape);
                    let shape = if key.required { shape } else { or_null(shape) };
                    (key.name.to_owned(), shape)
                })
                .collect();
            let required: Vec<_> = keys.iter().filter(|key| key.required).collect();
            let required: Vec<_> = required.iter().map(|key| key.name).collect();
            json!({
                "type": "object", "properties": properties, "required": required, "additionalProperties": false
            })
        }
        Shape::Anything => json!({}),
    }
}

/// Also allows `null`, which means the default, or in a map no entry.
fn or_null(mut shape: Value) -> Value {
    if let Some(kind) = shape.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    }
    shape
}
