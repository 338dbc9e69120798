//! The page about the format names each table, field and number that the code has.

const PAGE: &str = include_str!("../../../../docs/columnar-batch.md");
const SIGNALS: &str = include_str!("../../src/signals.rs");

#[test]
fn the_page_has_every_field_with_its_number() {
    let mut tables = 0;
    for table in SIGNALS.split("rows! {").skip(1) {
        let lines = table.lines().map(str::trim);
        let fields = lines.filter_map(|line| {
            let (number, field) = line.split_once(' ')?;
            let (name, _) = field.split_once(": ")?;
            let number: u8 = number.parse().ok()?;
            Some(format!("{number} `{name}`"))
        });
        let fields: Vec<_> = fields.collect();
        assert!(!fields.is_empty(), "{table}");
        let has_all = |line: &&str| fields.iter().all(|field| line.contains(field.as_str()));
        let row = PAGE
            .lines()
            .filter(|line| line.starts_with("| "))
            .find(has_all);
        assert!(row.is_some(), "no row of the page has {fields:?}");
        tables += 1;
    }
    assert!(tables > 20, "{tables} tables");
}

#[test]
fn the_page_has_every_section() {
    let signals = unjank_protocol::Signal::ALL.iter();
    for (number, signal) in (8..).zip(signals.take(9)) {
        let rows = [
            format!("| {number} | `{}`", signal.as_str()),
            format!("| {number} | the table of `{}`", signal.as_str()),
        ];
        assert!(
            rows.iter().any(|row| PAGE.contains(row.as_str())),
            "{rows:?}"
        );
    }
}

#[test]
fn the_examples_of_the_page_are_what_is_written() {
    let (_, examples) = PAGE.split_once("## Two examples").unwrap();
    let blocks: Vec<_> = examples.split("```").skip(1).step_by(2).collect();
    let (examples, rest) = blocks.as_chunks::<2>();
    assert!(examples.len() == 2 && rest.is_empty(), "{blocks:?}");
    for [json, bytes] in examples {
        let batch = serde_json::from_str(json.trim_start_matches("json")).unwrap();
        let written: String = unjank_columns::write(&batch)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        // Each line has bytes, two spaces or more, and what they are.
        let documented: String = bytes
            .lines()
            .skip(1)
            .filter_map(|line| line.trim_start().split("  ").next())
            .flat_map(|bytes| bytes.split_whitespace())
            .collect();
        assert_eq!(documented, written);
    }
}
