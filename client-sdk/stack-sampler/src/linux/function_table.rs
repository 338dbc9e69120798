//! The starts of an image's functions, from the search table of its unwind tables (`.eh_frame_hdr`), which stripping keeps.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Version 1, pointers relative to the section in four bytes: what all linkers write.
const LAYOUT: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
const HEADER_BYTES: u64 = 12;
const ENTRY_BYTES: u64 = 8;

/// The table, which stays in the memory of the process and is read there.
#[derive(Debug)]
pub(super) struct FunctionTable {
    address: u64,
}

impl FunctionTable {
    /// Names the table at `address`.
    pub(super) fn new(address: u64) -> Self {
        Self { address }
    }

    /// Returns the start of the last function that begins at or before `code`.
    pub(super) fn start(&self, memory: &File, code: u64) -> Option<u64> {
        let mut header = [0; 12];
        memory.read_exact_at(&mut header, self.address).ok()?;
        let [a, b, c, d, .., e, f, g, h] = header;
        if [a, b, c, d] != LAYOUT {
            return None;
        }
        let (mut from, mut to) = (0, u64::from(u32::from_le_bytes([e, f, g, h])));
        let mut found = None;
        while from < to {
            let middle = from.midpoint(to);
            let start = self.entry(memory, middle)?;
            if start <= code {
                (found, from) = (Some(start), middle.saturating_add(1));
            } else {
                to = middle;
            }
        }
        found
    }

    fn entry(&self, memory: &File, place: u64) -> Option<u64> {
        let offset = place.checked_mul(ENTRY_BYTES)?.checked_add(HEADER_BYTES)?;
        let mut start = [0; 4];
        memory
            .read_exact_at(&mut start, self.address.checked_add(offset)?)
            .ok()?;
        let start = i64::from(i32::from_le_bytes(start));
        Some(self.address.wrapping_add_signed(start))
    }
}
