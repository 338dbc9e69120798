//! Reads arbitrary native symbol files: ELF, Mach-O, PDB, PE, Breakpad and WebAssembly. Run with
//! `cargo +nightly fuzz run native <folder of symbol files>` in `server/symbols`.
//!
//! The first two bytes choose offsets to look up; the rest is the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unjank_symbols::{LookupFile, LookupKind, convert, inspect};

fuzz_target!(|data: &[u8]| {
    let Some((choice, file)) = data.split_first_chunk::<2>() else {
        return;
    };
    let Ok(found) = inspect(file) else {
        return;
    };
    for build in found.iter().take(4) {
        assert!(!build.ids.is_empty(), "a build without ids cannot be found");
        let mut converted = Vec::new();
        let kind = LookupKind::from(build.format);
        if kind != LookupKind::Native || convert(file, build.index, &mut converted).is_err() {
            continue;
        }
        let lookup = LookupFile::from_bytes(&converted, kind).expect("a converted file opens");
        let step = u64::from(u16::from_le_bytes(*choice));
        for offset in (0..64).map(|turn| turn * step) {
            let locations = lookup.native(offset);
            assert!(locations.len() <= 64, "locations are bounded");
        }
    }
});
