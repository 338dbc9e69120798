//! The example with a real server: what it reports to have done matches what arrives.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

mod compare;
mod first;
mod server;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod shipped;
mod shown;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::server::{Server, program};

/// Rules that mark the app's own code, and the categories of code that block main threads.
const RULES: &str = r#"
version = 2
built_in = true

[[rule]]
match = "serde_json::"
means = "category"
category = "JSON on main thread"

[[rule]]
match = "std::fs::"
means = "category"
category = "file on main thread"

[[rule]]
match = "tokio::"
means = "ignore"

[[rule]]
match = "shop::"
means = "in_app"
"#;

fn shop(server: &Server, data_dir: &Path) -> Value {
    run_shop(&program("examples/shop"), server, data_dir)
}

fn run_shop(shop: &Path, server: &Server, data_dir: &Path) -> Value {
    let output = Command::new(shop)
        .args(["--server", &server.url(), "--key", "demo", "--data-dir"])
        .arg(data_dir)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn within(row: &str, truth: &[&Value], tolerance: i64) {
    let values: Vec<i64> = row
        .split('\t')
        .map(|value| value.parse().expect(row))
        .collect();
    for (value, truth) in values.iter().zip(truth) {
        let truth = truth.as_i64().unwrap();
        assert!(
            (value - truth).abs() <= tolerance,
            "{row:?} is not {truth} ± {tolerance}"
        );
    }
}

#[test]
fn the_stored_events_match_the_actions_of_the_shop() {
    let server = Server::start(RULES);
    server.configure(&json!({"base": {
        "pages": [{"page": "MainActivity", "api": ["/home/head", "/poi/filter"]}],
        "traffic": {"sources": [{"source": "api", "hosts": ["*.example.com"]}]},
    }}));
    let data = server.folder.path().join("shop");
    let truth = shop(&server, &data);
    assert_eq!(truth["sent"], true, "{truth}");
    server.wait("draining the log", || server.is_drained());

    let page = server.sql("SELECT t1_ms, t2_ms, t3_ms, total_ms FROM page_loads");
    let parts = ["t1_ms", "t2_ms", "t3_ms", "total_ms"].map(|part| &truth["page"][part]);
    within(&page, &parts, 50);

    let frames = server.sql("SELECT sum(frames_drawn), sum(frames_dropped) FROM frame_windows WHERE page = 'FeedActivity'");
    within(
        &frames,
        &[&truth["frames"]["drawn"], &truth["frames"]["dropped"]],
        0,
    );

    let traffic = server.sql("SELECT sum(tx_bytes), sum(rx_bytes), sum(requests) FROM traffic WHERE source = 'api' AND network = 'wifi'");
    let bytes = ["tx_bytes", "rx_bytes", "requests"].map(|part| &truth["traffic"][part]);
    within(&traffic, &bytes, 0);

    let stalls = server.sql(
        "SELECT culprit, duration_ms, page, length(run_log.message) > 0 FROM janks \
         INNER JOIN stack_class_current AS class ON class.stack_hash = janks.stack_hash AND class.project = janks.project ORDER BY start",
    );
    let stalls: Vec<&str> = stalls.lines().collect();
    assert_eq!(stalls.len(), 3, "{stalls:?}");
    for (row, truth) in stalls.iter().zip(truth["stalls"].as_array().unwrap()) {
        let columns: Vec<&str> = row.split('\t').collect();
        let culprit = truth["culprit"].as_str().unwrap();
        assert_eq!(columns[0], format!("shop::stalls::{culprit}"), "{row}");
        within(columns[1], &[&truth["duration_ms"]], 200);
        assert_eq!(columns[2..], ["CartActivity", "1"]);
    }
    assert_eq!(
        server.sql("SELECT count() FROM app_starts WHERE kind = 'cold'"),
        "1"
    );
    assert_eq!(
        server.sql("SELECT uniqExact(config_revision) FROM janks WHERE config_revision = 1"),
        "1"
    );
}
