//! Opens arbitrary lookup files: a damaged cache must not stop a server. Run with `cargo +nightly fuzz run lookup <folder of lookup
//! files>` in `server/symbols`.
//!
//! The first byte chooses the kind; the rest is the content, to which a valid checksum is added. The checksum keeps damage away from
//! the readers behind it, and the fuzzer looks at what happens without it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unjank_symbols::{JavaFrame, LookupFile, LookupKind};

fn seal(content: &[u8]) -> Vec<u8> {
    let checksum = crc32c::crc32c(content).to_le_bytes();
    [content, b"uj-look\x01", &checksum, &[0; 4]].concat()
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, file)) = data.split_first() else {
        return;
    };
    let file = &seal(file);
    match choice % 3 {
        0 => {
            let Ok(lookup) = LookupFile::from_bytes(file, LookupKind::Java) else {
                return;
            };
            let frames = ["a", "b", "c"].map(|function| JavaFrame {
                class: "a.a",
                function,
                file: "SourceFile",
                line: u32::from(*choice) / 3,
            });
            let _ = lookup.java(&frames, Some("a.b"));
        }
        1 => {
            let Ok(lookup) = LookupFile::from_bytes(file, LookupKind::Native) else {
                return;
            };
            for offset in [
                0,
                1,
                64,
                0x1000,
                0x1234,
                0x20_000,
                u64::from(u32::MAX),
                u64::MAX,
            ] {
                let _ = lookup.native(offset);
            }
        }
        _ => {
            let Ok(lookup) = LookupFile::from_bytes(file, LookupKind::JavaScript) else {
                return;
            };
            for place in [0, 1, 2, 7, 100, u32::MAX] {
                let _ = lookup.java_script(1, place, "a");
                let _ = lookup.java_script(place, 1, "a");
            }
        }
    }
});
