//! Symbol files: what is in them, and which functions and lines the frames of a stack stand for.
//!
//! An app is shipped without names: R8 renames classes and methods, linkers strip native code, bundlers minify JavaScript. The build
//! keeps the names in a symbol file. [`inspect()`] lists the builds that a file belongs to. [`convert()`] writes the file's content in a
//! form that is fast to search, and a [`LookupFile`] maps that form into memory and answers for frames.
//!
//! Symbol files come from outside. [`inspect()`] and [`convert()`] parse them, so call these in a process with limits of memory and time.
//! A [`LookupFile`] reads only what [`convert()`] has written.

mod convert;
mod error;
mod found;
mod id;
mod inspect;
mod lookup;
mod names;
mod native;
mod r8;
mod seal;
mod source_map;
mod start;
mod words;

pub use self::convert::{convert, convert_with};
pub use self::error::{ConvertError, Unusable};
pub use self::found::{Contents, Format, Found};
pub use self::id::SymbolId;
pub use self::inspect::inspect;
pub use self::lookup::{JavaFrame, LookupFile, LookupKind, NotALookupFile, map_file};
pub use self::names::{demangled_name, kotlin_native, readable_symbol, without_certain_clones};
pub use self::r8::{SOURCE_FILE_PREFIX, map_id_of};
pub use self::source_map::MIN_MEMORY_BYTES;
pub use self::start::{begins_as_symbols, compressed_with};

/// The version of the files that [`convert()`] writes. It changes when their form changes, so that older files are written again.
pub const LOOKUP_VERSION: u32 = 7;

/// The maximum number of functions that one frame stands for. Real code inlines a dozen levels; a made-up file could name millions.
const MAX_LOCATIONS: usize = 64;

/// A function and a line that a frame stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The class; empty in languages without classes.
    pub class: String,
    /// The function, demangled, without parameters and type arguments.
    pub function: String,
    /// The source file; empty if unknown.
    pub file: String,
    /// The line from 1; 0 if unknown.
    pub line: u32,
    pub origin: Origin,
    /// Of functions of which only one ran: how many are before this one. 0 for all others.
    pub alternative: u16,
}

/// How a location follows from a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The function that the frame ran.
    #[default]
    Called,
    /// The compiler inlined this function into the next one.
    Inlined,
    /// The symbol file names several functions or lines for the frame, and nothing tells which one ran.
    Ambiguous,
}
