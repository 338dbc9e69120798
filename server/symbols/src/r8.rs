//! R8 and `ProGuard`: obfuscated classes, methods and lines to the original ones.

mod mapping;
mod retrace;
mod source_file;
mod tables;

use std::io::Write;

use proguard::{ProguardMapping, ProguardRecord};
use sha2::{Digest, Sha256};

pub(crate) use self::retrace::retrace;
pub(crate) use self::tables::Tables;
use crate::error::ConvertError;
use crate::{Contents, Format, Found, SymbolId};

/// R8 writes this and the mapping's id as the source file of every class, unless the app keeps the original names of files.
/// What R8 writes as the source file of each class, before the id of the mapping.
pub const SOURCE_FILE_PREFIX: &str = "r8-map-id-";

/// Returns the id of the mapping that R8 wrote into a frame in place of the source file.
#[must_use]
pub fn map_id_of(file: &str) -> Option<SymbolId> {
    SymbolId::parse(file.strip_prefix(SOURCE_FILE_PREFIX)?)
}

/// Whether a file begins as mappings of R8 do, although it may be damaged.
pub(crate) fn is_meant_as_mapping(data: &[u8]) -> bool {
    let starts = [&b"# compiler: R8"[..], b"# pg_map_id: "];
    let first = mapping::lines(data).next().unwrap_or_default();
    starts.iter().any(|start| first.starts_with(start))
}

pub(crate) fn is_mapping(data: &[u8]) -> bool {
    // Mappings are text. Without this check, a class could be found in the middle of a picture.
    let start = data.get(..data.len().min(4096)).unwrap_or_default();
    if start.contains(&0) {
        return false;
    }
    let is_comment = |line: &&[u8]| line.trim_ascii_start().starts_with(b"#");
    let first = mapping::lines(data).find(|line| !is_comment(line));
    let first = first.map(ProguardRecord::try_parse);
    matches!(first, Some(Ok(ProguardRecord::Class { .. })))
}

/// The ids of a mapping: those that R8 writes into the header, as devices send them, and the one that `sentry-cli` computes from the
/// content.
pub(crate) fn inspect(data: &[u8]) -> Found {
    let mut ids: Vec<String> = Vec::new();
    // The header is at the top.
    for line in mapping::lines(data).take(50) {
        let Ok(ProguardRecord::Header { key, value }) = ProguardRecord::try_parse(line) else {
            continue;
        };
        let id = match (key, value) {
            ("pg_map_id", Some(value)) => SymbolId::parse(value),
            ("pg_map_hash", Some(value)) => SymbolId::parse(value.trim_start_matches("SHA-256 ")),
            _ => None,
        };
        if let Some(id) = id.filter(|id| !ids.iter().any(|known| known == id.as_str())) {
            ids.push(id.as_str().to_owned());
        }
    }
    ids.push(ProguardMapping::new(data).uuid().simple().to_string());
    let has_lines = mapping::lines(data).any(|line| {
        let record = ProguardRecord::try_parse(line);
        matches!(
            record,
            Ok(ProguardRecord::Method {
                line_mapping: Some(_),
                ..
            })
        )
    });
    Found {
        index: 0,
        format: Format::R8,
        ids,
        arch: String::new(),
        name: String::new(),
        contents: Contents {
            functions: true,
            lines: has_lines,
        },
        is_id_computed: false,
        needs: None,
        warnings: warnings(data, has_lines),
    }
}

/// Says what is wrong with a mapping, and what to do.
fn warnings(data: &[u8], has_lines: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_changed(data) {
        warnings.push(
            "the mapping was changed or cut off after R8 wrote it, so names may be wrong or missing. Upload the file that the build wrote"
                .to_owned(),
        );
    }
    if mapping::has_repetitions(data) {
        warnings.push(
            "the mapping names functions that are inlined into each other several times, so another tool wrote it. Each of them becomes one frame"
                .to_owned(),
        );
    }
    if !has_lines {
        warnings.push(
            "the mapping has no lines. Keep them with `-keepattributes SourceFile,LineNumberTable`"
                .to_owned(),
        );
    }
    warnings
}

/// Whether the content differs from that whose hash R8 wrote into the header. R8 hashes everything below the line of the hash.
fn is_changed(data: &[u8]) -> bool {
    let mut rest = data;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = rest.split_at(end + 1);
        rest = after;
        let line = line.trim_ascii();
        let Some(comment) = line.strip_prefix(b"#") else {
            if line.is_empty() {
                continue;
            }
            return false;
        };
        let hash = comment.trim_ascii().strip_prefix(b"pg_map_hash: SHA-256 ");
        if let Some(hash) = hash {
            return format!("{:x}", Sha256::digest(rest)).as_bytes() != hash.trim_ascii();
        }
    }
    false
}

pub(crate) fn convert(data: &[u8], out: &mut dyn Write) -> Result<(), ConvertError> {
    mapping::read(data).write(out)?;
    Ok(())
}
