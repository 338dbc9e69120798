//! The bytes on disk: names, headers and checksums. Contains no I/O.

use crate::{MAX_RECORD_BYTES, Seq};

/// Length of a segment header.
pub(crate) const SEGMENT_HEADER: usize = 28;
/// Length of a record header.
pub(crate) const RECORD_HEADER: usize = 28;
/// The version that this crate writes, and the only one it reads.
pub(crate) const VERSION: u32 = 1;
/// Sequence numbers stay below this, so that incrementing one read from disk cannot overflow.
pub(crate) const MAX_SEQ: Seq = 1 << 62;

const SEGMENT_MAGIC: [u8; 8] = *b"uj-spool";
/// Starts with a byte that is neither text nor zero, so that a scan rarely stops.
pub(crate) const RECORD_MAGIC: [u8; 4] = [0xf5, b'R', b'e', b'c'];
const SUFFIX: &str = ".segment";

/// The identity of a segment, which its file name encodes completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentName {
    pub(crate) first_seq: Seq,
    pub(crate) tag: u32,
}

impl SegmentName {
    pub(crate) fn file_name(self) -> String {
        format!("{:016x}-{:08x}{SUFFIX}", self.first_seq, self.tag)
    }

    /// Returns `None` for a file of another program.
    pub(crate) fn parse(file_name: &str) -> Option<Self> {
        let (first_seq, tag) = file_name.strip_suffix(SUFFIX)?.split_once('-')?;
        let name = Self {
            first_seq: Seq::from_str_radix(first_seq, 16).ok()?,
            tag: u32::from_str_radix(tag, 16).ok()?,
        };
        // Accepts only the spelling that this crate writes, so not `+1`, upper case or a short number.
        (name.first_seq < MAX_SEQ && name.file_name() == file_name).then_some(name)
    }

    pub(crate) fn header(self) -> [u8; SEGMENT_HEADER] {
        let mut header = [0; SEGMENT_HEADER];
        let mut at = Fields(&mut header);
        at.put(&SEGMENT_MAGIC);
        at.put(&VERSION.to_le_bytes());
        at.put(&self.tag.to_le_bytes());
        at.put(&self.first_seq.to_le_bytes());
        seal(&mut header);
        header
    }
}

/// The state of a segment header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SegmentHeader {
    Good,
    /// Complete, but of another format version.
    Foreign(u32),
    Destroyed,
}

pub(crate) fn segment_header(bytes: &[u8], name: SegmentName) -> SegmentHeader {
    let Some(bytes) = bytes.first_chunk::<SEGMENT_HEADER>() else {
        return SegmentHeader::Destroyed;
    };
    if !is_sealed(bytes) || !bytes.starts_with(&SEGMENT_MAGIC) {
        return SegmentHeader::Destroyed;
    }
    match u32_at(bytes, 8) {
        VERSION if *bytes == name.header() => SegmentHeader::Good,
        VERSION => SegmentHeader::Destroyed,
        other => SegmentHeader::Foreign(other),
    }
}

/// The header in front of every payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) seq: Seq,
    pub(crate) length: u32,
    pub(crate) checksum: u32,
}

impl RecordHeader {
    pub(crate) fn encode(self, tag: u32) -> [u8; RECORD_HEADER] {
        let mut header = [0; RECORD_HEADER];
        let mut at = Fields(&mut header);
        at.put(&RECORD_MAGIC);
        at.put(&tag.to_le_bytes());
        at.put(&self.seq.to_le_bytes());
        at.put(&self.length.to_le_bytes());
        at.put(&self.checksum.to_le_bytes());
        seal(&mut header);
        header
    }

    /// Returns `None` unless every bit is as it was written into the segment with this tag.
    pub(crate) fn decode(bytes: &[u8], tag: u32) -> Option<Self> {
        let bytes = bytes.first_chunk::<RECORD_HEADER>()?;
        if !bytes.starts_with(&RECORD_MAGIC) || u32_at(bytes, 4) != tag || !is_sealed(bytes) {
            return None;
        }
        let header = Self {
            seq: u64_at(bytes, 8),
            length: u32_at(bytes, 16),
            checksum: u32_at(bytes, 20),
        };
        (header.seq < MAX_SEQ && header.length <= MAX_RECORD_BYTES).then_some(header)
    }

    /// Returns the bytes of header and payload together.
    pub(crate) fn framed(self) -> u64 {
        framed(self.length)
    }
}

/// Returns the bytes that a payload takes on disk.
pub(crate) fn framed(payload: u32) -> u64 {
    u64::from(payload).saturating_add(RECORD_HEADER as u64)
}

struct Fields<'a>(&'a mut [u8]);

impl Fields<'_> {
    fn put(&mut self, field: &[u8]) {
        if let Some((here, rest)) = std::mem::take(&mut self.0).split_at_mut_checked(field.len()) {
            here.copy_from_slice(field);
            self.0 = rest;
        }
    }
}

/// Writes the checksum of all preceding bytes into the last four bytes.
pub(crate) fn seal(bytes: &mut [u8]) {
    if let Some((content, checksum)) = bytes.split_last_chunk_mut::<4>() {
        *checksum = crc32c::crc32c(content).to_le_bytes();
    }
}

pub(crate) fn is_sealed(bytes: &[u8]) -> bool {
    bytes
        .split_last_chunk::<4>()
        .is_some_and(|(content, checksum)| crc32c::crc32c(content) == u32::from_le_bytes(*checksum))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
    field.copied().map_or(0, u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>);
    field.copied().map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_round_trips_and_other_names_are_foreign() {
        let name = SegmentName {
            first_seq: 0x1f,
            tag: 0xabc,
        };
        assert_eq!(name.file_name(), "000000000000001f-00000abc.segment");
        assert_eq!(SegmentName::parse(&name.file_name()), Some(name));
        for foreign in [
            "",
            "lock",
            "trimmed",
            ".segment",
            "-.segment",
            "1f-abc.segment",
            "000000000000001F-00000abc.segment",
            "+00000000000001f-00000abc.segment",
            "000000000000001f-00000abc.segment.bak",
            "ffffffffffffffff-00000abc.segment",
        ] {
            assert_eq!(SegmentName::parse(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_detected() {
        let name = SegmentName {
            first_seq: 7,
            tag: 9,
        };
        let header = RecordHeader {
            seq: 8,
            length: 3,
            checksum: 4,
        };
        for bit in 0..SEGMENT_HEADER * 8 {
            let (mut segment, mut record) = (name.header(), header.encode(9));
            segment[bit / 8] ^= 1 << (bit % 8);
            record[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(segment_header(&segment, name), SegmentHeader::Destroyed);
            assert_eq!(RecordHeader::decode(&record, 9), None);
        }
        assert_eq!(segment_header(&name.header(), name), SegmentHeader::Good);
        assert_eq!(RecordHeader::decode(&header.encode(9), 9), Some(header));
        assert_eq!(RecordHeader::decode(&header.encode(9), 8), None);
    }

    #[test]
    fn the_format_is_frozen() {
        let name = SegmentName {
            first_seq: 0x0102,
            tag: 0x0304_0506,
        };
        let header = RecordHeader {
            seq: 0x0103,
            length: 5,
            checksum: crc32c::crc32c(b"hello"),
        };
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        assert_eq!(
            hex(&name.header()),
            "756a2d73706f6f6c010000000605040302010000000000004af8513a"
        );
        assert_eq!(
            hex(&header.encode(name.tag)),
            "f5526563060504030301000000000000050000004cbb719a86af3b60"
        );
    }
}
