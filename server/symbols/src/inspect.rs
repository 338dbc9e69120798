use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use symbolic::debuginfo::{Archive, FileFormat, Object};

use crate::{SymbolId, r8, source_map};

/// The format of a symbol file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    R8,
    Elf,
    MachO,
    Pdb,
    Pe,
    Breakpad,
    Wasm,
    SourceMap,
}

impl Format {
    pub const ALL: [Self; 8] = [
        Self::R8,
        Self::Elf,
        Self::MachO,
        Self::Pdb,
        Self::Pe,
        Self::Breakpad,
        Self::Wasm,
        Self::SourceMap,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::R8 => "r8",
            Self::Elf => "elf",
            Self::MachO => "mach_o",
            Self::Pdb => "pdb",
            Self::Pe => "pe",
            Self::Breakpad => "breakpad",
            Self::Wasm => "wasm",
            Self::SourceMap => "source_map",
        }
    }
}

/// What a part of a file can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Names of functions.
    pub functions: bool,
    /// Source lines.
    pub lines: bool,
}

/// One build that a file belongs to. A universal binary has one for each architecture, a bundle one for each script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Its place in the file.
    pub index: u32,
    pub format: Format,
    /// The ids by which devices may name this build. The first is the one to show.
    pub ids: Vec<String>,
    /// The processor, such as `arm64`; empty if the format has none.
    pub arch: String,
    /// The name in the file, such as the URL of a script; empty if there is none.
    pub name: String,
    pub contents: Contents,
}

/// Why a file is of no use. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error(
        "not a symbol file: expected an R8 mapping, ELF, Mach-O, PDB, PE, Breakpad, WebAssembly, or source maps with debug ids"
    )]
    UnknownFormat,
    #[error("the file is damaged: {0}")]
    Damaged(String),
    #[error(
        "{0} has no build id, so no frame can find it. Link with `-Wl,--build-id=sha1`, or upload the file that the linker wrote"
    )]
    NoId(&'static str),
    #[error("the file contains no builds")]
    Empty,
    #[error("the file contains more than {0} builds")]
    TooMany(usize),
    #[error("{0}")]
    SourceMaps(String),
}

/// The maximum number of builds in one file. Large web apps have some hundred scripts.
const MAX_FOUND: usize = 10_000;

/// Lists the builds that a file belongs to.
pub fn inspect(data: &[u8]) -> Result<Vec<Found>, Unusable> {
    let found = match Archive::peek(data) {
        FileFormat::Unknown if r8::is_mapping(data) => vec![r8::inspect(data)],
        FileFormat::Unknown if source_map::is_source_map(data) => {
            vec![source_map::inspect(data)?]
        }
        FileFormat::SourceBundle => source_map::inspect_bundle(data)?,
        FileFormat::Unknown | FileFormat::PortablePdb => return Err(Unusable::UnknownFormat),
        _ => inspect_native(data)?,
    };
    match found.len() {
        0 => Err(Unusable::Empty),
        1..=MAX_FOUND => Ok(found),
        _ => Err(Unusable::TooMany(MAX_FOUND)),
    }
}

fn inspect_native(data: &[u8]) -> Result<Vec<Found>, Unusable> {
    let damaged = |error: &dyn std::error::Error| Unusable::Damaged(causes(error));
    let archive = Archive::parse(data).map_err(|error| damaged(&error))?;
    if archive.object_count() > MAX_FOUND {
        return Err(Unusable::TooMany(MAX_FOUND));
    }
    let mut found = Vec::new();
    for (index, object) in (0_u32..).zip(archive.objects()) {
        let object = object.map_err(|error| damaged(&error))?;
        found.push(inspect_object(index, &object)?);
    }
    Ok(found)
}

fn inspect_object(index: u32, object: &Object<'_>) -> Result<Found, Unusable> {
    let (format, name) = match object.file_format() {
        FileFormat::Elf => (Format::Elf, "this ELF file"),
        FileFormat::MachO => (Format::MachO, "this Mach-O file"),
        FileFormat::Pdb => (Format::Pdb, "this PDB"),
        FileFormat::Pe => (Format::Pe, "this PE file"),
        FileFormat::Breakpad => (Format::Breakpad, "this Breakpad file"),
        FileFormat::Wasm => (Format::Wasm, "this WebAssembly file"),
        _ => return Err(Unusable::UnknownFormat),
    };
    if object.is_malformed() {
        return Err(Unusable::Damaged(format!(
            "{name} ends early or refers to bytes outside of it"
        )));
    }
    let ids = ids_of(object);
    if ids.is_empty() {
        return Err(Unusable::NoId(name));
    }
    Ok(Found {
        index,
        format,
        ids,
        arch: object.arch().name().to_owned(),
        name: String::new(),
        contents: Contents {
            functions: object.has_symbols() || object.has_debug_info(),
            lines: object.has_debug_info(),
        },
    })
}

/// The debug id first, which tools show; then the id in the form of the linker.
fn ids_of(object: &Object<'_>) -> Vec<String> {
    let debug_id = object.debug_id();
    let mut texts = Vec::new();
    if !debug_id.is_nil() {
        // Windows counts how often a PDB was linked. Some tools always write that number, others only if it is not 0.
        texts.push(debug_id.to_string());
        texts.push(debug_id.breakpad().to_string());
    }
    texts.extend(object.code_id().map(|id| id.to_string()));
    let mut known = BTreeSet::new();
    texts
        .iter()
        .filter_map(|text| SymbolId::parse(text))
        .filter(|id| known.insert(id.clone()))
        .map(|id| id.as_str().to_owned())
        .collect()
}

/// An error with all of its causes, in one line.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
