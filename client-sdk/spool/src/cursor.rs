//! Walks over the records of one segment and skips damage. Recovery and readers both use it, so that they agree on what a record
//! is.

use std::io;
use std::ops::Range;

use crate::Seq;
use crate::disk;
use crate::file_system::OpenFile;
use crate::format::{
    RECORD_HEADER, RECORD_MAGIC, RecordHeader, SEGMENT_HEADER, SegmentHeader, SegmentName,
    segment_header,
};

/// A part of a segment that contains no readable record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file name of the segment.
    pub segment: String,
    /// The start of the part, in bytes from the start of the file.
    pub offset: u64,
    /// The length of the part in bytes.
    pub bytes: u64,
}

/// The result of one read.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The bytes as read from disk, including headers.
    pub(crate) bytes: Vec<u8>,
    /// The positions of the payloads in `bytes`.
    pub(crate) records: Vec<(Seq, Range<usize>)>,
    pub(crate) damage: Vec<Damage>,
}

/// A position in a segment.
#[derive(Debug)]
pub(crate) struct Cursor {
    name: SegmentName,
    from: Seq,
    offset: u64,
    /// The last sequence number seen, readable or not. The next one has to be greater.
    last_seq: Seq,
    damaged_since: Option<u64>,
    /// The end of the last record with a wrong checksum, or 0 if there was none.
    broken_until: u64,
    foreign_version: Option<u32>,
}

/// What is at one position of the bytes.
enum Found {
    Record(RecordHeader),
    /// A valid header whose payload fails its checksum.
    Broken(RecordHeader),
    /// A valid header whose payload has not been read yet.
    Unread(RecordHeader),
    Nothing,
}

impl Cursor {
    /// Creates a cursor at the beginning of a segment whose records are numbered above `floor`. It returns those numbered `from`
    /// or above.
    pub(crate) fn new(name: SegmentName, floor: Seq, from: Seq) -> Self {
        Self {
            name,
            from,
            offset: 0,
            last_seq: floor,
            damaged_since: None,
            broken_until: 0,
            foreign_version: None,
        }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn last_seq(&self) -> Seq {
        self.last_seq
    }

    /// Returns the end of the last record that has its full length but a wrong checksum, or 0 if there was none.
    pub(crate) fn broken_until(&self) -> u64 {
        self.broken_until
    }

    /// Returns the format version in the header, if the header is complete and of another version.
    pub(crate) fn foreign_version(&self) -> Option<u32> {
        self.foreign_version
    }

    /// Reads about `max` more bytes, but at least one record if there is one before `end`. Returns the records, and the damage
    /// that ended before them.
    pub(crate) fn fill(
        &mut self,
        file: &dyn OpenFile,
        end: u64,
        max: usize,
        block: &mut Block,
    ) -> io::Result<()> {
        block.records.clear();
        block.damage.clear();
        let mut want = max.max(SEGMENT_HEADER.max(RECORD_HEADER));
        while self.offset < end && block.records.is_empty() {
            let left = end.saturating_sub(self.offset);
            let take = usize::try_from(left).unwrap_or(usize::MAX).min(want);
            disk::read(file, self.offset, take, &mut block.bytes)?;
            let Some(unread) = self.walk(left == take as u64, block) else {
                continue;
            };
            if unread.framed() > end.saturating_sub(self.offset) {
                // The header promises more than the file contains: the record is torn.
                self.damaged_since.get_or_insert(self.offset);
                self.last_seq = unread.seq;
                self.offset = end;
            }
            want = want.max(usize::try_from(unread.framed()).unwrap_or(usize::MAX));
        }
        if self.offset >= end {
            self.end_damage(end, block);
        }
        Ok(())
    }

    /// Walks over the bytes. Returns the header of the record at which it had to stop, if any.
    fn walk(&mut self, is_last: bool, block: &mut Block) -> Option<RecordHeader> {
        let start = self.offset;
        let mut at = self.skip_segment_header(&block.bytes);
        let mut unread = None;
        while let Some(rest) = block.bytes.get(at..) {
            let here = start.saturating_add(at as u64);
            if rest.len() < RECORD_HEADER {
                break;
            }
            at = match self.look(rest) {
                Found::Record(header) => {
                    self.end_damage(here, block);
                    self.last_seq = header.seq;
                    let payload = at.saturating_add(RECORD_HEADER);
                    let next = payload.saturating_add(header.length as usize);
                    let is_wanted = header.seq >= self.from;
                    block
                        .records
                        .extend(is_wanted.then_some((header.seq, payload..next)));
                    next
                }
                Found::Broken(header) => {
                    self.damaged_since.get_or_insert(here);
                    self.last_seq = header.seq;
                    self.broken_until = here.saturating_add(header.framed());
                    at.saturating_add(RECORD_HEADER)
                        .saturating_add(header.length as usize)
                }
                Found::Unread(header) => {
                    unread = Some(header);
                    break;
                }
                Found::Nothing => {
                    self.damaged_since.get_or_insert(here);
                    at.saturating_add(next_candidate(rest))
                }
            };
        }
        let length = block.bytes.len();
        if is_last && unread.is_none() && at < length {
            // Too short for a record.
            self.damaged_since
                .get_or_insert(start.saturating_add(at as u64));
            at = length;
        }
        self.offset = start.saturating_add(at.min(length) as u64);
        unread
    }

    fn skip_segment_header(&mut self, bytes: &[u8]) -> usize {
        if self.offset > 0 {
            return 0;
        }
        match segment_header(bytes, self.name) {
            SegmentHeader::Good => return SEGMENT_HEADER,
            SegmentHeader::Foreign(version) => self.foreign_version = Some(version),
            SegmentHeader::Destroyed => {}
        }
        self.damaged_since = Some(0);
        SEGMENT_HEADER.min(bytes.len())
    }

    fn look(&self, rest: &[u8]) -> Found {
        let header = RecordHeader::decode(rest, self.name.tag);
        let Some(header) = header.filter(|header| header.seq > self.last_seq) else {
            return Found::Nothing;
        };
        let payload = rest
            .get(RECORD_HEADER..)
            .and_then(|rest| rest.get(..header.length as usize));
        match payload {
            None => Found::Unread(header),
            Some(payload) if crc32c::crc32c(payload) == header.checksum => Found::Record(header),
            Some(_) => Found::Broken(header),
        }
    }

    fn end_damage(&mut self, at: u64, block: &mut Block) {
        if let Some(offset) = self.damaged_since.take() {
            block.damage.push(Damage {
                segment: self.name.file_name(),
                offset,
                bytes: at.saturating_sub(offset),
            });
        }
    }
}

/// Returns how far ahead, beyond the first byte, a record could begin.
fn next_candidate(bytes: &[u8]) -> usize {
    let mut at = 1_usize;
    while let Some(rest) = bytes.get(at..) {
        let Some(skipped) = rest.iter().position(|byte| *byte == RECORD_MAGIC[0]) else {
            break;
        };
        at = at.saturating_add(skipped);
        let candidate = bytes.get(at..).unwrap_or_default();
        if candidate.starts_with(&RECORD_MAGIC) || RECORD_MAGIC.starts_with(candidate) {
            return at;
        }
        at = at.saturating_add(1);
    }
    bytes.len()
}
