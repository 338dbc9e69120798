//! Bundles of scripts, as `sentry-cli` writes them.

use std::io::{Cursor, Write};

use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

/// Bundles begin with this and a version, then follows the ZIP archive.
const MAGIC: &[u8] = b"SYSB\x02\x00\x00\x00";

/// Bundles scripts with their source maps: URL, script, source map. The debug ids are the numbers from 1.
pub(crate) fn of(scripts: &[(&str, &str, &str)]) -> Vec<u8> {
    let mut files = serde_json::Map::new();
    let mut contents = Vec::new();
    for (number, (url, script, map)) in (1_u32..).zip(scripts) {
        let id = format!("00000000-0000-0000-0000-{number:012}");
        let url = format!("~/{url}");
        let headers = |reference: &str| serde_json::json!({"debug-id": id, "sourcemap": reference});
        let path = format!("files/{number}.js");
        let kind =
            serde_json::json!({"type": "minified_source", "url": url, "headers": headers("a.map")});
        files.insert(path.clone(), kind);
        contents.push((path, *script));
        let path = format!("files/{number}.js.map");
        let kind = serde_json::json!({"type": "source_map", "url": format!("{url}.map"), "headers": headers("")});
        files.insert(path.clone(), kind);
        contents.push((path, *map));
    }
    let manifest = serde_json::json!({ "files": files }).to_string();
    contents.push(("manifest.json".to_owned(), &manifest));
    zipped(&contents)
}

/// Zips files.
pub(crate) fn zipped(files: &[(String, &str)]) -> Vec<u8> {
    let mut out = Cursor::new(MAGIC.to_vec());
    out.set_position(MAGIC.len() as u64);
    let mut archive = ZipWriter::new(out);
    for (path, content) in files {
        // Compression of thousands of small files takes long in debug builds.
        let method = match content.len() {
            0..=4096 => CompressionMethod::Stored,
            _ => CompressionMethod::Deflated,
        };
        let options = SimpleFileOptions::default().compression_method(method);
        archive.start_file(path.as_str(), options).unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}
