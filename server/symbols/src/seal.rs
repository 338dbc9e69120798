//! The checksum at the end of a lookup file. A file that was damaged on the disk is refused as a whole, because the readers of its
//! formats trust the numbers in it.

use std::io::{self, Read, Write};

/// Its length is a multiple of 8, as the formats need. The last byte is the version.
const MAGIC: [u8; 8] = *b"uj-look\x01";
/// The magic, the CRC-32C of the content, and zeros.
pub(crate) const SEAL_BYTES: usize = MAGIC.len() + 8;
const BUFFER_BYTES: usize = 64 << 10;

/// Writes content, and then its seal.
pub(crate) struct Sealing<'o> {
    out: &'o mut dyn Write,
    checksum: u32,
}

impl<'o> Sealing<'o> {
    pub(crate) fn new(out: &'o mut dyn Write) -> Self {
        Self { out, checksum: 0 }
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        self.out.write_all(&seal(self.checksum))
    }
}

impl Write for Sealing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        let done = bytes.get(..written).unwrap_or_default();
        self.checksum = crc32c::crc32c_append(self.checksum, done);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn seal(checksum: u32) -> [u8; SEAL_BYTES] {
    let mut seal = [0; SEAL_BYTES];
    let parts = MAGIC.into_iter().chain(checksum.to_le_bytes());
    for (place, byte) in seal.iter_mut().zip(parts) {
        *place = byte;
    }
    seal
}

/// Reads a file of this size to its end. Returns whether it is as it was written.
///
/// The file is read rather than mapped, so that the check does not count as memory of the process.
pub(crate) fn is_whole(mut file: impl Read, bytes: u64) -> io::Result<bool> {
    let Some(content) = bytes.checked_sub(SEAL_BYTES as u64) else {
        return Ok(false);
    };
    let mut checksum = 0;
    let mut content = file.by_ref().take(content);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = content.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        let read = buffer.get(..count).unwrap_or_default();
        checksum = crc32c::crc32c_append(checksum, read);
    }
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    Ok(end == seal(checksum))
}
