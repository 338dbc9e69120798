//! The page about the founding systems: its places and tests exist, and its table counts its rows.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const PAGE: &str = "docs/founding-features.md";
const STATES: [&str; 3] = ["full", "partly", "deliberately different"];

/// Returns the cells of the rows of a table whose first cell passes.
fn rows(page: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<Vec<&str>> {
    let lines = page.lines().filter(|line| line.starts_with("| "));
    let rows = lines.map(|line| line.split('|').skip(1).map(str::trim).collect());
    rows.filter(|row: &Vec<&str>| is_wanted(row[0])).collect()
}

fn is_feature(cell: &str) -> bool {
    ["H-", "P-", "D-"]
        .iter()
        .any(|system| cell.starts_with(system))
}

/// Whether a file has a test of this name.
fn has(file: &str, test: &str) -> bool {
    let declared = match Path::new(file)
        .extension()
        .and_then(|extension| extension.to_str())
    {
        Some("rs") => format!("fn {test}("),
        Some("mjs") => format!("function {test}("),
        _ => format!("'{test}'"),
    };
    let text = fs::read_to_string(Path::new(ROOT).join(file)).unwrap_or_default();
    text.contains(&declared)
}

#[test]
fn each_feature_names_tests_that_exist() {
    let page = fs::read_to_string(Path::new(ROOT).join(PAGE)).unwrap();
    let mut wrong = Vec::new();
    for row in rows(&page, is_feature) {
        let [id, .., cell, _] = row.as_slice() else {
            panic!("{row:?}")
        };
        let quoted = cell.split('`').skip(1).step_by(2);
        let tests: Vec<_> = quoted.filter_map(|name| name.split_once(": ")).collect();
        if tests.is_empty() && !cell.contains("enchmark") {
            wrong.push(format!("{id} names no test"));
        }
        let missing = tests.iter().filter(|(file, test)| !has(file, test));
        wrong.extend(missing.map(|test| format!("{id}: {test:?}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whether a quoted text is the path of a file or folder.
fn is_path(quoted: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    quoted.contains('/') && quoted.chars().all(is_plain)
}

/// Returns the text of all files of a folder.
fn texts(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let text = |path: PathBuf| match path.is_dir() {
        true => texts(&path),
        false => fs::read_to_string(&path).unwrap(),
    };
    paths.map(text).collect()
}

/// Whether code declares an item of this name.
fn declares(code: &str, name: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    ["fn ", "struct ", "enum ", "trait ", "mod "]
        .iter()
        .any(|kind| {
            let declaration = format!("{kind}{name}");
            let mut after = code.split(&declaration).skip(1);
            after.any(|rest| !rest.starts_with(is_word))
        })
}

#[test]
fn each_feature_names_places_that_exist() {
    let page = fs::read_to_string(Path::new(ROOT).join(PAGE)).unwrap();
    let crates = ["unjank", "macros", "protocol", "stack-sampler"];
    let folder = |name: &str| Path::new(ROOT).join("client-sdk").join(name).join("src");
    let code: String = crates.map(|name| texts(&folder(name))).concat();
    let mut missing = Vec::new();
    for row in rows(&page, is_feature) {
        for quoted in row[3].split('`').skip(1).step_by(2) {
            let item = ["unjank::", "Config::", "Reporter::", "Live::"]
                .iter()
                .find_map(|of| quoted.strip_prefix(of)?.rsplit("::").next());
            let is_gone = match item {
                Some(item) => !declares(&code, item),
                None => is_path(quoted) && !Path::new(ROOT).join(quoted).exists(),
            };
            if is_gone {
                missing.push(format!("{}: {quoted}", row[0]));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_states_of_the_features_are_counted() {
    let page = fs::read_to_string(Path::new(ROOT).join(PAGE)).unwrap();
    let features = rows(&page, is_feature);
    assert!(page.contains(&format!("There are {} rows:", features.len())));
    for counted in rows(&page, |cell| STATES.contains(&cell)) {
        for (place, system) in ["H-", "P-", "D-"].iter().enumerate() {
            let of_system = features.iter().filter(|row| row[0].starts_with(system));
            let found = of_system.filter(|row| row[2] == counted[0]).count();
            assert_eq!(
                found.to_string(),
                counted[2 + place],
                "{system} {}",
                counted[0]
            );
        }
    }
}
