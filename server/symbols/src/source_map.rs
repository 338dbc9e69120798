//! JavaScript: places in minified scripts, and offsets in Hermes bytecode, to the original source.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};

use serde::Deserialize;
use symbolic::sourcemapcache::{
    ScopeLookupResult, SourceMapCache, SourceMapCacheWriter, SourcePosition,
};
use zip::ZipArchive;

use crate::convert::ConvertError;
use crate::inspect::{Unusable, causes};
use crate::{Contents, Format, Found, Location, Origin, SymbolId};

/// The maximum number of places in a source map. Those of large apps have some million.
const MAX_MAPPINGS: usize = 10_000_000;
/// The maximum size of the list of files of a bundle. An entry has some hundred bytes.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;
/// The maximum size of a script or source map in a bundle, after decompression.
const MAX_CONTENT_BYTES: u64 = 512 << 20;

/// The keys of a source map that matter here.
#[derive(Deserialize)]
struct SourceMap {
    #[serde(alias = "debugId")]
    debug_id: Option<String>,
    file: Option<String>,
}

pub(crate) fn is_source_map(data: &[u8]) -> bool {
    let first = data.iter().find(|byte| !byte.is_ascii_whitespace());
    first == Some(&b'{') && serde_json::from_slice::<SourceMap>(data).is_ok()
}

/// A source map by itself, with a debug id, as bundlers write it.
pub(crate) fn inspect(data: &[u8]) -> Result<Found, Unusable> {
    let map: SourceMap =
        serde_json::from_slice(data).map_err(|error| Unusable::Damaged(error.to_string()))?;
    let id = map.debug_id.as_deref().and_then(SymbolId::parse);
    let id = id.ok_or_else(|| {
        Unusable::SourceMaps(
            "the source map has no debug id. Run `sentry-cli sourcemaps inject` on the folder before the upload"
                .to_owned(),
        )
    })?;
    Ok(found(0, &id, map.file.unwrap_or_default()))
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

/// A bundle of scripts and their source maps. Only scripts with a debug id and a source map count.
pub(crate) fn inspect_bundle(data: &[u8]) -> Result<Vec<Found>, Unusable> {
    let maps = Bundle::open(data)?.maps();
    if maps.is_empty() {
        return Err(Unusable::SourceMaps(
            "the bundle has no source map with a debug id. Run `sentry-cli sourcemaps inject` on the folder before the upload"
                .to_owned(),
        ));
    }
    Ok((0_u32..)
        .zip(maps)
        .map(|(index, map)| found(index, &map.id, map.url))
        .collect())
}

/// A ZIP archive with a manifest.
struct Bundle<'d> {
    archive: ZipArchive<Cursor<&'d [u8]>>,
    manifest: Manifest,
}

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    files: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl Entry {
    fn id(&self) -> Option<SymbolId> {
        let header = |(name, _): &(&String, &String)| name.eq_ignore_ascii_case("debug-id");
        SymbolId::parse(self.headers.iter().find(header)?.1)
    }
}

/// A source map of a bundle, and the script it belongs to.
struct Map {
    id: SymbolId,
    url: String,
    path: String,
    script: Option<String>,
}

impl<'d> Bundle<'d> {
    fn open(data: &'d [u8]) -> Result<Self, Unusable> {
        let damaged = |error: &dyn std::error::Error| Unusable::Damaged(causes(error));
        let archive = ZipArchive::new(Cursor::new(data)).map_err(|error| damaged(&error))?;
        let manifest = Manifest {
            files: BTreeMap::new(),
        };
        let mut bundle = Self { archive, manifest };
        let manifest = bundle.read("manifest.json", MAX_MANIFEST_BYTES)?;
        bundle.manifest = serde_json::from_str(&manifest).map_err(|error| damaged(&error))?;
        Ok(bundle)
    }

    /// Reads a file of the archive. The size that the archive declares may be a lie.
    fn read(&mut self, path: &str, max_bytes: u64) -> Result<String, Unusable> {
        let damaged = |error: &dyn std::error::Error| {
            Unusable::Damaged(format!("{path} in the bundle: {}", causes(error)))
        };
        let file = self
            .archive
            .by_name(path)
            .map_err(|error| damaged(&error))?;
        let mut content = String::new();
        file.take(max_bytes + 1)
            .read_to_string(&mut content)
            .map_err(|error| damaged(&error))?;
        if content.len() as u64 > max_bytes {
            return Err(Unusable::SourceMaps(format!(
                "{path} in the bundle is larger than {} MiB",
                max_bytes >> 20
            )));
        }
        Ok(content)
    }

    /// Returns the source maps with a debug id, by id.
    fn maps(&self) -> Vec<Map> {
        let of_kind = |kind: &'static str| {
            let files = self.manifest.files.iter();
            files.filter_map(move |(path, entry)| {
                let id = (entry.kind == kind).then(|| entry.id())??;
                Some((id, path, entry))
            })
        };
        let mut scripts = BTreeMap::new();
        for (id, path, entry) in of_kind("minified_source") {
            scripts.entry(id).or_insert((path, entry));
        }
        let mut maps = BTreeMap::new();
        for (id, path, entry) in of_kind("source_map") {
            let script = scripts.get(&id);
            let map = Map {
                id: id.clone(),
                url: script.map_or(&entry.url, |(_, script)| &script.url).clone(),
                path: path.clone(),
                script: script.map(|(path, _)| (*path).clone()),
            };
            maps.insert(id, map);
        }
        maps.into_values().collect()
    }
}

pub(crate) fn convert(data: &[u8], index: u32, out: &mut dyn Write) -> Result<(), ConvertError> {
    if is_source_map(data) {
        let map = std::str::from_utf8(data).map_err(|error| ConvertError::damaged(&error))?;
        return write("", map, out);
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
        None => String::new(),
    };
    write(&script, &source_map, out)
}

/// The places of a source map, or of the parts that it consists of.
#[derive(Deserialize)]
struct Mappings<'m> {
    #[serde(borrow, default)]
    mappings: Cow<'m, str>,
    #[serde(borrow, default)]
    sections: Vec<Section<'m>>,
}

#[derive(Deserialize)]
struct Section<'m> {
    #[serde(borrow)]
    map: Option<Box<Mappings<'m>>>,
}

impl Mappings<'_> {
    fn count(&self) -> usize {
        let separators = |byte: &u8| matches!(byte, b',' | b';');
        let own = self.mappings.bytes().filter(separators).count();
        let sections = self
            .sections
            .iter()
            .filter_map(|section| section.map.as_ref());
        sections
            .map(|map| map.count())
            .fold(own, usize::saturating_add)
    }
}

/// Refuses a source map with more places than the maximum.
fn check_size(map: &str, max: usize) -> Result<(), ConvertError> {
    let mappings: Mappings<'_> =
        serde_json::from_str(map).map_err(|error| ConvertError::damaged(&error))?;
    if mappings.count() > max {
        return Err(ConvertError::Damaged(format!(
            "the source map has more than {max} places"
        )));
    }
    Ok(())
}

fn write(script: &str, map: &str, out: &mut dyn Write) -> Result<(), ConvertError> {
    check_size(map, MAX_MAPPINGS)?;
    let writer =
        SourceMapCacheWriter::new(script, map).map_err(|error| ConvertError::damaged(&error))?;
    writer.serialize(&mut &mut *out)?;
    Ok(())
}

/// Returns the location of a line (from 1) and a column (from 1) of a script.
pub(crate) fn lookup(
    cache: &SourceMapCache<'_>,
    line: u32,
    column: u32,
    minified: &str,
) -> Option<Location> {
    let position = SourcePosition::new(line.checked_sub(1)?, column.checked_sub(1)?);
    let location = cache.lookup(position)?;
    let function = match location.scope() {
        ScopeLookupResult::NamedScope(name) => name,
        ScopeLookupResult::AnonymousScope => "<anonymous>",
        ScopeLookupResult::Unknown => location.name().unwrap_or(minified),
    };
    Some(Location {
        class: String::new(),
        function: function.to_owned(),
        file: location.file_name().unwrap_or_default().to_owned(),
        // The cache counts from 0.
        line: location.line().saturating_add(1),
        origin: Origin::Called,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_maps_with_too_many_places_are_refused() {
        let map = r#"{"mappings":"AAAA,AACA;AACA;"}"#;
        let parts = format!(r#"{{"sections":[{{"map":{map}}},{{"map":{map}}}]}}"#);
        assert!(check_size(map, 3).is_ok() && check_size(&parts, 6).is_ok());
        for (map, max) in [(map, 2), (&parts, 5)] {
            let refused = check_size(map, max).unwrap_err().to_string();
            assert!(refused.contains("more than"), "{refused}");
        }
    }

    #[test]
    fn large_files_in_a_bundle_are_refused_whatever_it_declares() {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file("manifest.json", options).unwrap();
        let manifest = format!(r#"{{"files":{{}}{}}}"#, " ".repeat(100_000));
        zip.write_all(manifest.as_bytes()).unwrap();
        let mut data = zip.finish().unwrap().into_inner();
        assert!(data.len() < 1_000);
        for entry in [&b"PK\x01\x02"[..], b"PK\x03\x04"] {
            // The size before compression is at 24 in the central directory, at 22 in front of the file.
            let at = data.windows(4).position(|bytes| bytes == entry).unwrap();
            let at = at + if entry == b"PK\x01\x02" { 24 } else { 22 };
            data[at..at + 4].copy_from_slice(&9_u32.to_le_bytes());
        }
        if let Ok(mut bundle) = Bundle::open(&data) {
            let refused = bundle.read("manifest.json", 50_000);
            assert!(refused.is_err());
        }
    }
}
