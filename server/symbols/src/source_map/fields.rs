//! The fields of a source map, as the tools of the field write them: a field twice, ids in two spellings, other types than expected.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::SymbolId;
use crate::start::BYTE_ORDER_MARK;

/// What a source map says about itself.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// `debugId`, which counts if the map has both.
    pub(super) id: Option<SymbolId>,
    /// `debug_id`, the older spelling.
    pub(super) older_id: Option<SymbolId>,
    pub(super) file: String,
    /// Whether the fields are those of a source map.
    pub(super) is_source_map: bool,
    /// Whether the map has places, or parts that have them.
    pub(super) has_places: bool,
}

impl Fields {
    /// Reads the fields of a map, although it may contain characters that are none.
    pub(super) fn read(json: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(json).or_else(|_odd| serde_json::from_str(&repaired(json)))
    }
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
        // For each of these fields that the map has: whether it has a value.
        let (mut mappings, mut sections) = (None, None);
        let (mut version, mut sources) = (None, None);
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
                "mappings" => mappings = Some(is_set(&mut map)?),
                "sections" => sections = Some(is_set(&mut map)?),
                "version" => version = Some(is_set(&mut map)?),
                "sources" => sources = Some(is_set(&mut map)?),
                _ => {
                    is_set(&mut map)?;
                }
            }
        }
        let has_id = fields.id.is_some() || fields.older_id.is_some();
        let has_version_and_sources = version.is_some() && sources.is_some();
        let has_list = mappings.is_some() || sections.is_some();
        fields.is_source_map = has_list || has_id || has_version_and_sources;
        fields.has_places = mappings == Some(true) || sections == Some(true);
        Ok(fields)
    }
}

/// Skips the value of a field. Returns whether there is one.
fn is_set<'de, A: MapAccess<'de>>(map: &mut A) -> Result<bool, A::Error> {
    Ok(map.next_value::<Option<IgnoredAny>>()?.is_some())
}

fn id(value: &Value) -> Option<SymbolId> {
    SymbolId::parse(value.as_str()?)
}

/// Returns the JSON of a file without what may be in front of it: a byte order mark, and the line that keeps browsers from running it.
pub(super) fn json_of(data: &[u8]) -> &[u8] {
    let data = without_mark(data);
    let Some(after) = data.strip_prefix(b")]}") else {
        return data;
    };
    // Some tools write no line feed behind it.
    let same_line = after.strip_prefix(b"'").unwrap_or(after);
    if same_line.starts_with(b"{") {
        return same_line;
    }
    let end = data.iter().position(|byte| *byte == b'\n');
    let rest = end.and_then(|end| data.get(end..));
    without_mark(rest.unwrap_or_default().trim_ascii_start())
}

fn without_mark(data: &[u8]) -> &[u8] {
    let data = data.strip_prefix(BYTE_ORDER_MARK).unwrap_or(data);
    data.trim_ascii_start()
}

/// Replaces what is no text: bytes that are not UTF-8, and halves of surrogate pairs.
fn repaired(json: &[u8]) -> String {
    const REPLACEMENT: &str = "\\ufffd";
    let text = String::from_utf8_lossy(json);
    let mut out = String::with_capacity(text.len());
    let mut rest: &str = &text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let (length, is_half) = match (code_unit(escape), escape.get(6..).and_then(code_unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, false),
            (Some(unit), _) => (6, matches!(unit, 0xd800..=0xdfff)),
            (None, _) => {
                let escaped = escape.chars().nth(1);
                (1 + escaped.map_or(0, char::len_utf8), false)
            }
        };
        let (written, after) = escape.split_at_checked(length).unwrap_or((escape, ""));
        out.push_str(if is_half { REPLACEMENT } else { written });
        rest = after;
    }
    out + rest
}

/// The UTF-16 code unit of the escape at the start of a text.
fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// Returns the same map with each field once, as text, and without fields that the reader of places does not need.
pub(super) fn normalized(json: &[u8]) -> serde_json::Result<String> {
    let map = serde_json::from_slice(json);
    let mut map: Value = map.or_else(|_odd| serde_json::from_str(&repaired(json)))?;
    normalize(&mut map);
    serde_json::to_string(&map)
}

fn normalize(map: &mut Value) {
    let Some(fields) = map.as_object_mut() else {
        return;
    };
    fields.retain(|name, value| match name.as_str() {
        "sourceRoot" => value.is_string(),
        name => READ.contains(&name) && !value.is_null(),
    });
    fields.insert("version".to_owned(), Value::from(3));
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    if fields.contains_key("mappings") && fields.get("sections").is_some_and(is_empty) {
        fields.remove("sections");
    }
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

/// The fields, besides `sourceRoot`, of which places and functions are read.
const READ: [&str; 7] = [
    "mappings",
    "names",
    "rangeMappings",
    "sections",
    "sources",
    "sourcesContent",
    "x_facebook_sources",
];
