//! Tests that every key of the document reaches the device, from the base and from a patch. The keys come from the
//! default document and the schema, so a new key is covered without a change here.

use serde_json::{Map, Value, json};
use unjank_foundation::clock::UnixTime;
use unjank_protocol::config::Document;

use super::schema::DOCUMENT;
use super::shape::Shape;
use super::{Compiled, Condition, Configuration, Device, Override};

/// The path of a value in the document, and a valid value other than its default.
type Leaf = (Vec<String>, Value);

fn default_document() -> Value {
    serde_json::to_value(Document::default()).unwrap()
}

/// Returns a valid value of a shape, other than `current`.
fn other_value(shape: &Shape, current: &Value) -> Value {
    let candidates = match shape {
        Shape::Flag => vec![json!(true), json!(false)],
        Shape::Integer { min, max } => vec![json!(min), json!(max)],
        Shape::Share => vec![json!(0.25), json!(0.75)],
        Shape::Text | Shape::Regex => vec![json!("some"), json!("other")],
        Shape::OneOf(names) => names.iter().map(|name| json!(name)).collect(),
        Shape::List { of, .. } => vec![json!([other_value(of, &Value::Null)])],
        Shape::Map { of, .. } => vec![json!({"some": other_value(of, &Value::Null)})],
        Shape::Object(keys) => {
            let key = |key: &super::shape::Key| {
                (key.name.to_owned(), other_value(&key.shape, &Value::Null))
            };
            vec![Value::Object(keys.iter().map(key).collect())]
        }
        Shape::Anything => vec![json!({"any": ["thing", null, 1]})],
    };
    candidates
        .into_iter()
        .find(|value| value != current)
        .unwrap()
}

/// Collects all leaves below a value: the keys of an object, and the entries of a map plus one that it does not contain.
fn leaves(shape: &Shape, current: &Value, path: &[String], found: &mut Vec<Leaf>) {
    let below = |key: &str| [path, &[key.to_owned()]].concat();
    match shape {
        Shape::Object(keys) => {
            for key in *keys {
                let value = current.get(key.name).unwrap_or(&Value::Null);
                leaves(&key.shape, value, &below(key.name), found);
            }
        }
        Shape::Map { of, .. } => {
            for (key, value) in current.as_object().into_iter().flatten() {
                leaves(of, value, &below(key), found);
            }
            found.push((below("some"), other_value(of, &Value::Null)));
        }
        shape => found.push((path.to_vec(), other_value(shape, current))),
    }
}

fn all_leaves() -> Vec<Leaf> {
    let mut found = Vec::new();
    leaves(&DOCUMENT, &default_document(), &[], &mut found);
    found
}

/// Collects the paths of all scalars, lists and empty objects.
fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
    match value.as_object().filter(|map| !map.is_empty()) {
        Some(map) => {
            for (key, value) in map {
                paths(value, &format!("{path}/{key}"), found);
            }
        }
        None => found.push(path.to_owned()),
    }
}

fn nested(path: &[String], value: Value) -> Value {
    path.iter().rev().fold(value, |value, key| {
        Value::Object(Map::from_iter([(key.clone(), value)]))
    })
}

fn answer(configuration: &Configuration) -> Value {
    let compiled = Compiled::new(configuration, 7).unwrap();
    let resolved = compiled.resolve(&Device::default(), UnixTime::default());
    serde_json::from_slice(&resolved.body).unwrap()
}

fn pointer(path: &[String]) -> String {
    path.iter().map(|key| format!("/{key}")).collect()
}

/// Returns the document with one value changed.
fn changed(path: &[String], value: &Value, base: Value) -> Value {
    let mut expected = base;
    super::merge_patch::merge(&mut expected, &nested(path, value.clone()));
    expected["revision"] = json!(7);
    // Keys that an object of the document omits take their defaults.
    serde_json::to_value(serde_json::from_value::<Document>(expected).unwrap()).unwrap()
}

#[test]
fn the_schema_has_the_keys_of_the_document_and_no_others() {
    let mut of_schema: Vec<_> = all_leaves().iter().map(|(path, _)| pointer(path)).collect();
    of_schema.retain(|path| !path.ends_with("/some"));
    of_schema.sort();
    let mut of_document = Vec::new();
    paths(&default_document(), "", &mut of_document);
    of_document.retain(|path| !["/schema", "/revision", "/toggles"].contains(&path.as_str()));
    of_document.sort();
    assert_eq!(of_schema, of_document);
    // The type also reads what lists and maps contain: a round trip through it loses nothing.
    for (path, value) in all_leaves() {
        let document: Document = serde_json::from_value(nested(&path, value.clone())).unwrap();
        let written = serde_json::to_value(document).unwrap();
        assert_eq!(written.pointer(&pointer(&path)), Some(&value), "{path:?}");
    }
}

#[test]
fn every_key_of_the_base_reaches_the_device() {
    for (path, value) in all_leaves() {
        let base = nested(&path, value.clone());
        let got = answer(&Configuration {
            base: base.clone(),
            overrides: Vec::new(),
        });
        assert_eq!(got.pointer(&pointer(&path)), Some(&value), "{path:?}");
        // A map in the base replaces the default map.
        let mut default = default_document();
        if path[0] == "monitors" {
            default["monitors"] = json!({});
        }
        assert_eq!(got, changed(&path, &value, default), "{path:?}");
    }
}

#[test]
fn every_key_of_a_patch_reaches_the_devices_that_match() {
    for (path, value) in all_leaves() {
        let patch = Override {
            id: "one".to_owned(),
            note: String::new(),
            enabled: true,
            when: Condition::OsName(vec!["android".to_owned()]),
            patch: nested(&path, value.clone()),
            expires_at: None,
        };
        let configuration = Configuration {
            overrides: vec![patch],
            ..Configuration::default()
        };
        let compiled = Compiled::new(&configuration, 7).unwrap();
        let android = Device {
            os_name: Some("android"),
            ..Device::default()
        };
        let got: Value =
            serde_json::from_slice(&compiled.resolve(&android, UnixTime::default()).body).unwrap();
        assert_eq!(got, changed(&path, &value, default_document()), "{path:?}");
        assert_eq!(got.pointer(&pointer(&path)), Some(&value), "{path:?}");
        let other: Value = serde_json::from_slice(
            &compiled
                .resolve(&Device::default(), UnixTime::default())
                .body,
        )
        .unwrap();
        let mut unchanged = default_document();
        unchanged["revision"] = json!(7);
        assert_eq!(other, unchanged, "{path:?}");
    }
}

#[test]
fn a_key_that_a_patch_sets_to_null_returns_to_its_default() {
    for (path, value) in all_leaves() {
        let mut patch = nested(&path, Value::Null);
        let mut expected = default_document();
        if path[0] == "monitors" {
            patch = json!({"monitors": null});
        }
        expected["revision"] = json!(7);
        let configuration = Configuration {
            base: nested(&path, value),
            overrides: vec![Override {
                id: "back".to_owned(),
                note: String::new(),
                enabled: true,
                when: Condition::All(Vec::new()),
                patch,
                expires_at: None,
            }],
        };
        assert_eq!(answer(&configuration), expected, "{path:?}");
    }
}
