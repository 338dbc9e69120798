//! Why symbol files cannot be used.

use std::io;

/// Why a file is of no use. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error(
        "not a symbol file: expected an R8 mapping, ELF, Mach-O, PDB, PE, Breakpad, WebAssembly, or source maps with debug ids"
    )]
    UnknownFormat,
    #[error("the file is compressed with {0}: unpack it before the upload")]
    Compressed(&'static str),
    #[error(
        "the file is text in UTF-16, which an editor or a shell has made of it. Upload the file that the build wrote, in UTF-8"
    )]
    Utf16,
    #[error("the file is damaged: {0}")]
    Damaged(String),
    #[error(
        "{0} has no build id, so no frame can find it. Link with `-Wl,--build-id=sha1`, or upload the file that the linker wrote: a tool such as \
         `strip -R` may have removed the section .note.gnu.build-id"
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

/// Why a file cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    #[error("{0}")]
    Unusable(#[from] Unusable),
    #[error("the other file is not the one that this file needs: expected the build id {0}")]
    OtherShared(String),
    #[error("the file has no build at place {0}")]
    NoSuchBuild(u32),
    #[error("cannot read the symbols: {0}")]
    Damaged(String),
    /// There was no memory for the stack of the thread, or the system allows no more threads.
    #[error("cannot start the thread that reads functions: {0}")]
    Thread(io::Error),
    #[error("cannot write the converted file: {0}")]
    Write(#[from] io::Error),
}

impl ConvertError {
    pub(crate) fn damaged(error: &dyn std::error::Error) -> Self {
        Self::Damaged(causes(error))
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
