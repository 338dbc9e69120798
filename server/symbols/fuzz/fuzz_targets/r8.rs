//! Reads arbitrary R8 mappings. Run with `cargo +nightly fuzz run r8 <folder of inputs>` in `server/symbols`.
//!
//! The input is a stack, one frame `class.function:line` a line, then a line `===`, then the mapping. Without `===` all of it is the
//! mapping.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unjank_symbols::{JavaFrame, LookupFile, LookupKind, convert, inspect};

fn frame(text: &str) -> JavaFrame<'_> {
    let (name, line) = text.split_once(':').unwrap_or((text, ""));
    let (class, function) = name.rsplit_once('.').unwrap_or(("a", name));
    JavaFrame {
        class,
        function,
        file: "SourceFile",
        line: line.parse().unwrap_or_default(),
    }
}

fuzz_target!(|data: &[u8]| {
    let separator = b"\n===\n";
    let place = data
        .windows(separator.len())
        .position(|window| window == separator);
    let (stack, mapping) = match place {
        Some(place) => (&data[..place], &data[place + separator.len()..]),
        None => (&[][..], data),
    };
    let Ok(found) = inspect(mapping) else {
        return;
    };
    let kind = LookupKind::from(found[0].format);
    let mut converted = Vec::new();
    if kind != LookupKind::Java || convert(mapping, 0, &mut converted).is_err() {
        return;
    }
    let lookup = LookupFile::from_bytes(&converted, kind).expect("a converted file opens");
    let stack = String::from_utf8_lossy(stack);
    let mut frames: Vec<JavaFrame<'_>> = stack.lines().take(32).map(frame).collect();
    frames.extend(["a.a:1", "a.a", "a.b:7", "b.a:0", "a.a.a:3"].map(frame));
    for thrown in [None, Some("java.lang.NullPointerException")] {
        let located = lookup.java(&frames, thrown);
        assert_eq!(located.len(), frames.len());
        for locations in located.into_iter().flatten() {
            assert!(locations.len() <= 64, "locations are bounded");
        }
    }
});
