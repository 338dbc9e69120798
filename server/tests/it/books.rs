//! The books, which compare acknowledged events, stored rows and roll-ups hour by hour, balance or report each difference.

use std::process::Command;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::dead_letters::{dead_letter, server_with_a_refused_batch};
use crate::engine::UNJANK;
use crate::server::{Server, spans};
use crate::wait;

const FOR_EVER: [&str; 7] = [
    "--retention-days=0",
    "--retention-hourly-days=0",
    "--retention-daily-days=0",
    "--books-rebuild=off",
    "--books-interval-ms=300",
    "--log=warn",
    "--flush-interval-ms=10",
];
const HOUR: Duration = Duration::from_secs(3_600);
const MINUTES: Duration = Duration::from_secs(600);

/// Runs `unjank rollups check` for the days around the test's time. Returns its exit code and its output.
pub(crate) fn check(server: &Server, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(UNJANK)
        .args([
            "rollups",
            "check",
            "--from",
            "2026-11-19",
            "--to",
            "2026-11-22",
        ])
        .args(arguments)
        .args(server.flags())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!error.contains("error:"), "{error}");
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

/// Returns the signal, the kind of books, and the expected and found counts of each line.
fn lines(text: &str) -> Vec<String> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        [words[1], words[2], words[4], words[5]].join(" ")
    };
    text.lines().skip(1).map(line).collect()
}

pub(crate) async fn mutate(server: &Server, sql: &str) {
    server
        .query(&format!("{sql} SETTINGS mutations_sync = 2"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_books_report_missing_and_surplus_events() {
    let server = Server::with(&FOR_EVER[..3]).await;
    server.ready().await;
    let mut batch = spans(5);
    batch["metrics"] = json!([
        {"name": "fps", "time": "2026-11-20T11:59:59Z", "value": 60},
        {"name": "fps", "time": "2026-11-19T11:59:59Z", "value": 50},
        {"name": "fps", "time": "1999-11-19T11:59:59Z", "value": 50},
    ]);
    batch["traffic"] = json!([{"day": "2026-11-19", "source": "app", "network": "wifi", "tx_bytes": 70, "rx_bytes": 1, "requests": 3}]);
    batch["sdk_health"] =
        json!({"dropped": [{"signal": "spans", "reason": "queue_full", "count": 4}]});
    assert_eq!(server.send(&batch).await.status, 202);
    assert_eq!(server.send(&batch).await.status, 202);
    server.drained().await;
    let source = "SELECT source, mark > 0 FROM traffic_daily ORDER BY project";
    assert_eq!(server.query(source).await, "\t1\napp\t0");
    let (code, text) = check(&server, &[]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.starts_with("balanced: 72 hours of 13 signals"),
        "{text}"
    );

    mutate(&server, "ALTER TABLE metrics DELETE WHERE value = 50").await;
    mutate(
        &server,
        "ALTER TABLE spans_daily DELETE WHERE project != ''",
    )
    .await;
    mutate(
        &server,
        "ALTER TABLE sdk_drops_hourly UPDATE count = 9 WHERE project != ''",
    )
    .await;
    mutate(
        &server,
        "ALTER TABLE traffic_daily UPDATE tx_bytes = 60 WHERE project != ''",
    )
    .await;
    mutate(
        &server,
        "ALTER TABLE batches UPDATE accepted = 11 WHERE project != ''",
    )
    .await;
    let (code, text) = check(&server, &["--project", "default"]);
    assert_eq!(code, 1);
    let mut found = lines(&text);
    found.sort();
    let all = [
        "batches batches 11 9",
        "metrics arrivals 2 1",
        "metrics hours 0 1",
        "sdk_drops days 9 4",
        "sdk_drops hours 4 9",
        "spans days 5 0",
        "traffic_bytes days 70 60",
    ];
    assert_eq!(found, all, "{text}");
    let (code, text) = check(&server, &["--signal", "spans"]);
    assert_eq!((code, lines(&text)), (1, vec![all[5].to_owned()]));
    assert_eq!(check(&server, &["--project", "another"]).0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_books_balance_before_and_after_dead_letters_are_retried_or_dropped() {
    for then in ["retry", "drop"] {
        let server = server_with_a_refused_batch().await;
        assert_eq!(check(&server, &[]).0, 0, "while the rows are dead letters");
        server
            .query("ALTER TABLE spans DROP CONSTRAINT no_poison")
            .await;
        dead_letter(&server, &[then, "--all"]);
        let (code, text) = check(&server, &[]);
        assert_eq!(code, 0, "{then}: {text}");
    }
}

/// Waits until the auditor reports this difference between raw spans and their hourly roll-up.
async fn differs(server: &Server, events: f64) {
    let name = r#"unjank_books_difference_events{books="hours",signal="spans"}"#;
    wait::until("the difference", async || {
        (server.metric(name).await - events).abs() < 0.1
    })
    .await;
}

/// Waits until the auditor has finished rounds that began after this call.
pub(crate) async fn audited(server: &Server) {
    for _ in 0..3 {
        let checked = || server.metric("unjank_books_checked_timestamp_seconds");
        let before = checked().await;
        // Without this, the next round could have the same time.
        server.pass(Duration::from_secs(1));
        wait::until("a round", async || checked().await > before).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_auditor_reports_a_difference_until_it_is_gone() {
    let server = Server::with(&FOR_EVER[..5]).await;
    server.ready().await;
    let token = server.token("viewer --project default").await;
    let path = "/api/v1/projects/default/books";
    server.send(&spans(5)).await;
    server.drained().await;
    server.query("INSERT INTO spans (project, start, received_at, sample_rate, range_id) VALUES ('default', '2026-11-20 11:10:00', '2026-11-20 00:00:00', 1, 1)").await;
    server.pass(HOUR + MINUTES);
    differs(&server, 1.0).await;
    let books = server.call(&token, Method::GET, path, None).await.body;
    assert_eq!(books["difference_events"], 1, "{books}");
    let hours = books["differences"].as_array().unwrap().iter();
    let hours: Vec<_> = hours.filter(|one| one["books"] == "hours").collect();
    assert_eq!(
        *hours[0],
        json!({"signal": "spans", "books": "hours", "at": 1_795_172_400_000_000_i64, "expected": 6, "found": 5})
    );
    mutate(&server, "ALTER TABLE spans DELETE WHERE range_id = 1").await;
    differs(&server, 0.0).await;
    let books = server.call(&token, Method::GET, path, None).await.body;
    assert_eq!(books["difference_events"], 0);
    assert_eq!(books["checked_to"], 1_795_179_600_000_000_i64, "13:00");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_wait_for_their_roll_up_are_a_difference_only_once_stuck() {
    let server = Server::with(&FOR_EVER[..5]).await;
    server.ready().await;
    server.send(&spans(5)).await;
    server.drained().await;
    // Insert a row of a fold with a later number than the last mark.
    server.query("INSERT INTO spans (project, start, received_at, sample_rate, range_id) \
                  SELECT 'default', '2026-11-20 11:10:00', '2026-11-20 12:00:00', 1, max(range_id) + bitShiftLeft(toUInt128(1), 36) FROM spans").await;
    server.pass(HOUR + MINUTES);
    audited(&server).await;
    differs(&server, 0.0).await;
    let checked = server
        .metric("unjank_books_checked_timestamp_seconds")
        .await;
    assert!(checked > 0.0);
    server.pass(HOUR * 25);
    differs(&server, 1.0).await;
}
