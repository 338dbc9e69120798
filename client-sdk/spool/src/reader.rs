//! Reads synced records in order, on any thread, while the writer appends.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::Seq;
use crate::cursor::{Block, Cursor, Damage};
use crate::error::Doing;
use crate::file_system::{Mode, OpenFile};
use crate::shared::Shared;

/// A position in a log.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    /// Records below this number are not returned.
    from: Seq,
    position: Position,
}

#[derive(Debug)]
enum Position {
    /// The segment that contains `from`, not determined yet.
    Unknown,
    In(Open),
    /// In the segment after the one with this id.
    After(u64),
}

#[derive(Debug)]
struct Open {
    id: u64,
    file: Box<dyn OpenFile>,
    cursor: Cursor,
}

/// Records that were read together, in one buffer.
#[derive(Debug, Default)]
pub struct Chunk {
    block: Block,
}

/// A record in a [`Chunk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The sequence number of the record.
    pub seq: Seq,
    /// The bytes that were appended.
    pub payload: &'a [u8],
}

impl Chunk {
    /// Returns the records, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Record<'_>> {
        self.block.records.iter().filter_map(|(seq, range)| {
            let payload = self.block.bytes.get(range.clone())?;
            Some(Record { seq: *seq, payload })
        })
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.block.records.len()
    }

    /// Returns `true` if the chunk only reports damage, without a record after it.
    pub fn is_empty(&self) -> bool {
        self.block.records.is_empty()
    }

    /// Returns the sequence number of the first record.
    pub fn first_seq(&self) -> Option<Seq> {
        self.block.records.first().map(|(seq, _)| *seq)
    }

    /// Returns the sequence number of the last record. Trim up to it once the chunk is processed.
    pub fn last_seq(&self) -> Option<Seq> {
        self.block.records.last().map(|(seq, _)| *seq)
    }

    /// Returns the damage that was skipped. Every reader that passes the same damage reports it.
    pub fn damage(&self) -> &[Damage] {
        &self.block.damage
    }

    /// Returns the buffer and the positions of the payloads in it, to share them without a copy.
    pub fn into_parts(self) -> (Vec<u8>, Vec<(Seq, Range<usize>)>) {
        (self.block.bytes, self.block.records)
    }
}

impl Reader {
    pub(crate) fn new(shared: Arc<Shared>, from: Seq) -> Self {
        Self {
            shared,
            from,
            position: Position::Unknown,
        }
    }

    /// Moves to the record with this number, or to the next one that exists. For a number that does not exist yet, the reader
    /// returns nothing until it does.
    pub fn seek(&mut self, seq: Seq) {
        self.from = seq;
        self.position = Position::Unknown;
    }

    /// Returns the lowest sequence number that may be returned next.
    pub fn position(&self) -> Seq {
        self.from
    }

    /// Returns the next records: about `max_bytes` of them, at least one. Returns `None` when all synced records have been read.
    ///
    /// Never blocks for new records. Skips segments that were deleted in the meantime.
    ///
    /// # Errors
    /// If the disk fails. The position does not change, so the call can be retried; use [`seek`](Self::seek) to skip the failing
    /// part.
    pub fn next_chunk(&mut self, max_bytes: usize) -> io::Result<Option<Chunk>> {
        let mut chunk = Chunk::default();
        Ok(self.read_into(&mut chunk, max_bytes)?.then_some(chunk))
    }

    /// The same as [`next_chunk`](Self::next_chunk), but reuses the memory of a chunk. Returns `false` when all synced records
    /// have been read.
    ///
    /// # Errors
    /// See [`next_chunk`](Self::next_chunk).
    pub fn read_into(&mut self, chunk: &mut Chunk, max_bytes: usize) -> io::Result<bool> {
        let block = &mut chunk.block;
        block.records.clear();
        block.damage.clear();
        while self.arrive()? {
            let Position::In(open) = &mut self.position else {
                break;
            };
            let (durable, is_whole) = durable_part(&self.shared, open.id);
            if open.cursor.offset() < durable {
                let read = open.cursor.fill(&*open.file, durable, max_bytes, block);
                read.doing("read", &self.shared.dir)?;
                self.from = self.from.max(open.cursor.last_seq().saturating_add(1));
            } else if is_whole {
                self.position = Position::After(open.id);
            } else {
                break;
            }
            if !block.records.is_empty() || !block.damage.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Opens the next segment to read unless one is open. Returns `false` if there is none.
    fn arrive(&mut self) -> io::Result<bool> {
        while let Some((id, path, cursor)) = self.next_segment() {
            match self.shared.files.open(&path, Mode::Read) {
                Ok(file) => self.position = Position::In(Open { id, file, cursor }),
                // Deleted since the table was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.position = Position::After(id);
                }
                Err(error) => return Ok(Err(error).doing("open", &path)?),
            }
        }
        Ok(matches!(self.position, Position::In(_)))
    }

    /// Returns the next segment to open, or `None` if one is open or there is none.
    fn next_segment(&self) -> Option<(u64, PathBuf, Cursor)> {
        let table = self.shared.table();
        let mut segments = table.segments.iter();
        let segment = match self.position {
            Position::In(_) => None,
            Position::After(id) => segments.find(|segment| segment.id > id),
            Position::Unknown => segments
                .find(|segment| segment.written.last_seq >= self.from)
                .or(table.segments.back()),
        }?;
        let cursor = Cursor::new(segment.name, segment.floor, self.from);
        Some((segment.id, segment.path.clone(), cursor))
    }
}

/// Returns how far a segment may be read, and whether it will never grow. Its durable part stays until the segment is deleted;
/// after that there is nothing to read.
fn durable_part(shared: &Shared, id: u64) -> (u64, bool) {
    let table = shared.table();
    let is_last = table.segments.back().is_none_or(|last| last.id == id);
    table.get(id).map_or((0, true), |segment| {
        (
            segment.durable.bytes,
            !is_last && segment.written == segment.durable,
        )
    })
}
