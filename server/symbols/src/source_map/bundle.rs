//! Bundles of scripts and their source maps: ZIP archives with a manifest, as upload tools write them.

use std::collections::BTreeMap;
use std::io::{Cursor, ErrorKind, Read};

use serde::Deserialize;
use zip::ZipArchive;

use super::found;
use crate::error::{Unusable, causes};
use crate::{Found, SymbolId};

/// The maximum size of the list of files of a bundle. An entry has some hundred bytes.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// A bundle of scripts and their source maps. Only scripts with a debug id and a source map count.
pub(crate) fn inspect(data: &[u8]) -> Result<Vec<Found>, Unusable> {
    let maps = Bundle::open(data)?.maps();
    if maps.is_empty() {
        return Err(Unusable::NoDebugId("bundle"));
    }
    Ok((0_u32..)
        .zip(maps)
        .map(|(index, map)| found(index, &map.id, map.url))
        .collect())
}

/// A ZIP archive with a manifest.
pub(super) struct Bundle<'d> {
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
pub(super) struct Map {
    id: SymbolId,
    url: String,
    pub(super) path: String,
    pub(super) script: Option<String>,
}

impl<'d> Bundle<'d> {
    pub(super) fn open(data: &'d [u8]) -> Result<Self, Unusable> {
        let damaged = |error: &dyn std::error::Error| Unusable::Damaged(causes(error));
        let archive = ZipArchive::new(Cursor::new(data)).map_err(|error| damaged(&error))?;
        let manifest = Manifest {
            files: BTreeMap::new(),
        };
        let mut bundle = Self { archive, manifest };
        let manifest = bundle.read("manifest.json", MAX_MANIFEST_BYTES)?;
        bundle.manifest = serde_json::from_slice(&manifest).map_err(|error| damaged(&error))?;
        Ok(bundle)
    }

    /// Reads a file of the archive. The size that the archive declares may be a lie.
    pub(super) fn read(&mut self, path: &str, max_bytes: u64) -> Result<Vec<u8>, Unusable> {
        let damaged = |error: &dyn std::error::Error| {
            Unusable::Damaged(format!("{path} in the bundle: {}", causes(error)))
        };
        let file = self
            .archive
            .by_name(path)
            .map_err(|error| damaged(&error))?;
        let mut content = Vec::new();
        let read = file.take(max_bytes + 1).read_to_end(&mut content);
        read.map_err(|error| match error.kind() {
            ErrorKind::OutOfMemory => {
                Unusable::SourceMaps(format!("{path} in the bundle does not fit in memory"))
            }
            _ => damaged(&error),
        })?;
        if content.len() as u64 > max_bytes {
            return Err(Unusable::SourceMaps(format!(
                "{path} in the bundle is larger than {} MiB",
                max_bytes >> 20
            )));
        }
        Ok(content)
    }

    /// Returns the source maps with a debug id, by id.
    pub(super) fn maps(&self) -> Vec<Map> {
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

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
