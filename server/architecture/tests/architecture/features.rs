//! The page about the founding systems: its tests exist, and its table counts its rows.

use std::fs;
use std::path::Path;

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

#[test]
fn the_states_of_the_features_are_counted() {
    let page = fs::read_to_string(Path::new(ROOT).join(PAGE)).unwrap();
    let features = rows(&page, is_feature);
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
