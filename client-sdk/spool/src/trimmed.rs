//! The hint of what is done: one small file, overwritten in place, never synced.
//!
//! It may be lost, then done records are read again. It cannot be wrong: it has a checksum, and only durable
//! records are ever trimmed.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

use crate::Seq;
use crate::disk::{Files, Operation, before};
use crate::error::{DiskError, Doing};
use crate::file_system::{Mode, OpenFile};
use crate::format::{MAX_SEQ, is_sealed, seal, u64_at};

const MAGIC: [u8; 8] = *b"uj-trim1";
const LENGTH: usize = 20;

/// The open hint file.
#[derive(Debug)]
pub(crate) struct TrimmedFile {
    file: Box<dyn OpenFile>,
    path: PathBuf,
}

impl TrimmedFile {
    /// Opens the hint and reads it; 0 when there is none worth believing.
    pub(crate) fn open(files: &Files, dir: &Path) -> Result<(Self, Seq), DiskError> {
        let path = dir.join("trimmed");
        let file = files.open(&path, Mode::ReadWrite).doing("open", &path)?;
        let mut bytes = Vec::with_capacity(LENGTH);
        file.read_at(0, LENGTH, &mut bytes).doing("read", &path)?;
        let believable = bytes.len() == LENGTH && bytes.starts_with(&MAGIC) && is_sealed(&bytes);
        let through = if believable {
            u64_at(&bytes, MAGIC.len())
        } else {
            0
        };
        let through = if through < MAX_SEQ { through } else { 0 };
        Ok((Self { file, path }, through))
    }

    pub(crate) fn write(&mut self, through: Seq) -> Result<(), DiskError> {
        let mut bytes = [0; LENGTH];
        let (magic, rest) = bytes.split_at_mut(MAGIC.len());
        magic.copy_from_slice(&MAGIC);
        if let Some(seq) = rest.first_chunk_mut() {
            *seq = through.to_le_bytes();
        }
        seal(&mut bytes);
        self.put(&bytes).doing("write to", &self.path)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        before(Operation::Hint)?;
        let written = self.file.write_at(0, &[IoSlice::new(bytes)])?;
        // Half a hint has no checksum: it is not believed.
        if written < bytes.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(())
    }
}
