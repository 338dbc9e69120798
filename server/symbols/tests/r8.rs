//! R8's published retrace cases, and cases of the same kinds: what a lookup file answers for obfuscated stacks.
//!
//! The cases are in `tests/r8`, one after the other: `## name`, the mapping, `---`, the stack, `---`, and what a lookup answers. In a
//! stack, a line without `at` is the obfuscated class of an exception. In an answer, `?` marks a frame of a class that the mapping does
//! not have; frames that R8 added have no line.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use unjank_symbols::{
    Format, JavaFrame, Location, LookupFile, LookupKind, Origin, convert, inspect,
};

struct Case<'t> {
    name: &'t str,
    mapping: &'t str,
    stack: &'t str,
    answer: &'t str,
}

fn cases(text: &str) -> Vec<Case<'_>> {
    let (_, cases) = text.split_once("## ").unwrap();
    let case = |text| -> Case<'_> {
        let [head, stack, answer] =
            <[&str; 3]>::try_from(str::split(text, "\n---\n").collect::<Vec<_>>())
                .unwrap_or_else(|parts| panic!("a case has three parts: {parts:?}"));
        let (name, mapping) = head.split_once('\n').unwrap();
        Case {
            name,
            mapping,
            stack,
            answer: answer.trim(),
        }
    };
    cases.split("\n## ").map(case).collect()
}

fn lookup(mapping: &str) -> LookupFile {
    let found = inspect(mapping.as_bytes()).unwrap();
    assert_eq!(found[0].format, Format::R8);
    let mut converted = Vec::new();
    convert(mapping.as_bytes(), 0, &mut converted).unwrap();
    LookupFile::from_bytes(&converted, LookupKind::Java).unwrap()
}

/// Reads `at class.function(file:line)`.
fn frame(text: &str) -> Option<JavaFrame<'_>> {
    let text = text.strip_prefix("at ")?;
    let (name, place) = text.split_once('(').unwrap();
    let (class, function) = name.rsplit_once('.').unwrap();
    let place = place.strip_suffix(')').unwrap();
    let line = |(_, line): (&str, &str)| line.parse().ok();
    let line = place.rsplit_once(':').and_then(line);
    let file = line.and_then(|_: u32| place.rsplit_once(':'));
    Some(JavaFrame {
        class,
        function,
        file: file.map_or(place, |(file, _)| file),
        line: line.unwrap_or_default(),
    })
}

fn shown(location: &Location) -> String {
    let origin = match location.origin {
        Origin::Called => "",
        Origin::Inlined => " (inlined)",
        Origin::Ambiguous => " (ambiguous)",
    };
    let line = match location.line {
        0 => String::new(),
        line => format!(":{line}"),
    };
    format!(
        "{}.{} {}{line}{origin}",
        location.class, location.function, location.file
    )
}

fn retrace(case: &Case<'_>) -> String {
    let lookup = lookup(case.mapping);
    let lines: Vec<&str> = case.stack.lines().collect();
    let mut shown_lines = Vec::new();
    // An exception begins a stack.
    for stack in lines.chunk_by(|_, next| next.starts_with("at ")) {
        let thrown = stack.first().copied().filter(|line| frame(line).is_none());
        let frames: Vec<JavaFrame<'_>> = stack.iter().filter_map(|line| frame(line)).collect();
        let located = lookup.java(&frames, thrown);
        for (frame, locations) in frames.iter().zip(located) {
            match locations {
                None => shown_lines.push(format!("? {}.{}", frame.class, frame.function)),
                Some(locations) => shown_lines.extend(locations.iter().map(shown)),
            }
        }
    }
    shown_lines.join("\n")
}

fn check(text: &str) {
    let mut wrong = String::new();
    for case in cases(text) {
        let answer = retrace(&case);
        if answer != case.answer {
            wrong += &format!(
                "\n## {}\n{}\n--- instead of\n{}\n",
                case.name, answer, case.answer
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn ambiguous_frames_name_every_function_they_may_be() {
    check(include_str!("r8/ambiguous.txt"));
}

#[test]
fn source_files_are_known_or_guessed() {
    check(include_str!("r8/files.txt"));
}

#[test]
fn inlined_functions_become_frames() {
    check(include_str!("r8/inline.txt"));
}

#[test]
fn lines_follow_from_ranges() {
    check(include_str!("r8/lines.txt"));
}

#[test]
fn ranges_may_be_wrong_or_for_all_lines() {
    check(include_str!("r8/ranges.txt"));
}

#[test]
fn outlines_are_dropped_and_give_their_callers_the_line() {
    check(include_str!("r8/outline.txt"));
}

#[test]
fn code_that_shows_only_in_an_exception_is_rewritten() {
    check(include_str!("r8/rewritten.txt"));
}

#[test]
fn code_that_nobody_wrote_is_dropped() {
    check(include_str!("r8/synthetic.txt"));
}

/// The beginning of a mapping as R8 8.3 writes it, with the right hash.
fn hashed(content: &str) -> String {
    let hash = "86671244587ee3f058416a67f8146934d623a3b91bdc2220003923e4299641ca";
    format!("# compiler: R8\n# pg_map_id: 8667124\n# pg_map_hash: SHA-256 {hash}\n{content}")
}

#[test]
fn a_mapping_that_changed_after_the_build_is_noticed() {
    let content = "com.example.Cart -> a.b:\n    1:1:void pay():30:30 -> a\n";
    let warnings = |mapping: &str| inspect(mapping.as_bytes()).unwrap()[0].warnings.clone();
    let whole = hashed(content);
    assert!(warnings(&whole).is_empty(), "{:?}", warnings(&whole));
    let changed = [
        whole.replace("30:30", "31:31"),
        whole.trim_end().to_owned(),
        whole.replace('\n', "\r\n"),
    ];
    for mapping in changed {
        assert!(
            warnings(&mapping)[0].contains("changed or cut off"),
            "{mapping}"
        );
    }
    // Without a hash, nothing is known.
    assert!(warnings(content).is_empty());
}

#[test]
fn a_mapping_without_lines_has_a_warning() {
    let mapping = "com.example.Cart -> a.b:\n    void pay() -> a\n";
    let found = inspect(mapping.as_bytes()).unwrap();
    assert!(!found[0].contents.lines);
    assert!(
        found[0].warnings[0].contains("LineNumberTable"),
        "{found:?}"
    );
}

#[test]
fn long_lines_of_a_mapping_are_skipped() {
    let long = "x".repeat(1 << 20);
    let mapping = format!(
        "com.example.Cart -> a.b:\n    1:1:void {long}():30:30 -> a\n# {{\"id\":\"{long}\"}}\n    2:2:void pay():31:31 -> a\n"
    );
    let mut converted = Vec::new();
    convert(mapping.as_bytes(), 0, &mut converted).unwrap();
    assert!(converted.len() < 1_000);
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
        found[0].ids[..2],
        [
            "98f7d7d",
            "98f7d7d10a5d5f5b9ea4e1ef6bc19a2b9bf34b0ad9ab2ec1a7ddc9ad4e0d8c41"
        ]
    );
}

/// A mapping of one class with these places, each of them several times.
fn repeated(places: &[(&[&str], usize)]) -> String {
    let mut mapping = String::from("shop.Cart -> a.a:\n");
    for (place, times) in places {
        for line in place.repeat(*times) {
            mapping.push_str(&format!("    {line}\n"));
        }
    }
    mapping
}

#[test]
fn repetitions_of_inlined_functions_become_one_frame_with_a_warning() {
    let pair = [
        "1:1:int shop.Prices.sum(int):12:12 -> a",
        "1:1:void pay():30 -> a",
    ];
    let chain = [
        "2:4:int shop.Prices.round(int):7:9 -> a",
        "2:4:int shop.Prices.sum(int):12 -> a",
        "2:4:void pay():31 -> a",
    ];
    let one = ["5:5:void pay():33:33 -> a"];
    let mapping = repeated(&[(&pair, 6), (&chain, 2), (&one, 3)]);
    let found = inspect(mapping.as_bytes()).unwrap();
    assert!(found[0].warnings[0].contains("several times"), "{found:?}");
    let lookup = lookup(&mapping);
    let at = |line: u32| {
        let frame = JavaFrame {
            class: "a.a",
            function: "a",
            file: "",
            line,
        };
        let found = lookup.java(&[frame], None).remove(0).unwrap();
        found.iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(
        at(1),
        [
            "shop.Prices.sum Prices.java:12 (inlined)",
            "shop.Cart.pay Cart.java:30"
        ]
    );
    assert_eq!(
        at(3),
        [
            "shop.Prices.round Prices.java:8 (inlined)",
            "shop.Prices.sum Prices.java:12 (inlined)",
            "shop.Cart.pay Cart.java:31",
        ]
    );
    assert_eq!(at(5), ["shop.Cart.pay Cart.java:33"]);
}

#[test]
fn chains_of_inlined_functions_are_not_repetitions() {
    let chain = [
        "1:1:int shop.Prices.sum(int):12:12 -> a",
        "1:1:int shop.Prices.sum(int,int):15 -> a",
        "1:1:int shop.Prices.sum(int):18 -> a",
        "1:1:void pay():30 -> a",
    ];
    let mapping = repeated(&[(&chain, 1)]);
    assert!(inspect(mapping.as_bytes()).unwrap()[0].warnings.is_empty());
    let frame = JavaFrame {
        class: "a.a",
        function: "a",
        file: "",
        line: 1,
    };
    let found = lookup(&mapping).java(&[frame], None).remove(0).unwrap();
    assert_eq!(found.len(), 4, "{found:?}");
}

#[test]
fn mappings_with_a_byte_order_mark_are_read_and_damaged_ones_are_named() {
    let mapping = "\u{feff}# compiler: R8\n# pg_map_id: 0123456789abcdef\nshop.Cart -> a.a:\n    1:1:void pay():30:30 -> a\n";
    assert_eq!(
        inspect(mapping.as_bytes()).unwrap()[0].ids[0],
        "0123456789abcdef"
    );
    let frame = JavaFrame {
        class: "a.a",
        function: "a",
        file: "",
        line: 1,
    };
    let found = lookup(mapping).java(&[frame], None).remove(0).unwrap();
    assert_eq!(shown(&found[0]), "shop.Cart.pay Cart.java:30");
    for damaged in [
        "# compiler: R8\n# pg_map_id: 0123456789abcdef\n",
        "# compiler: R8\n\0\0\0\0\0\0\0\0\0",
    ] {
        let error = inspect(damaged.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("damaged"), "{error}");
        assert!(!error.is_unsuitable());
    }
}
