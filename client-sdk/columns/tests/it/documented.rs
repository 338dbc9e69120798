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

/// Two spans of a trace, with their envelope.
const EXAMPLE: &str = r#"{
  "batch_id": "0192f0c0-7b3e-7cc1-9a55-0123456789ab", "session_id": "0192f0bf-0000-7000-8000-00000000a001",
  "resource": {"app_id": "com.example.shop", "install_id": "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11"},
  "spans": [
    {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b8", "parent_span_id": "00f067aa0ba902b7",
      "name": "total", "start": "2026-11-20T12:00:00.001Z", "uptime_ms": 5001, "duration_us": 1250, "thread": "main", "on_main_thread": true},
    {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7",
      "name": "checkout", "start": "2026-11-20T12:00:00Z", "uptime_ms": 5000, "duration_us": 41250, "thread": "main", "on_main_thread": true}]
}"#;

#[test]
fn the_example_of_the_page_is_what_is_written() {
    let batch = serde_json::from_str(EXAMPLE).unwrap();
    let written: String = unjank_columns::write(&batch)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let (_, example) = PAGE.split_once("## An example").unwrap();
    let block = example.split("```").nth(3).unwrap();
    // Each line has bytes, two spaces or more, and what they are.
    let documented: String = block
        .lines()
        .skip(1)
        .filter_map(|line| line.trim_start().split("  ").next())
        .flat_map(|bytes| bytes.split_whitespace())
        .collect();
    assert_eq!(documented, written);
}
