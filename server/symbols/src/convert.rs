//! Converts symbol files to lookup files.

use std::io::Write;

use crate::error::ConvertError;
use crate::inspect::list;
use crate::seal::Sealing;
use crate::{Format, native, r8, source_map};

/// Writes one build of a file in the form that a [`LookupFile`](crate::LookupFile) searches.
///
/// Functions get no names if only another file that this file [needs](crate::Found::needs) has them. [`convert_with`] reads both files.
pub fn convert(data: &[u8], index: u32, out: &mut dyn Write) -> Result<(), ConvertError> {
    write(data, index, None, out)
}

/// Like [`convert()`], with the file that this one [needs](crate::Found::needs).
pub fn convert_with(
    data: &[u8],
    index: u32,
    shared: &[u8],
    out: &mut dyn Write,
) -> Result<(), ConvertError> {
    write(data, index, Some(shared), out)
}

fn write(
    data: &[u8],
    index: u32,
    shared: Option<&[u8]>,
    out: &mut dyn Write,
) -> Result<(), ConvertError> {
    let found = list(data)?;
    let found = found
        .into_iter()
        .find(|found| found.index == index)
        .ok_or(ConvertError::NoSuchBuild(index))?;
    if let (Some(shared), Some(needs)) = (shared, &found.needs)
        && !list(shared)?.iter().any(|found| found.ids.contains(needs))
    {
        return Err(ConvertError::OtherShared(needs.clone()));
    }
    let shared = shared.filter(|_| found.needs.is_some());
    let mut sealing = Sealing::new(out);
    match found.format {
        Format::R8 => r8::convert(data, &mut sealing)?,
        Format::SourceMap => source_map::convert(data, index, &mut sealing)?,
        _ => native::convert(data, index, shared, &mut sealing)?,
    }
    sealing.finish()?;
    Ok(())
}
