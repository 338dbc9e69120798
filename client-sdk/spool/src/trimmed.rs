//! The hint up to which record the log is trimmed: one small file, overwritten in place, never synced.
//!
//! If the hint is lost, finished records are read again. It cannot be wrong, because it has a checksum and only durable records
//! are ever trimmed.

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
    /// Opens and reads the hint; 0 if there is no valid one.
    pub(crate) fn open(files: &Files, dir: &Path) -> Result<(Self, Seq), DiskError> {
        let path = dir.join("trimmed");
        let file = files.open(&path, Mode::ReadWrite).doing("open", &path)?;
        let mut bytes = Vec::with_capacity(LENGTH);
        file.read_at(0, LENGTH, &mut bytes).doing("read", &path)?;
        let is_valid = bytes.len() == LENGTH && bytes.starts_with(&MAGIC) && is_sealed(&bytes);
        let through = if is_valid {
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
        // A partially written hint fails its checksum and is ignored.
        if written < bytes.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(())
    }
}
