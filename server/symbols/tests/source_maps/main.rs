//! Source maps and bundles of them: what is in them, and what they answer.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bundle;
mod functions;
mod odd_maps;
mod positions;

use std::time::{Duration, Instant};

use unjank_symbols::{Format, LookupFile, LookupKind, Unusable, convert, inspect};

const ID: &str = "67e9247c-814e-392b-a027-dbde6748fcbf";

/// `function pay(price){return round(price)}` and `function round(x){return x*3}`, minified to one line.
const SCRIPT: &str = "function a(n){return b(n)}function b(n){return n*3}";

fn source_map() -> String {
    // Places: column, file, line, column, name, each relative to the one before. `pay`, `price`, and `round` where it is called and
    // where it is defined.
    let places = ["SAASA", "EAAIC", "UAAcC", "cAClBA"];
    serde_json::json!({
        "version": 3,
        "debugId": ID,
        "file": "shop.min.js",
        "sources": ["src/cart.js"],
        "sourcesContent": ["function pay(price){return round(price)} function round(x){return x*3}"],
        "names": ["pay", "price", "round"],
        "mappings": places.join(","),
    })
    .to_string()
}

fn lookup(data: &[u8], index: u32) -> LookupFile {
    let mut converted = Vec::new();
    convert(data, index, &mut converted).unwrap();
    LookupFile::from_bytes(&converted, LookupKind::JavaScript).unwrap()
}

#[test]
fn a_source_map_by_itself_has_lines_and_names() {
    let map = source_map();
    let found = inspect(map.as_bytes()).unwrap();
    assert_eq!(found[0].format, Format::SourceMap);
    assert_eq!(found[0].ids, ["67e9247c814e392ba027dbde6748fcbf"]);
    assert_eq!(found[0].name, "shop.min.js");
    let location = lookup(map.as_bytes(), 0).java_script(1, 10, "a").unwrap();
    assert_eq!((location.function.as_str(), location.line), ("pay", 1));
    assert_eq!(location.file, "src/cart.js");
    assert!(lookup(map.as_bytes(), 0).java_script(7, 1, "a").is_none());
    assert!(lookup(map.as_bytes(), 0).java_script(0, 0, "a").is_none());
}

#[test]
fn a_script_in_the_bundle_gives_names_of_functions() {
    let data = bundle::of(&[("shop.min.js", SCRIPT, &source_map())]);
    let found = inspect(&data).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name, "~/shop.min.js");
    // In the middle of the body of `a`, between two places of the map.
    let location = lookup(&data, 0).java_script(1, 24, "a").unwrap();
    assert_eq!((location.function.as_str(), location.line), ("pay", 1));
}

#[test]
fn offsets_of_hermes_bytecode_are_columns_of_the_first_line() {
    let map = serde_json::json!({
        "version": 3,
        "debug_id": ID,
        "sources": ["src/cart.js"],
        "names": [],
        // Offsets 0 and 100 of the bytecode: lines 1 and 8.
        "mappings": "AAAA,oGAOA",
        // Functions: the file itself, `pay` from line 1 column 9, `round` from line 8 column 0.
        "x_facebook_sources": [[{"names": ["<global>", "pay", "round"], "mappings": "AAA,SCA;ACO"}]],
    })
    .to_string();
    let lookup = lookup(map.as_bytes(), 0);
    let location = lookup.java_script(1, 105, "").unwrap();
    assert_eq!((location.file.as_str(), location.line), ("src/cart.js", 8));
    assert_eq!(location.function, "round");
}

#[test]
fn maps_without_an_id_are_refused_with_advice() {
    let map = source_map().replace("debugId", "id");
    let refused = inspect(map.as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("sourcemaps inject"), "{refused}");
    let files = [("manifest.json".to_owned(), r#"{"files":{}}"#)];
    let refused = inspect(&bundle::zipped(&files)).unwrap_err().to_string();
    assert!(refused.contains("sourcemaps inject"), "{refused}");
}

#[test]
fn a_bundle_of_many_scripts_is_listed_in_linear_time() {
    let map = source_map();
    let scripts = |count| vec![("shop.min.js", SCRIPT, map.as_str()); count];
    let time = |count| {
        let data = bundle::of(&scripts(count));
        let started = Instant::now();
        assert_eq!(inspect(&data).unwrap().len(), count);
        started.elapsed()
    };
    let (few, many) = (time(1_000), time(10_000));
    // In quadratic time, ten times as many scripts take a hundred times as long. Other work of the machine disturbs the measurement.
    assert!(many < few * 40 + Duration::from_secs(5), "{few:?} {many:?}");
    let refused = inspect(&bundle::of(&scripts(10_001)));
    assert!(matches!(refused, Err(Unusable::TooMany(_))), "{refused:?}");
}

#[test]
fn names_in_a_manifest_are_no_paths_of_the_machine() {
    let manifest = r#"{"files":{"../../../../etc/passwd":{"type":"source_map","url":"a","headers":{"debug-id":"ID"}}}}"#;
    let manifest = manifest.replace("ID", ID);
    let data = bundle::zipped(&[("manifest.json".to_owned(), &manifest)]);
    // The bundle has no such file, although the machine has.
    assert_eq!(inspect(&data).unwrap().len(), 1);
    let refused = convert(&data, 0, &mut Vec::new()).unwrap_err().to_string();
    assert!(refused.contains("not found"), "{refused}");
}

#[test]
fn sizes_in_a_bundle_may_be_lies() {
    let data = bundle::of(&[("shop.min.js", SCRIPT, &source_map())]);
    // The central directory says that each file has one byte.
    let mut lies = data.clone();
    let entry = b"PK\x01\x02";
    let places: Vec<usize> = (0..data.len() - 4)
        .filter(|place| &data[*place..place + 4] == entry)
        .collect();
    for place in places {
        lies[place + 24..place + 28].copy_from_slice(&1_u32.to_le_bytes());
    }
    if inspect(&lies).is_ok() {
        drop(convert(&lies, 0, &mut Vec::new()));
    }
}

#[test]
fn deeply_nested_json_is_refused() {
    let depth = 100_000;
    let brackets = ["[".repeat(depth), "]".repeat(depth)].concat();
    let map = source_map().replacen('{', &format!(r#"{{"x":{brackets},"#), 1);
    drop(inspect(map.as_bytes()));
    drop(convert(map.as_bytes(), 0, &mut Vec::new()));
    let parts = r#"{"sections":[{"offset":{"line":0,"column":0},"map":"#.repeat(1_000);
    let map = source_map().replacen('{', &format!(r#"{{"x":{parts}"#), 1);
    assert!(inspect(map.as_bytes()).is_err());
    let nested = format!("{}{}{}", parts, source_map(), "}]}".repeat(1_000));
    let nested = nested.replacen('{', &format!(r#"{{"debugId":"{ID}","#), 1);
    assert!(convert(nested.as_bytes(), 0, &mut Vec::new()).is_err());
}
