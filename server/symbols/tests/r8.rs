//! Cases of R8's retrace: what a lookup file answers for obfuscated frames.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;

use unjank_symbols::{
    Format, JavaFrame, Location, LookupFile, LookupKind, Origin, convert, inspect,
};

fn lookup(mapping: &str) -> LookupFile {
    let found = inspect(mapping.as_bytes()).unwrap();
    assert_eq!(found[0].format, Format::R8);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lookup");
    let mut out = File::create(&path).unwrap();
    convert(mapping.as_bytes(), 0, &mut out).unwrap();
    LookupFile::open(&path, LookupKind::Java).unwrap()
}

/// Returns the locations of frames like `a.b.c:12`, or `a.b.c` without a line; in brackets, how a location follows from its frame.
fn retrace(mapping: &str, frames: &str, thrown: Option<&str>) -> String {
    let frames: Vec<JavaFrame<'_>> = frames.split_whitespace().map(frame).collect();
    let text = |frame: &JavaFrame<'_>, locations: Option<Vec<Location>>| match locations {
        None => format!("? {}.{}", frame.class, frame.function),
        Some(locations) => locations.iter().map(shown).collect::<Vec<_>>().join("\n"),
    };
    let located = lookup(mapping).java(&frames, thrown);
    let lines = frames.iter().zip(located);
    let lines: Vec<String> = lines
        .map(|(frame, locations)| text(frame, locations))
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("\n")
}

fn frame(text: &str) -> JavaFrame<'_> {
    let (name, line) = text.split_once(':').unwrap_or((text, "0"));
    let (class, function) = name.rsplit_once('.').unwrap();
    JavaFrame {
        class,
        function,
        file: "SourceFile",
        line: line.parse().unwrap(),
    }
}

fn shown(location: &Location) -> String {
    let origin = match location.origin {
        Origin::Called => "",
        Origin::Inlined => " (inlined)",
        Origin::Ambiguous => " (ambiguous)",
    };
    format!(
        "{}.{} {}:{}{origin}",
        location.class, location.function, location.file, location.line
    )
}

#[test]
fn inlined_functions_become_frames() {
    let mapping = "\
com.android.tools.r8.naming.retrace.Main -> a.a:
    1:1:void foo(long):1:1 -> a
    2:2:void com.example.Helper.inner(int):7:7 -> a
    2:2:void foo(long):5 -> a
";
    assert_eq!(
        retrace(mapping, "a.a.a:2 a.a.a:1", None),
        "com.example.Helper.inner Helper.java:7 (inlined)\n\
         com.android.tools.r8.naming.retrace.Main.foo Main.java:5\n\
         com.android.tools.r8.naming.retrace.Main.foo Main.java:1"
    );
}

#[test]
fn a_frame_without_a_line_names_every_function_it_may_be() {
    let mapping = "\
com.android.tools.r8.R8 -> a.a:
    void foo(int) -> a
    void bar(int, int) -> a
";
    assert_eq!(
        retrace(mapping, "a.a.a", None),
        "com.android.tools.r8.R8.foo R8.java:0 (ambiguous)\n\
         com.android.tools.r8.R8.bar R8.java:0 (ambiguous)"
    );
}

#[test]
fn an_outline_is_dropped_and_gives_its_caller_the_line() {
    let mapping = "\
# { id: 'com.android.tools.r8.mapping', version: '2.0' }
outline.Class -> a:
    1:2:int outline() -> a
# { 'id':'com.android.tools.r8.outline' }
some.Class -> b:
    1:1:void foo.bar.Baz.qux():42:42 -> s
    4:4:int outlineCaller(int):98:98 -> s
    5:5:int outlineCaller(int):100:100 -> s
    27:27:int outlineCaller(int):0:0 -> s
# { 'id':'com.android.tools.r8.outlineCallsite', 'positions': { '1': 4, '2': 5 } }
"
    .replace('\'', "\"")
    .replace("{ id:", "{ \"id\":")
    .replace("version:", "\"version\":");
    assert_eq!(
        retrace(&mapping, "a.a:1 b.s:27", None),
        "some.Class.outlineCaller Class.java:98"
    );
}

#[test]
fn code_that_shows_only_in_an_exception_is_rewritten() {
    let mapping = "\
# {\"id\":\"com.android.tools.r8.mapping\",\"version\":\"2.0\"}
some.Class -> a:
    4:4:void other.Class.inlinee():23:23 -> a
    4:4:void caller(other.Class):7 -> a
    # {\"id\":\"com.android.tools.r8.rewriteFrame\",\"conditions\":[\"throws(Ljava/lang/NullPointerException;)\"],\"actions\":[\"removeInnerFrames(1)\"]}
";
    assert_eq!(
        retrace(mapping, "a.a:4", None),
        "other.Class.inlinee Class.java:23 (inlined)\nsome.Class.caller Class.java:7"
    );
    assert_eq!(
        retrace(mapping, "a.a:4", Some("java.lang.NullPointerException")),
        "some.Class.caller Class.java:7"
    );
}

#[test]
fn unknown_classes_stay_unknown_and_known_classes_keep_unknown_functions() {
    let mapping = "com.example.Cart -> a.b:\n    1:1:void pay():30:30 -> a\n";
    assert_eq!(
        retrace(mapping, "java.util.Arrays.sort:90 a.b.zz:3", None),
        "? java.util.Arrays.sort\ncom.example.Cart.zz Cart.java:3"
    );
}

#[test]
fn the_ids_of_a_mapping_are_those_that_devices_and_tools_send() {
    let mapping = "\
# compiler: R8
# pg_map_id: 98F7D7D
# pg_map_hash: SHA-256 98f7d7d10a5d5f5b9ea4e1ef6bc19a2b9bf34b0ad9ab2ec1a7ddc9ad4e0d8c41
com.example.Cart -> a.b:
    1:1:void pay():30:30 -> a
";
    let found = inspect(mapping.as_bytes()).unwrap();
    assert_eq!(found[0].ids.len(), 3);
    assert_eq!(
        found[0].ids[1..],
        [
            "98f7d7d",
            "98f7d7d10a5d5f5b9ea4e1ef6bc19a2b9bf34b0ad9ab2ec1a7ddc9ad4e0d8c41"
        ]
    );
}
