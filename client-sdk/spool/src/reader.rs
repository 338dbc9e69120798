//! Reading, on any thread, while the writer appends: synced records only, in order.

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
    /// Records below are not returned.
    from: Seq,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Wherever `from` is.
    Unknown,
    In(Open),
    /// In whatever comes after the segment with this id.
    After(u64),
}

#[derive(Debug)]
struct Open {
    id: u64,
    file: Box<dyn OpenFile>,
    cursor: Cursor,
}

/// Records read in one go, in one buffer.
#[derive(Debug, Default)]
pub struct Chunk {
    block: Block,
}

/// A record in a [`Chunk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number.
    pub seq: Seq,
    /// What was appended.
    pub payload: &'a [u8],
}

impl Chunk {
    /// The records, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Record<'_>> {
        self.block.records.iter().filter_map(|(seq, range)| {
            let payload = self.block.bytes.get(range.clone())?;
            Some(Record { seq: *seq, payload })
        })
    }

    /// How many records.
    pub fn len(&self) -> usize {
        self.block.records.len()
    }

    /// True if there is damage to report and no record behind it.
    pub fn is_empty(&self) -> bool {
        self.block.records.is_empty()
    }

    /// The number of the first record.
    pub fn first_seq(&self) -> Option<Seq> {
        self.block.records.first().map(|(seq, _)| *seq)
    }

    /// The number of the last record: what to trim through once the chunk is done.
    pub fn last_seq(&self) -> Option<Seq> {
        self.block.records.last().map(|(seq, _)| *seq)
    }

    /// What was skipped on the way. The same damage is reported to every reader that passes it.
    pub fn damage(&self) -> &[Damage] {
        &self.block.damage
    }

    /// The buffer, and where in it the payloads are; for those who want to share it without a copy.
    pub fn into_parts(self) -> (Vec<u8>, Vec<(Seq, Range<usize>)>) {
        (self.block.bytes, self.block.records)
    }
}

impl Reader {
    pub(crate) fn new(shared: Arc<Shared>, from: Seq) -> Self {
        Self {
            shared,
            from,
            place: Place::Unknown,
        }
    }

    /// Goes to the record with this number, or the next one there is. A number that does not exist yet waits
    /// for it.
    pub fn seek(&mut self, seq: Seq) {
        self.from = seq;
        self.place = Place::Unknown;
    }

    /// The lowest number that may be returned next.
    pub fn position(&self) -> Seq {
        self.from
    }

    /// The next records: about `max_bytes` of them, at least one; `None` when all synced records were read.
    ///
    /// Never waits. Segments deleted meanwhile are passed over.
    ///
    /// # Errors
    /// The disk failed. The position stays, so it can be tried again; [`seek`](Self::seek) goes around.
    pub fn next_chunk(&mut self, max_bytes: usize) -> io::Result<Option<Chunk>> {
        let mut chunk = Chunk::default();
        Ok(self.read_into(&mut chunk, max_bytes)?.then_some(chunk))
    }

    /// Like [`next_chunk`](Self::next_chunk), into a chunk whose memory is used again. False when all synced
    /// records were read.
    ///
    /// # Errors
    /// As [`next_chunk`](Self::next_chunk).
    pub fn read_into(&mut self, chunk: &mut Chunk, max_bytes: usize) -> io::Result<bool> {
        let block = &mut chunk.block;
        block.records.clear();
        block.damage.clear();
        while self.arrive()? {
            let Place::In(open) = &mut self.place else {
                break;
            };
            let (durable, is_whole) = durable_part(&self.shared, open.id);
            if open.cursor.offset() < durable {
                let read = open.cursor.fill(&*open.file, durable, max_bytes, block);
                read.doing("read", &self.shared.dir)?;
                self.from = self.from.max(open.cursor.last_seq().saturating_add(1));
            } else if is_whole {
                self.place = Place::After(open.id);
            } else {
                break;
            }
            if !block.records.is_empty() || !block.damage.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Opens the segment to read next, if none is open. False if there is none.
    fn arrive(&mut self) -> io::Result<bool> {
        while let Some((id, path, cursor)) = self.next_segment() {
            match self.shared.files.open(&path, Mode::Read) {
                Ok(file) => self.place = Place::In(Open { id, file, cursor }),
                // Deleted between the look at the table and now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.place = Place::After(id);
                }
                Err(error) => return Ok(Err(error).doing("open", &path)?),
            }
        }
        Ok(matches!(self.place, Place::In(_)))
    }

    /// The segment to open, unless one is open or there is none.
    fn next_segment(&self) -> Option<(u64, PathBuf, Cursor)> {
        let table = self.shared.table();
        let mut segments = table.segments.iter();
        let segment = match self.place {
            Place::In(_) => None,
            Place::After(id) => segments.find(|segment| segment.id > id),
            Place::Unknown => segments
                .find(|segment| segment.written.last_seq >= self.from)
                .or(table.segments.back()),
        }?;
        let cursor = Cursor::new(segment.name, segment.floor, self.from);
        Some((segment.id, segment.path.clone(), cursor))
    }
}

/// How far a segment may be read, and whether that is all there will ever be of it. What is durable stays
/// until the segment is deleted; then there is nothing more to read.
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
