//! A folder for one test, and external changes to it.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use unjank_spool::{Log, Options, Recovery, Seq, WhenFull};

/// Records of at most 100 bytes, in segments of at most 400.
pub(crate) const RECORD: u32 = 100;
pub(crate) const HEADER: usize = 28;

pub(crate) struct Folder {
    dir: TempDir,
}

impl Folder {
    /// In memory if the system has a folder for that, because these tests are not about the disk.
    pub(crate) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() {
            TempDir::new_in(memory)
        } else {
            TempDir::new()
        };
        Self { dir: dir.unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            dir: self.path().to_owned(),
            segment_bytes: 400,
            max_bytes: 100_000,
            max_record_bytes: RECORD,
            when_full: WhenFull::Refuse,
            renew_when_opened: true,
        }
    }

    pub(crate) fn open(&self) -> (Log, Recovery) {
        Log::open(self.options()).unwrap()
    }

    /// Returns all segments, oldest first.
    pub(crate) fn segments(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut segments: Vec<_> = paths
            .filter(|path| path.extension().is_some_and(|end| end == "segment"))
            .collect();
        segments.sort();
        segments
    }

    /// Returns a copy of the folder.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::new();
        for entry in fs::read_dir(self.path()).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        copy
    }
}

pub(crate) type Records = Vec<(Seq, Vec<u8>)>;

/// Returns everything a new reader sees.
pub(crate) fn read_all(log: &Log) -> Records {
    let mut reader = log.reader();
    let mut records = Vec::new();
    while let Some(chunk) = reader.next_chunk(300).unwrap() {
        records.extend(
            chunk
                .iter()
                .map(|record| (record.seq, record.payload.to_vec())),
        );
    }
    records
}

/// Returns the content of the record with this number in most tests. Each number has a different one.
pub(crate) fn payload(seq: Seq, length: usize) -> Vec<u8> {
    let mut word = seq;
    (0..length)
        .map(|_| {
            word = word
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Never zero, so that overwriting it with zeros changes it.
            word.to_be_bytes()[0] | 1
        })
        .collect()
}
