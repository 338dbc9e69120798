//! What is found in symbol files.

use serde::{Deserialize, Serialize};

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

/// The kinds of information in a part of a file.
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

/// The maximum number of builds in one file. Large web apps have some hundred scripts.
pub(crate) const MAX_FOUND: usize = 10_000;
