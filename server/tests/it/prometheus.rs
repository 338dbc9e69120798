//! The Prometheus alerts and dashboards use metrics that the server exports, and their annotations instruct the operator.

use std::collections::BTreeSet;
use std::fs;

use regex::Regex;
use serde_json::json;

use crate::grafana::board::{Board, boards_of_metrics};
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
fn every_alert_has_a_severity_annotations_and_a_test() {
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
async fn alerts_and_dashboards_use_only_metrics_that_the_server_exports() {
    let server = Server::start().await;
    server.send(&spans(1)).await;
    server.drained().await;
    let metrics = server.metrics().await;
    let exported: BTreeSet<_> = metrics
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let named = Regex::new(r"\b(?:unjank|process)_\w+").unwrap();
    let boards = boards_of_metrics();
    let panels = boards.iter().flat_map(Board::expressions);
    let panels = panels.map(|(title, expression)| (title.to_owned(), expression.to_owned()));
    for (name, text) in alerts().into_iter().chain(panels) {
        let expression = text.split("labels:").next().unwrap();
        let mut used = named.find_iter(expression).peekable();
        assert!(
            used.peek().is_some() || name == "UnjankDown",
            "{name} uses no metric"
        );
        for metric in used {
            assert!(
                exported.contains(metric.as_str()),
                "{name}: the server does not export {}",
                metric.as_str()
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_skew_and_free_disk_space_are_exported() {
    let server = Server::with(&["--min-free-bytes", "1000000"]).await;
    for sent_at in [
        "2026-11-20T12:00:00Z",
        "2026-11-20T12:10:00Z",
        "2026-11-20T11:59:10Z",
    ] {
        let mut batch = spans(1);
        batch["sent_at"] = json!(sent_at);
        // The duplicate does not count towards the clock skew.
        assert_eq!(server.send(&batch).await.status, 202);
        assert_eq!(server.send(&batch).await.status, 202);
    }
    let mut silent = spans(1);
    silent.as_object_mut().unwrap().remove("sent_at");
    assert_eq!(server.send(&silent).await.status, 202);
    for (within, batches) in [
        ("1", 1.0),
        ("30", 1.0),
        ("60", 2.0),
        ("300", 2.0),
        ("3600", 3.0),
    ] {
        let bucket = format!("unjank_clock_skew_seconds_bucket{{le=\"{within}\"}}");
        assert_eq!(server.metric(&bucket).await, batches, "{within}");
    }
    assert_eq!(server.metric("unjank_clock_skew_seconds_count").await, 3.0);
    assert!(server.metric("unjank_disk_free_bytes").await > 1e6);
    assert_eq!(server.metric("unjank_disk_min_free_bytes").await, 1e6);
}
