//! `unjank compare` on versions and sessions that a server stored.

use std::process::Output;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::engine::UNJANK;
use crate::server::{Server, batch, span};

const PERIOD: [&str; 4] = [
    "--from",
    "2026-11-20T10:00:00Z",
    "--to",
    "2026-11-20T13:00:00Z",
];
/// Number of sessions of each version.
const SESSIONS: u32 = 8;
/// Number of spans and of page loads in each session.
const TIMES: u32 = 10;

async fn compare(server: &Server, arguments: &[&str]) -> Output {
    let mut command = tokio::process::Command::new(UNJANK);
    command.arg("compare").args(arguments).args(PERIOD);
    command.args(server.flags());
    command.env_remove("GITHUB_STEP_SUMMARY");
    command.output().await.unwrap()
}

fn document(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{error}"))
}

/// A session with `pay` spans and stalls, both multiplied by `slower`, and with page loads of the cart, which `slower` does not affect.
fn session(id: Uuid, version: &str, number: u32, slower: u32) -> Value {
    let mut batch = batch();
    batch["session_id"] = json!(id);
    batch["resource"]["app_version"] = json!(version);
    let spans = (0..TIMES).map(|time| {
        let mut paid = span();
        paid["name"] = json!("pay");
        paid["span_id"] = json!(format!("{:016x}", time + 1));
        paid["duration_us"] = json!((40_000 + 100 * (number + time)) * slower);
        paid
    });
    batch["spans"] = spans.collect();
    let loads = (0..TIMES).map(|time| {
        json!({"page": "Cart", "start": "2026-11-20T11:59:20Z", "t1_ms": 100 + number + time, "total_ms": 400 + number + time})
    });
    batch["page_loads"] = loads.collect();
    let stalls = (0..slower).map(|second| {
        json!({"start": format!("2026-11-20T11:59:{:02}Z", 30 + second), "duration_ms": 900, "page": "Cart",
               "stack": [{"class": "com.example.Cart", "function": "pay"}], "samples": [{"offset_ms": 300, "stack": []}]})
    });
    batch["janks"] = stalls.collect();
    batch
}

fn row<'d>(document: &'d Value, name: &str, metric: &str, statistic: &str) -> &'d Value {
    let rows = document["rows"].as_array().unwrap();
    let found = rows.iter().find(|row| {
        row["name"] == name && row["metric"] == metric && row["statistic"] == statistic
    });
    found.unwrap_or_else(|| panic!("{document}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_and_sessions_in_the_store_are_compared() {
    let server = Server::start().await;
    server.ready().await;
    let mut ids = Vec::new();
    for number in 0..SESSIONS {
        for (version, slower) in [("4.11.0", 1), ("4.12.0", 3)] {
            let id = Uuid::new_v4();
            ids.push(id);
            let answer = server.send(&session(id, version, number, slower)).await;
            assert_eq!(
                (answer.status.as_u16(), &answer.body["rejected"]),
                (202, &json!([]))
            );
        }
    }
    server.drained().await;

    let versions = ["--base", "4.11.0", "--head", "4.12.0", "--format", "json"];
    let output = compare(&server, &versions).await;
    let found = document(&output);
    assert_eq!(output.status.code(), Some(1), "{found}");
    let paid = row(&found, "pay", "duration_ms", "p50");
    assert_eq!(
        (&paid["verdict"], &paid["counted"], &paid["head_count"]),
        (&json!("regressed"), &json!("runs"), &json!(SESSIONS)),
        "{paid}"
    );
    // Percentiles from the store are within 2 % of the durations that were sent.
    let head = paid["head"].as_f64().unwrap();
    assert!((120.0..126.5).contains(&head), "{paid}");
    let stalls = row(&found, "Cart", "stalls", "mean");
    assert_eq!(
        (&stalls["verdict"], &stalls["base"], &stalls["head"]),
        (&json!("regressed"), &json!(1.0), &json!(3.0))
    );
    for (metric, statistic) in [("t1_ms", "p50"), ("total_ms", "p95")] {
        let load = row(&found, "Cart", metric, statistic);
        assert_eq!(load["verdict"], "unchanged", "{load}");
    }
    let same = ["--base", "4.11.0", "--head", "4.11.0"];
    assert_eq!(compare(&server, &same).await.status.code(), Some(0));

    let session = |id: Uuid| format!("session_id={id}");
    let (base, head) = (session(ids[0]), session(ids[1]));
    let sessions = ["--base", &base, "--head", &head, "--format", "json"];
    let found = document(&compare(&server, &sessions).await);
    assert_eq!(found["base"]["runs"], 1);
    let paid = row(&found, "pay", "duration_ms", "p50");
    assert_eq!(
        (&paid["verdict"], &paid["head_count"]),
        (&json!("not_enough_samples"), &json!(TIMES))
    );

    let none = compare(&server, &["--base", "4.11.0", "--head", "5.0.0"]).await;
    assert_eq!(none.status.code(), Some(2));
    let error = String::from_utf8_lossy(&none.stderr);
    assert!(error.contains("no events of version 5.0.0"), "{error}");
}
