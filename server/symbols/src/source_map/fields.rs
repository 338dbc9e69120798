//! The fields of a source map, as the tools of the field write them: a field twice, ids in two spellings, other types than expected.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::SymbolId;

/// What a source map says about itself.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// `debugId`, which counts if the map has both.
    pub(super) id: Option<SymbolId>,
    /// `debug_id`, the older spelling.
    pub(super) older_id: Option<SymbolId>,
    pub(super) file: String,
    /// Whether a field is there that only source maps have.
    pub(super) is_source_map: bool,
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a source map")
    }

    /// Of a field that is there twice, the last one counts, as in JavaScript.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Fields::default();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            match &*name {
                "debugId" => fields.id = id(&map.next_value()?),
                "debug_id" => fields.older_id = id(&map.next_value()?),
                "file" => {
                    let file: Value = map.next_value()?;
                    file.as_str()
                        .unwrap_or_default()
                        .clone_into(&mut fields.file);
                }
                name => {
                    fields.is_source_map |= matches!(name, "mappings" | "sections");
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(fields)
    }
}

fn id(value: &Value) -> Option<SymbolId> {
    SymbolId::parse(value.as_str()?)
}

/// Returns the JSON of a file without what may be in front of it: a byte order mark, and the line that keeps browsers from running it.
pub(super) fn json_of(data: &[u8]) -> &[u8] {
    let data = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    let data = data.trim_ascii_start();
    if !data.starts_with(b")]}") {
        return data;
    }
    let end = data.iter().position(|byte| *byte == b'\n');
    let rest = end.and_then(|end| data.get(end..));
    rest.unwrap_or_default().trim_ascii_start()
}

/// Returns the same map with each field once, and without fields that the reader of places does not need.
pub(super) fn normalized(json: &str) -> serde_json::Result<String> {
    let mut map: Value = serde_json::from_str(json)?;
    normalize(&mut map);
    serde_json::to_string(&map)
}

fn normalize(map: &mut Value) {
    let Some(fields) = map.as_object_mut() else {
        return;
    };
    fields.retain(|name, value| READ.contains(&name.as_str()) && !value.is_null());
    fields.insert("version".to_owned(), Value::from(3));
    let sections = fields.get_mut("sections").and_then(Value::as_array_mut);
    for section in sections.into_iter().flatten() {
        if let Some(map) = section.get_mut("map") {
            normalize(map);
        }
    }
    for list in ["sources", "sourcesContent"] {
        let texts = fields.get_mut(list).and_then(Value::as_array_mut);
        for text in texts.into_iter().flatten().filter(|text| !text.is_string()) {
            *text = Value::Null;
        }
    }
}

/// The fields of which places and functions are read.
const READ: [&str; 8] = [
    "mappings",
    "names",
    "rangeMappings",
    "sections",
    "sourceRoot",
    "sources",
    "sourcesContent",
    "x_facebook_sources",
];
