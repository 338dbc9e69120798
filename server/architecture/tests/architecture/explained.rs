//! The page about troubles explains each alert, each problem code, and each metric that no alert uses.

use std::fs;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const PAGE: &str = "docs/troubleshooting.md";

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(file)).unwrap()
}

/// Returns what stands between two marks in the lines of a file that have both.
fn names(file: &str, before: &str, after: &str) -> Vec<String> {
    let text = read(file);
    let rests = text.lines().filter_map(|line| line.split_once(before));
    let names = rests.filter_map(|(_, rest)| rest.split_once(after));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

#[test]
fn each_alert_and_each_problem_code_is_explained() {
    let page = read(PAGE);
    let codes = names("server/src/http/api/problem_codes.rs", "    (\"", "\", &[");
    let lines = read("dashboards/prometheus/alerts.yml");
    let alerts = lines
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .map(str::to_owned);
    let alerts: Vec<_> = alerts.collect();
    assert!(
        codes.len() > 50 && alerts.len() > 20,
        "{codes:?} {alerts:?}"
    );
    let is_missing = |name: &&String| !page.contains(&format!("`{name}`"));
    let missing: Vec<_> = codes.iter().chain(&alerts).filter(is_missing).collect();
    assert!(missing.is_empty(), "explain {missing:?} in {PAGE}");
}

#[test]
fn each_metric_has_an_alert_or_is_explained() {
    let (page, alerts) = (read(PAGE), read("dashboards/prometheus/alerts.yml"));
    let metrics = names("docs/reference/metrics.md", "| `unjank_", "` |");
    assert!(metrics.len() > 40, "{metrics:?}");
    let is_missing = |name: &&String| {
        let metric = format!("unjank_{name}");
        !alerts.contains(&metric) && !page.contains(&format!("`{metric}`"))
    };
    let missing: Vec<_> = metrics.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "explain {missing:?} in {PAGE}");
}
