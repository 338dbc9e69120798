//! Lists what is in a symbol file.

use symbolic::debuginfo::{Archive, FileFormat};

use crate::error::Unusable;
use crate::found::{Format, Found, MAX_FOUND};
use crate::{native, r8, source_map, start};

/// Lists the builds that a file belongs to.
pub fn inspect(data: &[u8]) -> Result<Vec<Found>, Unusable> {
    let found = list(data)?;
    // Otherwise, the uploader would hear of wrong places only when a frame needs them.
    if found.iter().any(|found| found.format == Format::SourceMap) {
        source_map::check_places(data)?;
    }
    Ok(found)
}

/// Like [`inspect`], but does not decode the places of source maps, which their conversion does.
pub(crate) fn list(data: &[u8]) -> Result<Vec<Found>, Unusable> {
    let found = match Archive::peek(data) {
        FileFormat::Unknown if r8::is_mapping(data) => vec![r8::inspect(data)],
        FileFormat::Unknown if let Some(found) = source_map::list(data) => vec![found?],
        FileFormat::Unknown if r8::is_meant_as_mapping(data) => {
            return Err(Unusable::Damaged(
                "it has the header of a mapping of R8, but no class follows".to_owned(),
            ));
        }
        FileFormat::SourceBundle => source_map::list_bundle(data)?,
        FileFormat::PortablePdb => return Err(Unusable::Portable),
        FileFormat::Unknown => return Err(start::unknown(data)),
        _ => native::inspect(data)?,
    };
    match found.len() {
        0 => Err(Unusable::Empty),
        1..=MAX_FOUND => Ok(found),
        _ => Err(Unusable::TooMany(MAX_FOUND)),
    }
}
