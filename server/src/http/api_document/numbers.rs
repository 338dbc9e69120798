//! The numbers of a batch: the ranges and defaults that follow from the types that read them. Annotations have those that the checks of events set.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The configuration has this type too, and no defaults for its fields.
const SHARED: &str = "JankStrategy";

/// Completes the schema of a batch, and all schemas that it refers to.
pub(super) fn complete(schemas: &mut Value) {
    let mut found = BTreeSet::from([SHARED.to_owned()]);
    let mut names = vec!["Batch".to_owned()];
    while let Some(name) = names.pop() {
        if let Some(schema) = schemas.get_mut(&name)
            && found.insert(name)
        {
            references(schema, &mut names);
            complete_one(schema);
        }
    }
}

/// Adds the names of the schemas to which a schema refers.
fn references(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            let target = members.get("$ref").and_then(Value::as_str);
            let name = target.and_then(|target| target.rsplit('/').next());
            names.extend(name.map(str::to_owned));
            members.values().for_each(|one| references(one, names));
        }
        Value::Array(items) => items.iter().for_each(|one| references(one, names)),
        _ => {}
    }
}

fn complete_one(schema: &mut Value) {
    let required = schema["required"].as_array();
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    let required: BTreeSet<String> = required.map(str::to_owned).collect();
    let properties = schema.get_mut("properties");
    let properties = properties.and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        let range = match property["format"].as_str() {
            Some("u-int16") => Some((0, i64::from(u16::MAX))),
            Some("u-int32") => Some((0, i64::from(u32::MAX))),
            Some("int32") => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
            _ => None,
        };
        let is_whole = property["type"] == "integer";
        let Some(members) = property.as_object_mut() else {
            continue;
        };
        if let Some((least, most)) = range {
            members.entry("minimum").or_insert(json!(least));
            members.entry("maximum").or_insert(json!(most));
        }
        if is_whole && !required.contains(name) {
            members.entry("default").or_insert(json!(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use unjank_protocol::{FrameWindow, Limits};

    use super::*;
    use crate::http::document;

    /// Reads a window with one more field than those that are required.
    fn read(name: &str, value: &Value) -> Option<Value> {
        let mut window =
            json!({"start": "2026-11-29T12:00:00Z", "duration_ms": 1, "frames_drawn": 1});
        window[name] = value.clone();
        let text = window.to_string();
        let window: FrameWindow<'_> = serde_json::from_str(&text).ok()?;
        serde_json::to_value(window).ok()
    }

    #[test]
    fn the_numbers_of_a_window_are_read_as_documented() {
        let document = document();
        let schema = &document["components"]["schemas"]["FrameWindow"];
        let short = read("page", &json!("Cart")).unwrap();
        let mut ranges = 0;
        for (name, property) in schema["properties"].as_object().unwrap() {
            let Some(default) = property.get("default").filter(|_| name != "sample_rate") else {
                continue;
            };
            assert_eq!(short[name], *default, "{name}");
            // Numbers of 64 bits are read before they are checked.
            let most = property["maximum"].as_u64();
            if let Some(most) = most.filter(|most| *most < Limits::LARGEST_NUMBER) {
                ranges += 1;
                assert!(read(name, &json!(most)).is_some(), "{name}");
                assert!(read(name, &json!(most + 1)).is_none(), "{name}");
            }
        }
        assert_eq!(ranges, 7);
    }

    #[test]
    fn the_ranges_that_events_are_checked_for_are_documented() {
        let document = document();
        let range = |schema: &str, name: &str| {
            let property = &document["components"]["schemas"][schema]["properties"][name];
            ["minimum", "maximum"].map(|end| property[end].as_f64())
        };
        for name in ["t1_ms", "t2_ms", "t3_ms", "total_ms"] {
            assert_eq!(range("PageLoad", name), [Some(0.0), Some(86_400_000.0)]);
        }
        for name in ["value", "min", "max"] {
            assert_eq!(range("Metric", name), [Some(-1e240), Some(1e240)]);
        }
        assert_eq!(range("Metric", "count")[0], Some(1.0));
        for schema in [
            "Span",
            "FrameWindow",
            "Jank",
            "PageLoad",
            "Metric",
            "AppStart",
            "Recomposition",
        ] {
            let rates = [Some(Limits::SMALLEST_RATE), Some(1.0)];
            assert_eq!(range(schema, "sample_rate"), rates, "{schema}");
        }
    }

    #[test]
    fn every_number_of_64_bits_of_an_event_has_a_documented_maximum() {
        let document = document();
        let mut numbers = 0;
        for schema in [
            "Span",
            "FrameWindow",
            "Jank",
            "Traffic",
            "PageLoad",
            "Metric",
            "Recomposition",
            "SdkHealth",
            "Dropped",
        ] {
            let properties = &document["components"]["schemas"][schema]["properties"];
            let properties = properties.as_object().unwrap().iter();
            for (name, property) in properties.filter(|(_, one)| one["format"] == "u-int64") {
                numbers += 1;
                let most = property["maximum"].as_u64();
                assert_eq!(most, Some(Limits::LARGEST_NUMBER), "{schema}: {name}");
            }
        }
        assert_eq!(numbers, 15);
    }
}
