//! Demangles arbitrary symbols. Run with `cargo +nightly fuzz run names <folder of symbols>` in `server/symbols`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unjank_symbols::{LookupFile, LookupKind, convert, inspect};

fuzz_target!(|data: &[u8]| {
    let symbol = String::from_utf8_lossy(data).replace(['\n', '\r'], "");
    let file = format!(
        "MODULE Linux x86_64 492E2DD23CC306CA9C494EEF1533A3810 a\nPUBLIC 1000 0 {symbol}\n"
    );
    let mut converted = Vec::new();
    if inspect(file.as_bytes()).is_err() || convert(file.as_bytes(), 0, &mut converted).is_err() {
        return;
    }
    let lookup =
        LookupFile::from_bytes(&converted, LookupKind::Native).expect("a converted file opens");
    for location in lookup.native(0x1000) {
        assert!(location.class.len() + location.function.len() <= 2 * 4096);
    }
});
