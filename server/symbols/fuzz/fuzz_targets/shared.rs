//! Reads arbitrary programs together with the file into which `dwz` has moved a part of their debug information. Run with
//! `cargo +nightly fuzz run shared <folder of inputs>` in `server/symbols`.
//!
//! The first four bytes are the size of the program, which follows; the rest is the other file. `tests/dwz` has such files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unjank_symbols::{LookupFile, LookupKind, convert_with};

fuzz_target!(|data: &[u8]| {
    let Some((size, files)) = data.split_first_chunk::<4>() else {
        return;
    };
    let Some((program, shared)) = files.split_at_checked(u32::from_le_bytes(*size) as usize) else {
        return;
    };
    let mut converted = Vec::new();
    if convert_with(program, 0, shared, &mut converted).is_err() {
        return;
    }
    let Ok(lookup) = LookupFile::from_bytes(&converted, LookupKind::Native) else {
        return;
    };
    for offset in 0..512 {
        assert!(lookup.native(offset).len() <= 64, "locations are bounded");
    }
});
