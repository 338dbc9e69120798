//! Source maps as tools write them: fields twice, in other spellings and of other types.

use unjank_symbols::{Unusable, inspect};

use super::{ID, lookup, source_map};

const OTHER: &str = "00000000-1111-4222-8333-444444444444";

/// Inserts text at the start of the map.
fn with(text: &str) -> String {
    source_map().replacen('{', &format!("{{{text},"), 1)
}

/// Checks that a map is read, and answers.
fn is_read(map: &[u8]) {
    let found =
        inspect(map).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(map)));
    assert_eq!(found[0].ids, ["67e9247c814e392ba027dbde6748fcbf"]);
    let location = lookup(map, 0).java_script(1, 24, "a").unwrap();
    assert_eq!((location.file.as_str(), location.line), ("src/cart.js", 1));
}

#[test]
fn a_map_may_have_its_id_in_both_spellings() {
    let both = with(&format!(r#""debug_id":"{ID}""#));
    is_read(both.as_bytes());
    assert!(inspect(both.as_bytes()).unwrap()[0].warnings.is_empty());
    let upper = with(&format!(r#""debug_id":"{}""#, ID.to_uppercase()));
    assert!(inspect(upper.as_bytes()).unwrap()[0].warnings.is_empty());
    let older = source_map().replace("debugId", "debug_id");
    is_read(older.as_bytes());
}

#[test]
fn of_two_ids_the_newer_spelling_counts_with_a_warning() {
    for map in [
        with(&format!(r#""debug_id":"{OTHER}""#)),
        format!(
            r#"{},"debug_id":"{OTHER}"}}"#,
            source_map().trim_end_matches('}')
        ),
    ] {
        is_read(map.as_bytes());
        let warnings = &inspect(map.as_bytes()).unwrap()[0].warnings;
        assert!(warnings[0].contains("000000001111"), "{warnings:?}");
    }
}

#[test]
fn odd_fields_are_read() {
    let map = source_map();
    is_read(with(r#""file":7"#).as_bytes());
    is_read(with(r#""file":null,"file":"a.js""#).as_bytes());
    is_read(with(r#""version":3"#).as_bytes());
    is_read(with(r#""mappings":"","names":[]"#).as_bytes());
    is_read(with(r#""debugId":null"#).as_bytes());
    is_read(with(r#""debug_id":"none""#).as_bytes());
    is_read(map.replace(r#""version":3"#, r#""version":"3""#).as_bytes());
    is_read(
        map.replace(r#""version":3"#, r#""version":3,"sourceRoot":null"#)
            .as_bytes(),
    );
    is_read(["\u{feff}", &map].concat().as_bytes());
    is_read([")]}'\n", &map].concat().as_bytes());
    is_read([")]}\r\n", &map].concat().as_bytes());
}

#[test]
fn ids_that_are_no_uuids_are_read() {
    let map = source_map().replace(ID, "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00");
    assert_eq!(inspect(map.as_bytes()).unwrap()[0].ids[0].len(), 40);
    assert!(lookup(map.as_bytes(), 0).java_script(1, 24, "a").is_some());
}

#[test]
fn a_map_that_cannot_be_read_says_why() {
    let map = source_map();
    let (cut, _) = map.split_at(map.len() - 20);
    let broken = map.replace("\"names\"", "names");
    for map in [cut, &broken] {
        let error = inspect(map.as_bytes()).unwrap_err();
        assert!(matches!(error, Unusable::Damaged(_)), "{error}");
        assert!(!error.is_unsuitable(), "{error}");
    }
    for other in [
        r#"{"name":"shop","version":"1.0.0"}"#,
        "{}",
        "{ color: red }",
        "[1]",
    ] {
        let error = inspect(other.as_bytes()).unwrap_err();
        assert!(matches!(error, Unusable::UnknownFormat), "{error}");
        assert!(error.is_unsuitable());
    }
}
