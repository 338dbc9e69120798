//! Reads arbitrary source maps and bundles of them. Run with `cargo +nightly fuzz run source_maps <folder of inputs>` in
//! `server/symbols`.
//!
//! If the input begins with `B`, the rest is put into a bundle, so that the fuzzer does not need to find out about ZIP: the manifest,
//! a source map and a script, separated by zero bytes. Else the input is the file.
#![no_main]

use std::io::{Cursor, Write};

use libfuzzer_sys::fuzz_target;
use unjank_symbols::{LookupFile, LookupKind, convert, inspect};
use zip::write::{SimpleFileOptions, ZipWriter};

/// Bundles begin with this and a version, then follows the ZIP archive.
const MAGIC: &[u8] = b"SYSB\x02\x00\x00\x00";

fn bundle(parts: &[u8]) -> Vec<u8> {
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut out = Cursor::new(MAGIC.to_vec());
    out.set_position(MAGIC.len() as u64);
    let mut archive = ZipWriter::new(out);
    let names = ["manifest.json", "files/a.js.map", "files/a.js"];
    for (name, part) in names.iter().zip(parts.split(|byte| *byte == 0)) {
        archive
            .start_file(*name, options)
            .expect("memory is writable");
        archive.write_all(part).expect("memory is writable");
    }
    archive.finish().expect("memory is writable").into_inner()
}

fuzz_target!(|data: &[u8]| {
    let bundled = data.strip_prefix(b"B").map(bundle);
    let file = bundled.as_deref().unwrap_or(data);
    let Ok(found) = inspect(file) else {
        return;
    };
    for build in found.iter().take(4) {
        let mut converted = Vec::new();
        let kind = LookupKind::from(build.format);
        if kind != LookupKind::JavaScript || convert(file, build.index, &mut converted).is_err() {
            continue;
        }
        let lookup = LookupFile::from_bytes(&converted, kind).expect("a converted file opens");
        for place in [0, 1, 2, 7, 100, u32::MAX] {
            let _ = lookup.java_script(1, place, "a");
            let _ = lookup.java_script(place, 1, "a");
        }
    }
});
