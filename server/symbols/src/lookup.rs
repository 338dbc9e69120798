//! Lookup files: what a frame stands for, from a file that is mapped into memory.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::{Mmap, MmapMut};
use symbolic::symcache::SymCache;

use crate::r8::{self, Tables};
use crate::seal::{self, SEAL_BYTES};
use crate::source_map::{self, Places};
use crate::{Format, Location, native};

/// What a lookup file answers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupKind {
    /// Obfuscated Java and Kotlin.
    Java,
    /// Native code.
    Native,
    /// JavaScript.
    JavaScript,
}

impl From<Format> for LookupKind {
    fn from(format: Format) -> Self {
        match format {
            Format::R8 => Self::Java,
            Format::SourceMap => Self::JavaScript,
            _ => Self::Native,
        }
    }
}

/// A frame of obfuscated Java or Kotlin.
#[derive(Clone, Copy, Debug, Default)]
pub struct JavaFrame<'a> {
    pub class: &'a str,
    pub function: &'a str,
    pub file: &'a str,
    /// 0 if unknown.
    pub line: u32,
}

/// The file is not what [`convert()`](crate::convert()) of this version writes. Convert the original again.
#[derive(Debug, thiserror::Error)]
#[error("not a lookup file of this version: {0}")]
pub struct NotALookupFile(String);

/// A converted symbol file, mapped into memory. Only the pages that answers need are read from disk.
pub struct LookupFile {
    kind: LookupKind,
    data: Mmap,
}

/// Maps a file into memory. Nobody may change the file while it is mapped.
pub fn map_file(path: &Path) -> io::Result<Mmap> {
    map(&File::open(path)?)
}

#[expect(
    unsafe_code,
    reason = "a map is valid as long as nobody changes the file, which callers promise: the server gives files their names only once they are whole"
)]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: nobody changes the file while it is mapped, as the callers of the public functions promise.
    unsafe { Mmap::map(file) }
}

impl LookupFile {
    /// Opens a file that [`convert()`](crate::convert()) has written, and reads all of it once to check it. Nobody may change the file afterwards; deleting it is fine.
    pub fn open(path: &Path, kind: LookupKind) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let is_whole = seal::is_whole(&file, bytes)?;
        Self::checked(map(&file)?, kind, is_whole)
    }

    /// Opens a converted file that is in memory.
    pub fn from_bytes(bytes: &[u8], kind: LookupKind) -> io::Result<Self> {
        // The formats need data that begins at a multiple of 8, as a map does.
        let mut data = MmapMut::map_anon(bytes.len().max(1))?;
        for (to, from) in data.iter_mut().zip(bytes) {
            *to = *from;
        }
        let is_whole = seal::is_whole(bytes, bytes.len() as u64)?;
        Self::checked(data.make_read_only()?, kind, is_whole)
    }

    fn checked(data: Mmap, kind: LookupKind, is_whole: bool) -> io::Result<Self> {
        let file = Self { kind, data };
        let checked = match is_whole {
            true => file.check(),
            false => Err(NotALookupFile("it is damaged".to_owned())),
        };
        checked.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(file)
    }

    #[must_use]
    pub fn kind(&self) -> LookupKind {
        self.kind
    }

    /// The size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.data.len()
    }

    /// The file without the seal.
    fn content(&self) -> &[u8] {
        let end = self.data.len().saturating_sub(SEAL_BYTES);
        self.data.get(..end).unwrap_or_default()
    }

    fn check(&self) -> Result<(), NotALookupFile> {
        let refuse = |error: &dyn std::error::Error| NotALookupFile(error.to_string());
        match self.kind {
            LookupKind::Java => Tables::read(self.content())
                .map(drop)
                .ok_or_else(|| NotALookupFile("its tables are damaged".to_owned())),
            LookupKind::Native => match SymCache::parse(self.content()) {
                Ok(symbols) if symbols.is_latest() => Ok(()),
                Ok(_) => Err(NotALookupFile("it is older".to_owned())),
                Err(error) => Err(refuse(&error)),
            },
            LookupKind::JavaScript => Places::read(self.content())
                .map(drop)
                .ok_or_else(|| NotALookupFile("its places are damaged".to_owned())),
        }
    }

    /// Returns the locations of each obfuscated frame of a stack, innermost first. A frame that the file does not know is `None`; a
    /// frame that R8 added has no location. `thrown` is the obfuscated class of the exception, if the stack belongs to one.
    #[must_use]
    pub fn java(
        &self,
        frames: &[JavaFrame<'_>],
        thrown: Option<&str>,
    ) -> Vec<Option<Vec<Location>>> {
        match (self.kind, Tables::read(self.content())) {
            (LookupKind::Java, Some(tables)) => r8::retrace(&tables, frames, thrown),
            _ => vec![None; frames.len()],
        }
    }

    /// Returns the functions at an offset of a native image, innermost first. Empty: the file has none there.
    #[must_use]
    pub fn native(&self, offset: u64) -> Vec<Location> {
        match (self.kind, SymCache::parse(self.content())) {
            (LookupKind::Native, Ok(symbols)) => native::lookup(&symbols, offset),
            _ => Vec::new(),
        }
    }

    /// Returns the location of a place in a script, line and column from 1. `reported` is the function's name on the device, which stays
    /// if the file does not name the function.
    #[must_use]
    pub fn java_script(&self, line: u32, column: u32, reported: &str) -> Option<Location> {
        match (self.kind, Places::read(self.content())) {
            (LookupKind::JavaScript, Some(places)) => {
                source_map::lookup(&places, line, column, reported)
            }
            _ => None,
        }
    }
}
