//! Native code: addresses to functions.

use std::io::Write;

use symbolic::debuginfo::Archive;
use symbolic::symcache::{SymCache, SymCacheConverter};

use crate::convert::ConvertError;
use crate::names::readable;
use crate::{Location, MAX_LOCATIONS, Origin};

pub(crate) fn convert(data: &[u8], index: u32, out: &mut dyn Write) -> Result<(), ConvertError> {
    let archive = Archive::parse(data).map_err(|error| ConvertError::damaged(&error))?;
    let object = archive
        .object_by_index(index as usize)
        .map_err(|error| ConvertError::damaged(&error))?
        .ok_or(ConvertError::NoSuchBuild(index))?;
    let mut converter = SymCacheConverter::new();
    converter
        .process_object(&object)
        .map_err(|error| ConvertError::damaged(&error))?;
    converter.serialize(&mut &mut *out)?;
    Ok(())
}

/// Returns the functions at an offset, innermost first: the inlined ones, then the one they were inlined into.
pub(crate) fn lookup(symbols: &SymCache<'_>, offset: u64) -> Vec<Location> {
    let mut locations: Vec<Location> = symbols
        .lookup(offset)
        .take(MAX_LOCATIONS)
        .map(|location| {
            let name = readable(&location.function().name_for_demangling());
            Location {
                class: name.class,
                function: name.function,
                file: location
                    .file()
                    .map(|file| file.full_path())
                    .unwrap_or_default(),
                line: location.line(),
                origin: Origin::Inlined,
            }
        })
        .collect();
    if let Some(outermost) = locations.last_mut() {
        outermost.origin = Origin::Called;
    }
    locations
}
