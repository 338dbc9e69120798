use serde::{Deserialize, Serialize};
use symbolic::debuginfo::{Archive, FileFormat};

use crate::{native, r8, source_map};

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
    /// Whether the ids were computed from the code, because the linker wrote none. Devices do not report such ids.
    #[serde(default)]
    pub is_id_computed: bool,
    /// The id of another file without which names of this one cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// What is missing in the file. Each text is a sentence that says what to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
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
    #[error(
        "a .dwo or .dwp file has no build id, and is only a part of the debug information. Build with `split-debuginfo = \"off\"` (cargo) \
         or without `-gsplit-dwarf` (C and C++), and upload the program"
    )]
    Package,
    #[error("portable PDB files of .NET are not read. Frames of .NET have their names already")]
    Portable,
    #[error("the file contains no builds")]
    Empty,
    #[error("the file contains more than {0} builds")]
    TooMany(usize),
    #[error(
        "the {0} has no debug id. Run `sentry-cli sourcemaps inject` on the folder before the upload"
    )]
    NoDebugId(&'static str),
    #[error("{0}")]
    SourceMaps(String),
}

impl Unusable {
    /// Whether the file is no symbol file, or one that no frame can find. Any other file is damaged or too large.
    #[must_use]
    pub fn is_unsuitable(&self) -> bool {
        matches!(
            self,
            Self::UnknownFormat
                | Self::NoId(_)
                | Self::NoDebugId(_)
                | Self::Package
                | Self::Portable
        )
    }
}

/// The maximum number of builds in one file. Large web apps have some hundred scripts.
pub(crate) const MAX_FOUND: usize = 10_000;

/// Lists the builds that a file belongs to.
pub fn inspect(data: &[u8]) -> Result<Vec<Found>, Unusable> {
    let found = match Archive::peek(data) {
        FileFormat::Unknown if r8::is_mapping(data) => vec![r8::inspect(data)],
        FileFormat::Unknown if source_map::is_source_map(data) => {
            vec![source_map::inspect(data)?]
        }
        FileFormat::Unknown if r8::is_meant_as_mapping(data) => {
            return Err(Unusable::Damaged(
                "it has the header of a mapping of R8, but no class follows".to_owned(),
            ));
        }
        FileFormat::SourceBundle => source_map::inspect_bundle(data)?,
        FileFormat::PortablePdb => return Err(Unusable::Portable),
        FileFormat::Unknown => return Err(Unusable::UnknownFormat),
        _ => native::inspect(data)?,
    };
    match found.len() {
        0 => Err(Unusable::Empty),
        1..=MAX_FOUND => Ok(found),
        _ => Err(Unusable::TooMany(MAX_FOUND)),
    }
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
