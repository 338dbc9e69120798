//! Every position of a script has the answer of the map, as the format of source maps defines it.

use std::fmt::Write;

use unjank_symbols::{LookupFile, LookupKind, convert};

use super::{ID, lookup};

/// A place of the script and its original: lines and columns from 0. `None`: the script has no original from here on.
type Place = ((u32, u32), Option<(u32, u32, u32)>);

/// Writes places in the form of source maps.
fn mappings(places: &[Place]) -> String {
    let (mut line, mut text) = (0, String::new());
    let (mut column, mut last) = (0, (0, 0, 0));
    for ((to, at), original) in places {
        if *to > line {
            text.extend((line..*to).map(|_| ';'));
            (line, column) = (*to, 0);
        } else if !text.is_empty() && !text.ends_with(';') {
            text.push(',');
        }
        number(&mut text, *at, column);
        column = *at;
        if let Some(original) = *original {
            number(&mut text, original.0, last.0);
            number(&mut text, original.1, last.1);
            number(&mut text, original.2, last.2);
            last = original;
        }
    }
    text
}

/// Writes a difference in base 64, five bits a letter.
fn number(text: &mut String, to: u32, from: u32) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let difference = i64::from(to) - i64::from(from);
    let mut rest = (difference.unsigned_abs() << 1) | u64::from(difference < 0);
    loop {
        let more = if rest > 31 { 32 } else { 0 };
        let letter = usize::try_from((rest & 31) | more).unwrap();
        text.push(char::from(LETTERS[letter]));
        rest >>= 5;
        if rest == 0 {
            break;
        }
    }
}

fn map(places: &[Place]) -> String {
    serde_json::json!({
        "version": 3, "debugId": ID, "names": [],
        "sources": ["src/cart.js", "src/price.js"],
        "mappings": mappings(places),
    })
    .to_string()
}

/// What the format says: the last place at or before a position counts, on the same line only.
fn expected(places: &[Place], position: (u32, u32)) -> Option<(u32, u32)> {
    let mut before = places
        .iter()
        .filter(|(place, _)| place.0 == position.0 && *place <= position);
    let (file, line, _) = before.next_back()?.1?;
    Some((file, line + 1))
}

fn check(places: &[Place], lookup: &LookupFile) {
    let lines = places.last().unwrap().0.0 + 2;
    for line in 0..lines {
        for column in 0..40 {
            let found = lookup.java_script(line + 1, column + 1, "a");
            let found = found.map(|found| {
                let file = u32::from(found.file.ends_with("price.js"));
                (file, found.line)
            });
            let right = expected(places, (line, column));
            assert_eq!(found, right, "{line}:{column} of {places:?}");
        }
    }
}

#[test]
fn a_line_may_begin_where_the_line_before_ended() {
    // An object literal that a formatter spreads over lines: all of them are one place of the source.
    let same = Some((0, 4, 2));
    let cases: [&[Place]; 5] = [
        &[((0, 0), same), ((1, 0), same), ((2, 4), same)],
        &[
            ((0, 0), Some((0, 0, 0))),
            ((0, 9), same),
            ((1, 0), same),
            ((1, 9), Some((1, 7, 0))),
        ],
        &[
            ((0, 3), same),
            ((3, 0), same),
            ((3, 5), same),
            ((3, 9), same),
            ((4, 1), same),
        ],
        // Places without an original end the place before.
        &[
            ((0, 0), same),
            ((0, 5), None),
            ((1, 0), None),
            ((1, 5), same),
            ((2, 0), same),
            ((2, 3), None),
        ],
        // Only the column of the source differs.
        &[
            ((0, 0), same),
            ((0, 5), Some((0, 4, 9))),
            ((1, 0), Some((0, 4, 9))),
            ((1, 2), same),
        ],
    ];
    for places in cases {
        check(places, &lookup(map(places).as_bytes(), 0));
    }
}

#[test]
fn made_up_maps_have_every_position() {
    let mut seed = 7_u32;
    let mut random = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 16) % below
    };
    for _ in 0..60 {
        let mut places: Vec<Place> = Vec::new();
        let all = (0..12).flat_map(|line| (0..20).map(move |column| (line, column * 2)));
        for place in all {
            if random(5) == 0 {
                let original = (random(2), random(3), random(2));
                places.push((place, (random(6) > 0).then_some(original)));
            }
        }
        if !places.is_empty() {
            check(&places, &lookup(map(&places).as_bytes(), 0));
        }
    }
}

#[test]
fn maps_of_parts_have_every_position() {
    let same = Some((0, 4, 2));
    let part: &[Place] = &[
        ((0, 0), same),
        ((0, 8), Some((1, 2, 0))),
        ((1, 0), Some((1, 2, 0))),
    ];
    let inner: serde_json::Value = serde_json::from_str(&map(part)).unwrap();
    let section = |line: u32, column: u32| serde_json::json!({"offset": {"line": line, "column": column}, "map": inner});
    let whole = serde_json::json!({"version": 3, "debugId": ID, "sections": [section(0, 0), section(2, 3)]});
    let places = [
        part,
        &[
            ((2, 3), same),
            ((2, 11), Some((1, 2, 0))),
            ((3, 0), Some((1, 2, 0))),
        ],
    ];
    check(&places.concat(), &lookup(whole.to_string().as_bytes(), 0));
}

#[test]
fn a_large_map_stays_small() {
    let mut text = String::new();
    for line in 0..20_000 {
        write!(
            text,
            "{}AAAA,CAAA,EAAA,GAAA",
            if line > 0 { ";" } else { "" }
        )
        .unwrap();
    }
    let map = serde_json::json!({"version": 3, "debugId": ID, "sources": ["a.js"], "names": [], "mappings": text});
    let mut converted = Vec::new();
    convert(map.to_string().as_bytes(), 0, &mut converted).unwrap();
    // One row a line: repeated places within a line say nothing new.
    assert!(converted.len() < 20_000 * 24, "{}", converted.len());
    assert!(LookupFile::from_bytes(&converted, LookupKind::JavaScript).is_ok());
}
