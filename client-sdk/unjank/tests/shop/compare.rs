//! Compares two builds of the shop, one of which has a real slow-down.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::server::program;

/// Other programs run on this machine as well: a sleep of 5 ms took 11 ms next to ten compilers. So only the median fails the
/// gate, and only if it more than doubles by more than any wait for a processor.
const BUDGETS: &str = r#"
[defaults]
allow_percent = 100

[[budget]]
span = "*"
metric = "duration_ms"
allow = 20

[[budget]]
page = "*"
metric = "total_ms"
allow = 20

[[budget]]
page = "*"
metric = "total_ms"
statistic = "p95"
gate = "warn"

[[budget]]
span = "*"
metric = "duration_ms"
statistic = "p95"
gate = "warn"
"#;
const RUNS: usize = 3;

/// Runs of the shop, of the same build again, and of its slow build. They alternate, so that a busy minute affects all of them.
struct Rehearsed {
    base: Vec<PathBuf>,
    again: Vec<PathBuf>,
    slow: Vec<PathBuf>,
}

fn rehearse(folder: &Path) -> Rehearsed {
    let file = |name: &str, number: usize| folder.join(format!("{name}-{number}.jsonl"));
    let data = |name: &str, number: usize| folder.join(format!("{name}-{number}"));
    let mut all = Rehearsed {
        base: Vec::new(),
        again: Vec::new(),
        slow: Vec::new(),
    };
    for number in 0..RUNS {
        for (name, reports) in [("base", &mut all.base), ("again", &mut all.again)] {
            let report = file(name, number);
            let mut shop = Command::new(program("examples/shop"));
            shop.arg("--report").arg(&report);
            shop.arg("--data-dir").arg(data(name, number));
            assert!(shop.status().unwrap().success());
            reports.push(report);
        }
        let report = file("slow", number);
        let mut slow = Command::new(program("examples/shop_slow"));
        slow.arg(&report).arg(data("slow", number));
        assert!(slow.status().unwrap().success());
        all.slow.push(report);
    }
    all
}

fn compare(folder: &Path, base: &[PathBuf], head: &[PathBuf], more: &[&str]) -> Output {
    let budgets = folder.join("unjank-budgets.toml");
    std::fs::write(&budgets, BUDGETS).unwrap();
    let mut command = Command::new(program("unjank"));
    command.arg("compare").arg("--budgets").arg(budgets);
    for (side, reports) in [("--base", base), ("--head", head)] {
        for report in reports {
            command.arg(side).arg(report);
        }
    }
    let summary = folder.join("summary.md");
    command.env("GITHUB_STEP_SUMMARY", summary);
    command.args(more).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_slower_build_fails_the_gate_and_the_same_build_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let Rehearsed { base, again, slow } = rehearse(folder);

    let found = compare(folder, &base, &slow, &[]);
    let report = text(&found);
    let error = String::from_utf8_lossy(&found.stderr);
    assert_eq!(found.status.code(), Some(1), "{report}{error}");
    assert!(report.starts_with("<!-- unjank:report -->\n"), "{report}");
    let line = |what: &str, metric: &str| {
        let cells = format!("| {what} | {metric} |");
        let line = report.lines().find(|line| line.starts_with(&cells));
        line.unwrap_or_else(|| panic!("{cells} is not in {report}"))
    };
    for (what, metric) in [
        ("span total\\_price", "duration_ms p50"),
        ("CartActivity", "total_ms p50"),
    ] {
        let line = line(what, metric);
        assert!(line.contains("❌ regressed"), "{line}");
    }
    let drawing = line("span draw\\_cart", "duration_ms p50");
    assert!(drawing.contains("unchanged"), "{drawing}");
    let summary = std::fs::read_to_string(folder.join("summary.md")).unwrap();
    assert_eq!(summary, report);

    let document = compare(folder, &base, &slow, &["--format", "json"]);
    let document: Value = serde_json::from_slice(&document.stdout).unwrap();
    assert_eq!(document["schema_version"], 1);
    assert_eq!(document["gate"], "fail");

    let same = compare(folder, &base, &again, &[]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same));
    let back = compare(folder, &slow, &base, &[]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back));
    assert!(text(&back).contains("✅ improved"), "{}", text(&back));
}

#[test]
fn a_failed_comparison_is_neither_a_pass_nor_a_regression() {
    let folder = tempfile::tempdir().unwrap();
    let gone = [folder.path().join("gone.jsonl")];
    let output = compare(folder.path(), &gone, &gone, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot read"));
    let output = compare(folder.path(), &[], &gone, &[]);
    assert_eq!(output.status.code(), Some(2));
    let output = compare(folder.path(), &gone, &gone, &["--from", "2h"]);
    assert_eq!(output.status.code(), Some(2));
    let output = compare(folder.path(), &gone, &gone, &["--log", "[["]);
    assert_eq!(output.status.code(), Some(2));
}
