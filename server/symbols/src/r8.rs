//! R8 and `ProGuard`: obfuscated classes, methods and lines to the original ones.

use std::io::Write;

use proguard::{ProguardCache, ProguardMapping, ProguardRecord, StackFrame};

use crate::convert::ConvertError;
use crate::{Contents, Format, Found, JavaFrame, Location, MAX_LOCATIONS, Origin, SymbolId};

/// R8 writes this and the mapping's id as the source file of every class, unless the app keeps the original names of files.
const SOURCE_FILE_PREFIX: &str = "r8-map-id-";

/// Returns the id of the mapping that R8 wrote into a frame in place of the source file.
#[must_use]
pub fn map_id_of(file: &str) -> Option<SymbolId> {
    SymbolId::parse(file.strip_prefix(SOURCE_FILE_PREFIX)?)
}

pub(crate) fn is_mapping(data: &[u8]) -> bool {
    // Mappings are text. Without this check, a class could be found in the middle of a picture.
    let start = data.get(..data.len().min(4096)).unwrap_or_default();
    !start.contains(&0) && ProguardMapping::new(data).is_valid()
}

/// The ids of a mapping: the one that `sentry-cli` computes from the content, and those that R8 writes into the header.
pub(crate) fn inspect(data: &[u8]) -> Found {
    let mapping = ProguardMapping::new(data);
    let mut ids = vec![mapping.uuid().simple().to_string()];
    // The header is at the top.
    for record in mapping.iter().take(50) {
        let Ok(ProguardRecord::Header { key, value }) = record else {
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
    Found {
        index: 0,
        format: Format::R8,
        ids,
        arch: String::new(),
        name: String::new(),
        contents: Contents {
            functions: true,
            lines: mapping.has_line_info(),
        },
    }
}

pub(crate) fn convert(data: &[u8], out: &mut dyn Write) -> Result<(), ConvertError> {
    let mapping = ProguardMapping::new(data);
    ProguardCache::write(&mapping, &mut &mut *out)?;
    Ok(())
}

/// Returns the locations of each frame, innermost first. A frame that R8 added (an outline) has none. A frame that the mapping does not
/// know is `None`.
///
/// `thrown` is the class of the exception, obfuscated, if the stack is that of an exception: some inlined code shows only in these.
pub(crate) fn retrace<'a>(
    cache: &'a ProguardCache<'a>,
    frames: &[JavaFrame<'a>],
    thrown: Option<&str>,
) -> Vec<Option<Vec<Location>>> {
    let descriptor = thrown.map(|class| {
        let class = cache.remap_class(class).unwrap_or(class);
        format!("L{};", class.replace('.', "/"))
    });
    let mut outline = None;
    let mut may_rewrite = descriptor.is_some();
    let mut all = Vec::with_capacity(frames.len());
    for frame in frames {
        let line = usize::try_from(frame.line).unwrap_or_default();
        let obfuscated = StackFrame::with_file(frame.class, frame.function, line, frame.file);
        let remapped = cache.remap_frame_with_context(
            &obfuscated,
            descriptor.as_deref(),
            may_rewrite,
            &mut outline,
        );
        let Some(remapped) = remapped else {
            all.push(Some(Vec::new()));
            continue;
        };
        may_rewrite = false;
        let had_mappings = remapped.had_mappings();
        let mut locations: Vec<Location> = remapped.take(MAX_LOCATIONS).map(location).collect();
        if locations.is_empty() && !had_mappings {
            all.push(None);
            continue;
        }
        // Without a line, the mapping lists every method that got this name.
        let others = match line {
            0 => Origin::Ambiguous,
            _ => Origin::Inlined,
        };
        let last = locations.len().saturating_sub(1);
        for (place, location) in locations.iter_mut().enumerate() {
            if place < last || (others == Origin::Ambiguous && last > 0) {
                location.origin = others;
            }
        }
        all.push(Some(locations));
    }
    all
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "an iterator hands over its items"
)]
fn location(frame: StackFrame<'_>) -> Location {
    Location {
        class: frame.class().to_owned(),
        function: frame.method().to_owned(),
        file: frame.file().unwrap_or_default().to_owned(),
        line: frame
            .line()
            .and_then(|line| u32::try_from(line).ok())
            .unwrap_or_default(),
        origin: Origin::Called,
    }
}
