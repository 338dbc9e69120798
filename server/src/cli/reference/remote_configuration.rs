//! The page of the remote configuration, from the schemas of the API document.

use serde_json::Value;
use unjank_remote_config::ConditionLimits as Limits;

use super::{code, grouped, one_line, table};
use crate::http;

const INTRODUCTION: &str = "\
# Remote configuration: reference

<!-- Generated from server/remote-config/src and client-sdk/protocol/src/config by `make reference`. -->

[Remote configuration](../remote-config.md) shows how to change and preview a configuration. This page lists all keys and conditions. \
A configuration has a `base` and `overrides`. An override has a condition, `when`, and a `patch` of the base for the devices that meet it.

## Keys

A key that is not required may be omitted or `null`; it then has its default. An unknown key is an error. A key of a list or a map is written with the list \
or the map before it: `pages[].page` is the key `page` of each entry of `pages`, `monitors.<name>.interval_ms` the key `interval_ms` of each \
monitor.
";

const OVERRIDES: &str = "
## Overrides

Overrides apply in order: if two of them set the same key, the later one wins.

";

const CONDITIONS: &str = "
## Conditions

A condition is an object with exactly one key. `{\"all\": []}` selects every device.

A device sends its attributes with each poll. A condition on an attribute that the device did not send, or on a version that is not a \
version, does not hold; its `not` does.

";

const EXAMPLE: &str = "
Android devices with at least 4.12, of which every tenth install is selected, and not the two models named:

```json
{\"all\": [
  {\"os_name\": [\"android\"]},
  {\"app_version\": \">=4.12\"},
  {\"percentage\": {\"percent\": 10}},
  {\"not\": {\"device_model\": [\"SM-A0*\", \"moto e?\"]}}]}
```
";

const HEADS: [&str; 5] = ["key", "value", "unit", "default", "meaning"];

pub(super) fn page() -> String {
    let document = http::document();
    let schemas = &document["components"]["schemas"];
    let base = &schemas["Configuration"]["properties"]["base"];
    [
        INTRODUCTION.to_owned(),
        keys(base),
        OVERRIDES.to_owned(),
        fields(&schemas["Override"]),
        CONDITIONS.to_owned(),
        conditions(&schemas["Condition"]),
        limits(),
        EXAMPLE.to_owned(),
        versions(&schemas["Condition"]),
        "\n## Parts of conditions\n\nThe keys of `build`:\n\n".to_owned(),
        fields(&schemas["BuildRange"]),
        "\nThe keys of `percentage`:\n\n".to_owned(),
        fields(&schemas["Percentage"]),
    ]
    .concat()
}

/// Returns a table of the keys at the top, then one for each group.
fn keys(base: &Value) -> String {
    let mut top = Vec::new();
    let mut groups = String::new();
    for (name, field) in in_order(base) {
        if is_group(field) {
            let mut rows = Vec::new();
            add_rows(&format!("{name}."), field, &mut rows);
            let heading = format!("\n### `{name}`\n\n{}\n\n", description(field));
            groups.push_str(&heading);
            groups.push_str(&table(HEADS, rows));
        } else {
            add_row(name, field, base, &mut top);
        }
    }
    format!("\n{}{groups}", table(HEADS, top))
}

fn add_rows(path: &str, schema: &Value, rows: &mut Vec<[String; 5]>) {
    for (name, field) in in_order(schema) {
        let path = format!("{path}{name}");
        if is_group(field) {
            add_rows(&format!("{path}."), field, rows);
        } else {
            add_row(&path, field, schema, rows);
        }
    }
}

/// Adds the row of a key, and the rows of the keys inside of it. `within` is the schema of the object that has the key.
fn add_row(path: &str, field: &Value, within: &Value, rows: &mut Vec<[String; 5]>) {
    let name = path.rsplit('.').next().unwrap_or(path);
    let required = within["required"].as_array();
    let is_required = required.is_some_and(|names| names.iter().any(|one| one == name));
    let default = match field.get("default") {
        Some(default) => code(&default.to_string()),
        None if is_required => "required".to_owned(),
        None => String::new(),
    };
    let unit = field["x-unit"].as_str().unwrap_or_default();
    rows.push([
        code(path),
        value(field),
        unit.to_owned(),
        default,
        description(field),
    ]);
    add_rows(&format!("{path}[]."), &field["items"], rows);
    let entry = &field["additionalProperties"];
    add_rows(&format!("{path}.<name>."), entry, rows);
}

/// Returns the keys of an object: those of a document in the order of its type, others by name.
fn in_order(schema: &Value) -> Vec<(&str, &Value)> {
    let fields = schema["properties"].as_object();
    let fields = fields.into_iter().flatten();
    let mut fields: Vec<_> = fields.map(|(name, field)| (name.as_str(), field)).collect();
    fields.sort_by_key(|(_, field)| field["x-order"].as_u64());
    fields
}

fn is_group(field: &Value) -> bool {
    field.get("properties").is_some()
}

fn description(schema: &Value) -> String {
    one_line(schema["description"].as_str().unwrap_or_default())
}

/// Returns the type of a value and its range.
fn value(schema: &Value) -> String {
    let number = |name: &str| schema[name].as_u64();
    let most = |name: &str| number(name).map(|most| format!(", at most {}", grouped(most)));
    let range = match (number("minimum"), number("maximum")) {
        (Some(min), Some(max)) => format!(", {} to {}", grouped(min), grouped(max)),
        (Some(min), None) => format!(", from {}", grouped(min)),
        _ => String::new(),
    };
    match kind(schema) {
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("integer") => format!("whole number{range}"),
        Some("number") => format!("number{range}"),
        Some("string") => text(schema),
        Some("array") => {
            let at_most = most("maxItems").unwrap_or_default();
            format!("list of {}{at_most}", entries(&schema["items"]))
        }
        Some("object") => {
            let at_most = most("maxProperties").unwrap_or_default();
            format!("object{at_most}")
        }
        _ => match referred(schema) {
            Some(name) => code(name),
            None => "any".to_owned(),
        },
    }
}

/// Returns the type of a schema. `null`, which means the default, does not count.
fn kind(schema: &Value) -> Option<&str> {
    let kind = &schema["type"];
    let kinds = kind.as_array().into_iter().flatten();
    let mut names = kinds.chain([kind]).filter_map(Value::as_str);
    names.find(|name| *name != "null")
}

/// Returns the name of the type that a schema refers to.
fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

fn text(schema: &Value) -> String {
    let names = schema["enum"].as_array().into_iter().flatten();
    let names: Vec<_> = names.filter_map(Value::as_str).map(code).collect();
    if !names.is_empty() {
        return names.join(" or ");
    }
    match schema["format"].as_str() {
        Some("regex") => return "regular expression".to_owned(),
        Some("date-time") => return "time, RFC 3339".to_owned(),
        _ => {}
    }
    match schema["maxLength"].as_u64() {
        Some(most) => format!("text, at most {} bytes", grouped(most)),
        None => "text".to_owned(),
    }
}

fn entries(items: &Value) -> String {
    match (kind(items), referred(items)) {
        (_, Some(name)) => format!("`{name}`"),
        (Some("object"), _) => "objects".to_owned(),
        (Some("string"), _) if items["format"] == "regex" => "regular expressions".to_owned(),
        _ => "texts".to_owned(),
    }
}

/// Returns a table of the fields of an object.
fn fields(schema: &Value) -> String {
    let required = schema["required"].as_array();
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
    let row = |(name, field): (&str, &Value)| {
        let required = if is_required(name) { "required" } else { "" };
        [
            code(name),
            value(field),
            required.to_owned(),
            description(field),
        ]
    };
    let rows = in_order(schema).into_iter().map(row);
    table(["key", "value", "", "meaning"], rows)
}

/// Returns a table of the conditions. Version requirements have a section of their own.
fn conditions(schema: &Value) -> String {
    let kinds = schema["oneOf"].as_array().into_iter().flatten();
    let rows = kinds.flat_map(in_order).map(|(name, field)| {
        let text = field["description"].as_str().unwrap_or_default();
        let first = text.split("\n\n").next().unwrap_or_default();
        [code(name), value(field), one_line(first)]
    });
    table(["condition", "value", "holds if"], rows)
}

/// Returns how to write a requirement on a version: the documentation of the condition in which it is described.
fn versions(schema: &Value) -> String {
    let mut kinds = schema["oneOf"].as_array().into_iter().flatten();
    let found = kinds.find_map(|kind| kind["properties"]["app_version"]["description"].as_str());
    let paragraphs = found.unwrap_or_default().split("\n\n");
    let paragraphs: Vec<_> = paragraphs.map(one_line).collect();
    format!("\n## Versions\n\n{}\n", paragraphs.join("\n\n"))
}

fn limits() -> String {
    let [conditions, ids, names, bytes] = [
        Limits::CONDITIONS,
        Limits::IDS,
        Limits::NAMES,
        Limits::TEXT_BYTES,
    ]
    .map(|limit| grouped(limit as u64));
    format!(
        "\nAn override has at most {conditions} conditions, nested at most {} deep. A list has at most {ids} ids (`app_id`, `user_id`, \
         `install_id`) or {names} other entries. Each entry has 1 to {bytes} bytes. An empty list is an error, except in `all`.\n",
        Limits::DEPTH,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_range_the_unit_and_the_default() {
        let page = page();
        for row in [
            "| `poll_interval_s` | whole number, 30 to 86,400 | s | `900` | The interval between polls",
            "| `sampling.spans.default` | number, 0 to 1 | share | `0.01` | ",
            "| `sampling.spans.overrides[].name` | text, at most 1,024 bytes |  | required | ",
            "| `tracing.tags` | list of texts, at most 1,000 |  | `[]` | ",
            "| `jank.overrides[].phase` | `start` or `later` |  |  | ",
            "| `monitors.<name>.interval_ms` | whole number, 100 to 3,600,000 | ms |  | ",
            "| `toggles` | object, at most 1,000 |  | `{}` | ",
            "| `id` | text | required | ",
            "| `all` | list of `Condition` | ",
            "| `build` | `BuildRange` | ",
            "| `percent` | number, 0 to 100 | required | ",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
    }
}
