//! The alerts for Prometheus: they ask for metrics that the server has, and say what to do.

use std::collections::BTreeSet;
use std::fs;

use regex::Regex;

use crate::server::{Server, spans};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../dashboards/prometheus/");

fn file(name: &str) -> String {
    let text = fs::read_to_string(format!("{FOLDER}{name}")).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Name and text of each alert.
fn alerts() -> Vec<(String, String)> {
    let rules = file("alerts.yml");
    let alerts = rules.split("- alert: ").skip(1);
    alerts
        .map(|alert| {
            let (name, text) = alert.split_once('\n').unwrap();
            (name.to_owned(), text.to_owned())
        })
        .collect()
}

#[test]
fn every_alert_says_how_bad_it_is_and_what_to_do() {
    let tests = file("alerts_test.yml");
    let severity = Regex::new(r"severity: (critical|warning|info)\}").unwrap();
    let alerts = alerts();
    let names: BTreeSet<_> = alerts.iter().map(|alert| &alert.0).collect();
    assert_eq!(names.len(), alerts.len(), "names repeat");
    for (name, text) in &alerts {
        assert!(severity.is_match(text), "{name} has no severity");
        for annotation in ["summary: \"", "what_to_do: \""] {
            assert!(text.contains(annotation), "{name} has no {annotation}");
        }
        assert!(
            tests.contains(&format!("alertname: {name}\n")),
            "{name} has no test"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_ask_for_metrics_that_the_server_has() {
    let server = Server::start().await;
    server.send(&spans(1)).await;
    server.drained().await;
    let metrics = server.metrics().await;
    let has: BTreeSet<_> = metrics
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let named = Regex::new(r"\b(?:unjank|process)_\w+").unwrap();
    for (name, text) in alerts() {
        let expression = text.split("labels:").next().unwrap();
        let mut asks = named.find_iter(expression).peekable();
        assert!(
            asks.peek().is_some() || name == "UnjankDown",
            "{name} asks nothing"
        );
        for metric in asks {
            assert!(
                has.contains(metric.as_str()),
                "{name}: the server has no {}",
                metric.as_str()
            );
        }
    }
}
