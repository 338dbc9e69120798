//! Source maps as tools write them: fields twice, in other spellings and of other types.

use unjank_symbols::{Unusable, convert, inspect};

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
    is_read(with(r#""sections":[]"#).as_bytes());
    is_read(with(r#""sections":null"#).as_bytes());
    is_read(with(r#""sourceRoot":7"#).as_bytes());
    is_read(["\u{feff}", &map].concat().as_bytes());
    is_read([")]}'", &map].concat().as_bytes());
    is_read([")]}'\n", &map].concat().as_bytes());
    is_read([")]}\r\n", &map].concat().as_bytes());
    is_read([")]}'\n\u{feff}", &map].concat().as_bytes());
}

#[test]
fn a_character_that_is_none_does_not_cost_the_map() {
    let map = source_map();
    let half = r#""sourcesContent":["const a='\ud83d'; "#;
    is_read(map.replace(r#""sourcesContent":[""#, half).as_bytes());
    is_read(
        map.replace(r#""round""#, r#""\udc00\u00e9\"\ud83d\ude00""#)
            .as_bytes(),
    );
    is_read(with(r#""file":"\ud83d""#).as_bytes());
    for bad in [&b"\xe9"[..], b"\xed\xa0\xbd"] {
        for place in [&b"round(price)}"[..], b"shop.min.js"] {
            let at = map.as_bytes().windows(place.len());
            let at = at.enumerate().find(|(_, part)| part == &place).unwrap().0;
            let (before, after) = map.as_bytes().split_at(at);
            is_read(&[before, bad, after].concat());
        }
    }
}

#[test]
fn maps_without_places_or_with_wrong_ones_are_refused_at_once() {
    let map = source_map();
    let places = r#""mappings":"SAASA,EAAIC,UAAcC,cAClBA""#;
    assert!(map.contains(places), "{map}");
    for (other, reason) in [
        (r#""mappings":null"#, "no `mappings`"),
        (r#""mapping":"AAAA""#, "no `mappings`"),
        (r#""mappings":"SAASAA?!""#, ""),
        (r#""mappings":"AACA,AAZZZZZA""#, ""),
        (r#""mappings":7"#, ""),
    ] {
        let map = map.replace(places, other);
        let error = inspect(map.as_bytes()).unwrap_err();
        assert!(matches!(error, Unusable::Damaged(_)), "{other}: {error}");
        assert!(error.to_string().contains(reason), "{error}");
        assert!(convert(map.as_bytes(), 0, &mut Vec::new()).is_err());
    }
}

#[test]
fn sections_behind_the_last_line_or_column_are_refused() {
    let map = serde_json::json!({"version": 3, "sources": ["a.js"], "names": [], "mappings": "AAAA,CAAC;AACA"});
    let most = u32::MAX;
    for (line, column, is_refused) in [
        (most, 0, true),
        (0, most, true),
        (most - 1, 0, false),
        (0, most - 1, false),
    ] {
        let parts = serde_json::json!({
            "version": 3, "debugId": ID, "sections": [{"offset": {"line": line, "column": column}, "map": map}],
        });
        let found = inspect(parts.to_string().as_bytes());
        let refused = found.err().map(|error| error.to_string());
        let is_named = refused.as_ref().map(|reason| reason.contains("section"));
        assert_eq!(is_named, is_refused.then_some(true), "{refused:?}");
    }
}

#[test]
fn files_that_begin_like_symbol_files_are_faults() {
    let map = source_map();
    let wide = |big: bool| -> Vec<u8> {
        let units = ["\u{feff}", &map].concat();
        let bytes = |unit| match big {
            true => u16::to_be_bytes(unit),
            false => u16::to_le_bytes(unit),
        };
        units.encode_utf16().flat_map(bytes).collect()
    };
    let files = [
        (map.split_at(60).0.as_bytes().to_vec(), "damaged"),
        (b"\0asm\x01\0\0\0\0\xff".to_vec(), "ends early"),
        (b"SYSB\x02\0\0\0PK".to_vec(), "ends early"),
        (b"MODULE Linux".to_vec(), "ends early"),
        (
            b"\xef\xbb\xbfMODULE Linux x86_64 0403 a\n".to_vec(),
            "byte order mark",
        ),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec(), "gzip"),
        (b"PK\x03\x04\x14\0\0\0".to_vec(), "ZIP"),
        (b"\xfd7zXZ\0\0\x04".to_vec(), "xz"),
        (b"\x28\xb5\x2f\xfd\x04\0".to_vec(), "zstd"),
        (wide(false), "UTF-16"),
        (wide(true), "UTF-16"),
        (wide(false).split_off(2), "UTF-16"),
    ];
    for (file, reason) in files {
        let error = inspect(&file).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert!(!error.is_unsuitable(), "{error}");
    }
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
