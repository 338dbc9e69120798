//! ClickHouse's own compressed blocks (`compress=1`, `decompress=1`): checksum, method, sizes, data.
//!
//! ```text
//! block = checksum [16], method u8, compressed u32 (with these 9 bytes), raw u32, data
//! ```
//! The checksum is `CityHash128` (version 1.0.2) of everything behind it. Sizes are checked before anything is allocated.

use std::io::{self, Read};

const CHECKSUM: usize = 16;
const HEADER: usize = 9;
/// ClickHouse's own blocks hold 1 MiB of raw data, and its clients' a little more; this is far above both.
const LARGEST_BLOCK: usize = 128 << 20;
/// How much raw data the blocks written here hold.
const BLOCK: usize = 1 << 20;

const NONE: u8 = 0x02;
const LZ4: u8 = 0x82;
const ZSTD: u8 = 0x90;

/// Reads the raw data out of blocks.
pub(crate) struct BlockReader<R> {
    inner: R,
    packed: Vec<u8>,
    raw: Vec<u8>,
    position: usize,
}

impl<R: Read> BlockReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            packed: Vec::new(),
            raw: Vec::new(),
            position: 0,
        }
    }

    /// Reads the next block. `false` at the end of the data.
    fn advance(&mut self) -> io::Result<bool> {
        let mut checksum = [0_u8; CHECKSUM];
        if !read_whole(&mut self.inner, &mut checksum)? {
            return Ok(false);
        }
        let mut header = [0_u8; HEADER];
        self.inner.read_exact(&mut header)?;
        let [method, c0, c1, c2, c3, r0, r1, r2, r3] = header;
        let compressed = u32::from_le_bytes([c0, c1, c2, c3]) as usize;
        let raw = u32::from_le_bytes([r0, r1, r2, r3]) as usize;
        if !(HEADER..=LARGEST_BLOCK).contains(&compressed) || raw > LARGEST_BLOCK {
            return Err(broken(format!(
                "a compressed block of {compressed} bytes for {raw} is out of bounds ({LARGEST_BLOCK} at most)"
            )));
        }
        self.packed.clear();
        self.packed.extend_from_slice(&header);
        let missing = compressed - HEADER;
        let got = (&mut self.inner)
            .take(missing as u64)
            .read_to_end(&mut self.packed)?;
        if got < missing {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the data ends within a compressed block",
            ));
        }
        if checksum_of(&self.packed) != checksum {
            return Err(broken(
                "the checksum of a compressed block does not match: the data is damaged",
            ));
        }
        let data = self.packed.get(HEADER..).unwrap_or_default();
        self.raw.clear();
        self.position = 0;
        let written = match method {
            LZ4 => {
                self.raw.resize(raw, 0);
                lz4_flex::block::decompress_into(data, &mut self.raw).map_err(broken)?
            }
            ZSTD => {
                self.raw.resize(raw, 0);
                zstd::bulk::decompress_to_buffer(data, &mut self.raw)?
            }
            NONE => {
                self.raw.extend_from_slice(data);
                data.len()
            }
            other => {
                return Err(broken(format!(
                    "compression method {other:#04x} is not supported: use LZ4, ZSTD or none"
                )));
            }
        };
        if written != raw {
            return Err(broken(format!(
                "a compressed block holds {written} bytes and not {raw} as it says"
            )));
        }
        Ok(true)
    }
}

impl<R: Read> Read for BlockReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.position >= self.raw.len() {
            if !self.advance()? {
                return Ok(0);
            }
        }
        let rest = self.raw.get(self.position..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.position += count;
        Ok(count)
    }
}

/// Fills `buffer`. `false` when the data ended before its first byte.
fn read_whole(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the data ends within a compressed block",
                ));
            }
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn broken(reason: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.to_string())
}

/// ClickHouse writes the two halves of its 128 bits in the other order.
fn checksum_of(bytes: &[u8]) -> [u8; CHECKSUM] {
    cityhash_rs::cityhash_102_128(bytes)
        .rotate_right(64)
        .to_le_bytes()
}

/// Packs raw data into LZ4 blocks.
#[derive(Default)]
pub(crate) struct BlockWriter {
    pending: Vec<u8>,
}

impl BlockWriter {
    /// Takes `data` and puts the blocks it fills into `out`.
    pub(crate) fn write(&mut self, mut data: &[u8], out: &mut Vec<u8>) {
        while self.pending.len() + data.len() >= BLOCK {
            let (now, later) = data.split_at(BLOCK - self.pending.len());
            self.pending.extend_from_slice(now);
            data = later;
            self.flush(out);
        }
        self.pending.extend_from_slice(data);
    }

    /// Puts what is left into a last block.
    pub(crate) fn flush(&mut self, out: &mut Vec<u8>) {
        if self.pending.is_empty() {
            return;
        }
        let packed = lz4_flex::block::compress(&self.pending);
        let mut block = Vec::with_capacity(HEADER + packed.len());
        block.push(LZ4);
        block.extend_from_slice(&size(HEADER + packed.len()));
        block.extend_from_slice(&size(self.pending.len()));
        block.extend_from_slice(&packed);
        out.extend_from_slice(&checksum_of(&block));
        out.extend_from_slice(&block);
        self.pending.clear();
    }
}

/// Blocks are about a mebibyte, far below what the field holds.
fn size(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(raw: &[u8]) -> Vec<u8> {
        let mut writer = BlockWriter::default();
        let mut out = Vec::new();
        writer.write(raw, &mut out);
        writer.flush(&mut out);
        out
    }

    fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut raw = Vec::new();
        BlockReader::new(packed).read_to_end(&mut raw)?;
        Ok(raw)
    }

    #[test]
    fn what_is_packed_unpacks_again() {
        for length in [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 7] {
            let raw: Vec<u8> = (0..length)
                .map(|index| u8::try_from(index * index % 251).unwrap())
                .collect();
            assert_eq!(unpacked(&packed(&raw)).unwrap(), raw);
        }
    }

    #[test]
    fn any_damaged_byte_is_noticed() {
        let good = packed(b"the quick brown fox jumps over the quick brown dog");
        for position in 0..good.len() {
            let mut bad = good.clone();
            bad[position] ^= 1;
            assert!(unpacked(&bad).is_err(), "byte {position}");
        }
    }

    #[test]
    fn a_block_that_claims_gigabytes_is_refused_before_it_is_allocated() {
        let mut bad = packed(b"x");
        bad[CHECKSUM + 5..CHECKSUM + 9].copy_from_slice(&u32::MAX.to_le_bytes());
        let error = unpacked(&bad).unwrap_err();
        assert!(error.to_string().contains("out of bounds"), "{error}");
    }

    #[test]
    fn data_that_ends_within_a_block_is_an_error() {
        let good = packed(b"abc");
        for length in 1..good.len() {
            assert_eq!(
                unpacked(&good[..length]).unwrap_err().kind(),
                io::ErrorKind::UnexpectedEof,
                "{length}"
            );
        }
    }
}
