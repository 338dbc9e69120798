use std::io::{self, Write};

use crate::inspect::{Unusable, causes, inspect};
use crate::{Format, native, r8, source_map};

/// Why a file cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    #[error("{0}")]
    Unusable(#[from] Unusable),
    #[error("the file has no build at place {0}")]
    NoSuchBuild(u32),
    #[error("cannot read the symbols: {0}")]
    Damaged(String),
    #[error("cannot write the converted file: {0}")]
    Write(#[from] io::Error),
}

impl ConvertError {
    pub(crate) fn damaged(error: &dyn std::error::Error) -> Self {
        Self::Damaged(causes(error))
    }
}

/// Writes one build of a file in the form that a [`LookupFile`](crate::LookupFile) searches.
pub fn convert(data: &[u8], index: u32, out: &mut dyn Write) -> Result<(), ConvertError> {
    let found = inspect(data)?;
    let found = found
        .into_iter()
        .find(|found| found.index == index)
        .ok_or(ConvertError::NoSuchBuild(index))?;
    match found.format {
        Format::R8 => r8::convert(data, out),
        Format::SourceMap => source_map::convert(data, index, out),
        _ => native::convert(data, index, out),
    }
}
