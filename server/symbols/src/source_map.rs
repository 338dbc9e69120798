//! JavaScript: places in minified scripts, and offsets in Hermes bytecode, to the original source.

mod bundle;
mod depth;
mod fields;
mod map_names;
mod naming;
mod places;
mod scopes;

use std::borrow::Cow;
use std::io::Write;

use serde::Deserialize;
use sourcemap::{DecodedMap, SourceMap, SourceMapHermes, SourceMapIndex, Token};

use self::bundle::Bundle;
use self::fields::{Fields, json_of, normalized};
use self::places::{Function, Original, PlaceWriter};
use self::scopes::Scopes;
use crate::error::{ConvertError, Unusable};
use crate::{Contents, Format, Found, Location, Origin, SymbolId};

pub(crate) use self::bundle::inspect as list_bundle;
pub(crate) use self::places::Places;
pub use self::scopes::MIN_MEMORY_BYTES;

/// The maximum number of places in a source map. Those of large apps have some million.
const MAX_MAPPINGS: usize = 10_000_000;
/// The maximum size of a script or source map in a bundle, after decompression.
const MAX_CONTENT_BYTES: u64 = 512 << 20;
/// The name of a function that has none.
const ANONYMOUS: &str = "<anonymous>";
/// What Metro calls the code outside of all functions.
const GLOBAL: &str = "<global>";
/// What else engines and SDKs call a function without a name.
const UNNAMED: [&str; 10] = [
    "?",
    "anonymous",
    "Anonymous function",
    "(anonymous)",
    "(anonymous function)",
    "[anonymous]",
    "{anonymous}()",
    "<unknown>",
    "(unknown)",
    "UNKNOWN_FUNCTION",
];

/// A source map by itself, with a debug id, as bundlers write it. `None` if the file is not meant to be a source map.
pub(crate) fn list(data: &[u8]) -> Option<Result<Found, Unusable>> {
    if !is_alone(data) {
        return None;
    }
    let json = json_of(data);
    match Fields::read(json) {
        Ok(fields) => fields.is_source_map.then(|| listed(fields)),
        Err(error) => is_meant_as_map(json).then(|| Err(Unusable::Damaged(error.to_string()))),
    }
}

/// Whether the file is JSON, and no bundle.
fn is_alone(data: &[u8]) -> bool {
    json_of(data).first() == Some(&b'{')
}

/// Whether damaged JSON has the fields of a source map.
fn is_meant_as_map(json: &[u8]) -> bool {
    let name = |name: &[u8]| json.windows(name.len()).any(|part| part == name);
    let has_one = [
        &br#""mappings""#[..],
        br#""sourcesContent""#,
        br#""debugId""#,
    ];
    has_one.into_iter().any(name) || name(br#""version""#) && name(br#""sources""#)
}

fn listed(map: Fields) -> Result<Found, Unusable> {
    let (id, other) = match (map.id, map.older_id) {
        (Some(id), older) => (id.clone(), older.filter(|older| *older != id)),
        (None, Some(older)) => (older, None),
        (None, None) => return Err(Unusable::NoDebugId("source map")),
    };
    if !map.has_places {
        return Err(Unusable::Damaged("it has no `mappings`".to_owned()));
    }
    let mut found = found(0, &id, map.file);
    found.warnings.extend(other.map(|other| {
        format!(
            "the source map has two ids: `debugId` {id}, which counts, and `debug_id` {other}. Frames with the second one do not find it. Let \
             only one tool write the id"
        )
    }));
    Ok(found)
}

/// Checks the places of a source map by itself. Those of a bundle are checked when it is converted.
pub(crate) fn check_places(data: &[u8]) -> Result<(), Unusable> {
    if !is_alone(data) {
        return Ok(());
    }
    let decoded = decode(json_of(data)).map_err(|error| match error {
        ConvertError::Unusable(unusable) => unusable,
        ConvertError::Damaged(reason) => Unusable::Damaged(reason),
        other => Unusable::Damaged(other.to_string()),
    });
    decoded.map(drop)
}

fn found(index: u32, id: &SymbolId, name: String) -> Found {
    Found {
        index,
        format: Format::SourceMap,
        ids: vec![id.as_str().to_owned()],
        arch: String::new(),
        name,
        contents: Contents {
            functions: true,
            lines: true,
        },
        is_id_computed: false,
        needs: None,
        warnings: Vec::new(),
    }
}

pub(crate) fn convert(data: &[u8], index: u32, out: &mut dyn Write) -> Result<(), ConvertError> {
    if is_alone(data) {
        return write("", json_of(data), out);
    }
    let mut bundle = Bundle::open(data)?;
    let map = bundle
        .maps()
        .into_iter()
        .nth(index as usize)
        .ok_or(ConvertError::NoSuchBuild(index))?;
    let source_map = bundle.read(&map.path, MAX_CONTENT_BYTES)?;
    // Names of functions come from the script; lines do not need it.
    let script = match map.script {
        Some(script) => bundle.read(&script, MAX_CONTENT_BYTES)?,
        None => Vec::new(),
    };
    let script = String::from_utf8_lossy(&script);
    write(&script, json_of(&source_map), out)
}

/// The places of a source map, or of the parts that it consists of.
#[derive(Debug, Deserialize)]
struct Mappings<'m> {
    #[serde(borrow, default)]
    mappings: Option<Cow<'m, str>>,
    #[serde(borrow, default)]
    sections: Option<Vec<Section<'m>>>,
}

#[derive(Debug, Deserialize)]
struct Section<'m> {
    #[serde(borrow)]
    map: Option<Box<Mappings<'m>>>,
}

impl Mappings<'_> {
    fn count(&self) -> usize {
        let separators = |byte: &u8| matches!(byte, b',' | b';');
        let mappings = self.mappings.as_deref().unwrap_or_default();
        let own = mappings.bytes().filter(separators).count();
        self.parts()
            .map(Self::count)
            .fold(own, usize::saturating_add)
    }

    /// Whether this map or a part of it has places and an empty list of sections. The reader takes such a map for one of parts, so its own
    /// places would be lost.
    fn would_lose_places(&self) -> bool {
        let has_no_parts = self.sections.as_ref().is_some_and(Vec::is_empty);
        (has_no_parts && self.mappings.is_some()) || self.parts().any(Self::would_lose_places)
    }

    fn parts(&self) -> impl Iterator<Item = &Self> {
        let sections = self.sections.iter().flatten();
        sections.filter_map(|section| section.map.as_deref())
    }
}

/// Reads the places, undecoded. Refuses a source map with more of them than the maximum.
fn mappings_of(map: &str, max: usize) -> Result<Mappings<'_>, ConvertError> {
    let mappings: Mappings<'_> =
        serde_json::from_str(map).map_err(|error| ConvertError::damaged(&error))?;
    if mappings.count() > max {
        return Err(ConvertError::Damaged(format!(
            "the source map has more than {max} places"
        )));
    }
    Ok(mappings)
}

/// Decodes a map. What other tools write in an odd way is decoded after it is put straight, which takes more memory.
fn decode(json: &[u8]) -> Result<DecodedMap, ConvertError> {
    let text = std::str::from_utf8(json).map_err(|error| ConvertError::damaged(&error));
    text.and_then(decode_regular).or_else(|_odd| {
        let json = normalized(json).map_err(|error| ConvertError::damaged(&error))?;
        decode_regular(&json)
    })
}

fn decode_regular(json: &str) -> Result<DecodedMap, ConvertError> {
    if mappings_of(json, MAX_MAPPINGS)?.would_lose_places() {
        return Err(ConvertError::Damaged(
            "a list of sections is empty, although its map has `mappings`".to_owned(),
        ));
    }
    let decoded = sourcemap::decode_slice(json.as_bytes());
    let decoded = match decoded.map_err(|error| ConvertError::damaged(&error))? {
        DecodedMap::Index(parts) if !is_within_limits(&parts, (0, 0)) => {
            return Err(ConvertError::Damaged(
                "a section begins at a line or column that is too large".to_owned(),
            ));
        }
        DecodedMap::Index(parts) => parts.flatten().map(DecodedMap::Regular),
        whole => Ok(whole),
    };
    decoded.map_err(|error| ConvertError::damaged(&error))
}

/// Whether all lines and columns are still numbers of 32 bits when the sections, which begin at this line and column, are put together.
fn is_within_limits(parts: &SourceMapIndex, (line, column): (u32, u32)) -> bool {
    parts.sections().all(|section| {
        let (own_line, own_column) = section.get_offset();
        let start = line
            .checked_add(own_line)
            .zip(column.checked_add(own_column));
        start.is_some_and(|start| match section.get_sourcemap() {
            Some(DecodedMap::Index(parts)) => is_within_limits(parts, start),
            Some(DecodedMap::Regular(map)) => is_map_within_limits(map, start),
            Some(DecodedMap::Hermes(map)) => is_map_within_limits(map, start),
            None => true,
        })
    })
}

fn is_map_within_limits(map: &SourceMap, (line, column): (u32, u32)) -> bool {
    map.tokens().all(|token| {
        let (in_line, in_column) = token.get_dst();
        line.checked_add(in_line).is_some() && column.checked_add(in_column).is_some()
    })
}

fn write(script: &str, json: &[u8], out: &mut dyn Write) -> Result<(), ConvertError> {
    let map = decode(json)?;
    let places = match &map {
        DecodedMap::Regular(places) => places,
        DecodedMap::Hermes(places) => places,
        DecodedMap::Index(_) => {
            return Err(ConvertError::Damaged(
                "its parts have parts of their own".to_owned(),
            ));
        }
    };
    let functions = Functions::of(script, &map, places)?;
    let mut writer = PlaceWriter::default();
    for token in places.tokens() {
        let original = token.get_source().map(|file| Original {
            file,
            line: token.get_src_line(),
            function: functions.around(&token),
        });
        writer.add(token.get_dst(), original.as_ref());
    }
    writer.write(&mut &mut *out)?;
    Ok(())
}

/// Tells the functions around the places of a map.
enum Functions<'m> {
    /// The map lists the functions, as those for Hermes do.
    Listed(&'m SourceMapHermes),
    InScript(Scopes),
    /// There is no script that can be read. The functions are those of the sources in the map.
    InSources(Vec<Scopes>),
}

impl<'m> Functions<'m> {
    fn of(script: &str, map: &'m DecodedMap, places: &SourceMap) -> Result<Self, ConvertError> {
        if let DecodedMap::Hermes(map) = map {
            return Ok(Self::Listed(map));
        }
        let in_script = Scopes::of_script(script, map)?;
        if !in_script.is_empty() {
            return Ok(Self::InScript(in_script));
        }
        let sources = places.source_contents();
        let sources = sources.map(|source| Scopes::of_source(source.unwrap_or_default()));
        Ok(Self::InSources(sources.collect::<Result<_, _>>()?))
    }

    fn around(&self, token: &Token<'_>) -> Function<'_> {
        match self {
            Self::Listed(map) => match map.get_scope_for_token(*token) {
                None | Some("" | GLOBAL) => Function::Unknown,
                Some(ANONYMOUS) => Function::Anonymous,
                Some(name) => Function::Named(name),
            },
            Self::InScript(scopes) => scopes.at(token.get_dst_line(), token.get_dst_col()),
            Self::InSources(sources) => sources
                .get(token.get_src_id() as usize)
                .map_or(Function::Unknown, |source| {
                    source.at(token.get_src_line(), token.get_src_col())
                }),
        }
    }
}

/// Returns the location of a line (from 1) and a column (from 1) of a script.
pub(crate) fn lookup(
    places: &Places<'_>,
    line: u32,
    column: u32,
    reported: &str,
) -> Option<Location> {
    let original = places.find(line.checked_sub(1)?, column.checked_sub(1)?)?;
    let has_name = is_name(reported);
    let function = match original.function {
        Function::Named(name) => name,
        Function::Written(name) if !has_name => name,
        Function::Anonymous if !has_name => ANONYMOUS,
        Function::Written(_) | Function::Anonymous | Function::Unknown => reported,
    };
    Some(Location {
        class: String::new(),
        function: function.to_owned(),
        file: original.file.to_owned(),
        line: original.line.saturating_add(1),
        origin: Origin::Called,
        alternative: 0,
    })
}

fn is_name(reported: &str) -> bool {
    !reported.is_empty() && !reported.ends_with(ANONYMOUS) && !UNNAMED.contains(&reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_maps_with_too_many_places_are_refused() {
        let map = r#"{"mappings":"AAAA,AACA;AACA;"}"#;
        let parts = format!(r#"{{"sections":[{{"map":{map}}},{{"map":{map}}}]}}"#);
        assert!(mappings_of(map, 3).is_ok() && mappings_of(&parts, 6).is_ok());
        for (map, max) in [(map, 2), (&parts, 5)] {
            let refused = mappings_of(map, max).unwrap_err().to_string();
            assert!(refused.contains("more than"), "{refused}");
        }
    }

    #[test]
    fn places_beside_an_empty_list_of_sections_are_kept() {
        let map =
            r#"{"version":3,"sources":["cart.ts"],"names":[],"mappings":"AAAA","sections":[]}"#;
        let offset = r#"{"line":0,"column":0}"#;
        let around = |map: &str| {
            format!(r#"{{"version":3,"sections":[{{"offset":{offset},"map":{map}}}]}}"#)
        };
        for map in [map, &around(map)] {
            match decode(map.as_bytes()).unwrap() {
                DecodedMap::Regular(places) => assert_eq!(places.get_token_count(), 1, "{map}"),
                other => panic!("{map}: {other:?}"),
            }
        }
    }
}
