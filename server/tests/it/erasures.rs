//! Erasures of an install, a user id or a project: only its rows are deleted, and the books balance.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::books::check;
use crate::dead_letters::{dead_letter, server_with_a_refused_batch};
use crate::retention::{shop, start_mutations, stop_mutations};
use crate::server::{Server, batch, span, spans};
use crate::symbols;
use crate::wait;

const ERASED: &str = "0b5a6b9e-6a53-4d3c-9a3c-1d2f6a1e7c11";
const OTHER: &str = "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11";
const DATA: &str = "/api/v1/projects/default/data";
const TABLES: [&str; 10] = [
    "spans",
    "frame_windows",
    "janks",
    "page_loads",
    "app_starts",
    "recompositions",
    "metrics",
    "sdk_health",
    "traffic",
    "batches",
];

/// A batch of an install with every signal, and with a stack that no other install has.
fn everything(install: &str, user: &str) -> Value {
    let at = "2026-11-20T11:59:58Z";
    let stack = |function: &str| json!([{"class": "com.example.Cart", "function": function}]);
    let mut batch = batch();
    batch["resource"]["install_id"] = json!(install);
    batch["resource"]["user_id"] = json!(user);
    batch["spans"] = json!([span(), span()]);
    batch["metrics"] = json!([{"name": "fps", "time": at, "value": 60}]);
    batch["janks"] = json!([
        {"start": at, "duration_ms": 900, "stack": stack("all")},
        {"start": at, "duration_ms": 900, "stack": stack(install)},
    ]);
    batch["page_loads"] = json!([{"page": "Cart", "start": at, "total_ms": 1}]);
    batch["traffic"] = json!([{"day": "2026-11-20", "source": "api", "network": "wifi", "rx_bytes": 1, "tx_bytes": 1, "requests": 1}]);
    batch["frame_windows"] = json!([{"page": "Cart", "start": at, "duration_ms": 1000, "frames_drawn": 60, "refresh_hz": 60}]);
    batch["app_starts"] = json!([{"kind": "cold", "start": at, "duration_ms": 700}]);
    batch["recompositions"] =
        json!([{"function": "Cart", "page": "Cart", "start": at, "count": 3}]);
    batch["sdk_health"] =
        json!({"time": at, "dropped": [{"signal": "spans", "reason": "budget", "count": 3}]});
    batch
}

async fn send(server: &Server, batch: &Value) {
    let answer = server.send(batch).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.body["rejected"]),
        (202, &json!([])),
        "{}",
        answer.body
    );
}

/// Requests an erasure and waits for its end.
pub(crate) async fn erase(server: &Server, path: &str) -> Value {
    let token = server.token("admin").await;
    let asked = server.call(&token, Method::DELETE, path, None).await;
    assert_eq!(asked.status.as_u16(), 202, "{}", asked.body);
    server.pass(Duration::from_secs(3));
    finished(server, asked.body["id"].as_str().unwrap()).await
}

pub(crate) async fn finished(server: &Server, id: &str) -> Value {
    let token = server.token("admin").await;
    let path = format!("/api/v1/projects/default/erasures/{id}");
    let mut erasure = Value::Null;
    wait::until("the erasure", async || {
        erasure = server.call(&token, Method::GET, &path, None).await.body;
        erasure["state"] == "done"
    })
    .await;
    erasure
}

/// Waits until this many batches from `everything` are rolled up.
async fn roll_ups(server: &Server, batches: u64) {
    let sums = "SELECT (SELECT sum(samples) FROM spans_daily) / 2, (SELECT sum(requests) FROM traffic_daily), \
                (SELECT sum(count) FROM usage_hourly), (SELECT sum(samples) FROM recompositions_hourly)";
    let expected = [
        batches.to_string(),
        batches.to_string(),
        batches.to_string(),
        batches.to_string(),
    ];
    server.answers(sums, &expected.join("\t")).await;
}

async fn count(server: &Server, table: &str, condition: &str) -> u64 {
    let sql = format!("SELECT count() FROM {table} WHERE project != '' AND {condition}");
    server.query(&sql).await.parse().unwrap()
}

/// Returns the number of events and of installs in each roll-up.
async fn rolled_up(server: &Server) -> String {
    let mut all = String::new();
    for (table, sum) in [
        ("spans_hourly", "samples"),
        ("spans_daily", "samples"),
        ("metrics_daily", "samples"),
        ("janks_hourly", "samples"),
        ("janks_daily", "samples"),
        ("page_loads_hourly", "samples"),
        ("traffic_daily", "requests"),
        ("frame_windows_daily", "samples"),
        ("app_starts_daily", "count"),
        ("recompositions_hourly", "samples"),
        ("sdk_drops_daily", "count"),
        ("usage_hourly", "count"),
    ] {
        let sql = format!(
            "SELECT sum({sum}), uniqCombined64Merge(12)(installs) FROM {table} WHERE project = 'default'"
        );
        all += &format!("{table} {}\n", server.query(&sql).await);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn an_install_is_erased_without_a_trace_and_others_stay() {
    let mut server = Server::start().await;
    server.ready().await;
    let other = everything(OTHER, "");
    send(&server, &other).await;
    roll_ups(&server, 1).await;
    let before = rolled_up(&server).await;
    let mine = everything(ERASED, "");
    send(&server, &mine).await;
    roll_ups(&server, 2).await;
    assert_ne!(rolled_up(&server).await, before);

    let receipt = erase(&server, &format!("{DATA}?install_id={ERASED}")).await;
    let rows = &receipt["receipt"]["rows"];
    assert_eq!(
        (&rows["spans"], &rows["janks"], &rows["batches"]),
        (&json!(2), &json!(2), &json!(1))
    );
    assert_eq!(receipt["receipt"]["stacks"], 1, "{receipt}");
    assert!(
        receipt["receipt"]["rebuilt_hours"].as_u64() > Some(0),
        "{receipt}"
    );
    for table in TABLES {
        assert_eq!(
            count(&server, table, &format!("install_id = '{ERASED}'")).await,
            0,
            "{table}"
        );
        assert!(
            count(&server, table, &format!("install_id = '{OTHER}'")).await > 0,
            "{table}"
        );
    }
    assert_eq!(rolled_up(&server).await, before);
    let functions = "SELECT arrayStringConcat(arraySort(groupArray(frames.function[1]))) FROM (SELECT DISTINCT stack_hash, `frames.function` FROM stacks)";
    let functions = server
        .query(&functions.replace("frames.function[1]", "`frames.function`[1]"))
        .await;
    assert_eq!(functions, format!("{OTHER}all"));
    let outcomes = "SELECT outcome, sum(count) FROM outcomes WHERE project != '' AND outcome IN ('stored', 'erased') GROUP BY outcome ORDER BY outcome";
    assert_eq!(server.query(outcomes).await, "erased\t11\nstored\t11");
    let (code, books) = check(&server, &[]);
    assert_eq!(code, 0, "{books}");

    // A device that sends the batch again does not bring the data back.
    server.restart().await;
    send_again(&server, &mine).await;
    assert_eq!(
        count(&server, "spans", &format!("install_id = '{ERASED}'")).await,
        0
    );
    // A new batch that arrives after the erasure is stored.
    send(&server, &everything(ERASED, "")).await;
    server.drained().await;
    assert_eq!(
        count(&server, "spans", &format!("install_id = '{ERASED}'")).await,
        2
    );
    assert_eq!(
        server
            .query("SELECT uniqExact(stack_hash) FROM stacks")
            .await,
        "3"
    );
    let token = server.token("admin").await;
    let audit = server
        .call(&token, Method::GET, "/api/v1/projects/default/audit", None)
        .await;
    let audit = audit.body.to_string();
    assert!(
        audit.contains("erasure.requested") && audit.contains("erasure.finished"),
        "{audit}"
    );
    assert!(!audit.contains(ERASED), "{audit}");
}

async fn send_again(server: &Server, batch: &Value) {
    assert_eq!(server.send(batch).await.status.as_u16(), 202);
    server.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_erased_on_every_install_and_other_users_stay() {
    let server = Server::start().await;
    server.ready().await;
    let hostile = "x') OR ('1' = '1";
    for (install, user) in [
        (ERASED, "4711"),
        (OTHER, "4711"),
        (OTHER, ""),
        (OTHER, hostile),
    ] {
        send(&server, &everything(install, user)).await;
    }
    server.drained().await;
    let token = server.token("admin").await;
    let scrubbed = format!("{DATA}?user_id=ann@example.com");
    let scrubbed = server.call(&token, Method::DELETE, &scrubbed, None).await;
    let receipt = erase(&server, &format!("{DATA}?user_id=4711")).await;
    assert_eq!(receipt["receipt"]["is_scrubbed"], false, "{receipt}");
    let receipt = finished(&server, scrubbed.body["id"].as_str().unwrap()).await;
    assert_eq!(receipt["receipt"]["is_scrubbed"], true, "{receipt}");
    let users =
        "SELECT count(), groupUniqArray(user_id) FROM (SELECT user_id FROM spans ORDER BY user_id)";
    assert_eq!(
        server.query(users).await,
        "4\t['','x\\') OR (\\'1\\' = \\'1']"
    );
    erase(
        &server,
        &format!("{DATA}?user_id=x%27%29%20OR%20%28%271%27%20%3D%20%271"),
    )
    .await;
    assert_eq!(
        server
            .query("SELECT count(), max(user_id) FROM spans")
            .await,
        "2"
    );
    let token = server.token("admin").await;
    for bad in [
        "",
        "?user_id=",
        "?user_id=%5Bemail%5D",
        "?install_id=00000000-0000-0000-0000-000000000000",
        "?install_id=%20",
        "?user_id=a&install_id=5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11",
    ] {
        let answer = server
            .call(&token, Method::DELETE, &format!("{DATA}{bad}"), None)
            .await;
        assert!(
            [400, 422].contains(&answer.status.as_u16()),
            "{bad}: {}",
            answer.body
        );
    }
    assert_eq!(server.query("SELECT count() FROM spans").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_is_erased_for_good_with_its_data_and_keys() {
    let server = Server::start().await;
    server.ready().await;
    send(&server, &everything(OTHER, "")).await;
    let (admin, key) = shop(&server).await;
    let mine = everything(ERASED, "").to_string();
    let send_mine = async || {
        let request = server.request_with(&key).body(mine.clone());
        request.send().await.unwrap().status().as_u16()
    };
    wait::until("acceptance of the new key", async || {
        send_mine().await == 202
    })
    .await;
    roll_ups(&server, 2).await;
    let builder = server.token("editor --project shop --only-symbols").await;
    let to = (builder.as_str(), "shop");
    let state = symbols::upload_to(&server, to, &symbols::mapping()).await;
    assert_eq!(state["state"], "ok", "{state}");
    let symbol_files = || {
        let folder = server.data_dir().join("symbols/files/shop");
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    };
    assert_eq!(symbol_files(), 1);

    let ask = async |method, path: &str, body| server.call(&admin, method, path, body).await;
    let view = Some(json!({"name": "Janks", "address": "/jank"}));
    let view = ask(Method::POST, "/api/v1/projects/shop/views", view).await;
    assert_eq!(view.status.as_u16(), 201, "{}", view.body);
    let path = "/api/v1/projects/shop?confirm=";
    let wrong = ask(Method::DELETE, &format!("{path}default"), None).await;
    assert_eq!(wrong.status.as_u16(), 422);
    let asked = ask(Method::DELETE, &format!("{path}shop"), None).await;
    assert_eq!(asked.status.as_u16(), 202, "{}", asked.body);
    server.pass(Duration::from_secs(3));
    let mut receipt = Value::Null;
    wait::until("the erasure", async || {
        let erasures = ask(Method::GET, "/api/v1/erasures", None).await.body;
        receipt = erasures["erasures"][0].clone();
        receipt["state"] == "done"
    })
    .await;
    let rows = &receipt["receipt"]["rows"];
    assert_eq!(
        (&receipt["state"], &rows["spans"]),
        (&json!("done"), &json!(2)),
        "{receipt}"
    );
    let of_roll_ups = ["spans_hourly", "spans_daily", "outcomes"];
    let of_stacks = ["stacks", "stack_classes"];
    for table in TABLES.into_iter().chain(of_roll_ups).chain(of_stacks) {
        let (mine, others) = ("project = 'shop'", "project = 'default'");
        assert_eq!(count(&server, table, mine).await, 0, "{table}");
        assert!(count(&server, table, others).await > 0, "{table}");
    }
    assert_eq!(symbol_files(), 0);
    assert_eq!(send_mine().await, 401);
    let projects = ask(Method::GET, "/api/v1/projects", None).await.body;
    assert_eq!(projects["projects"].as_array().unwrap().len(), 1);
    let again = Some(json!({"id": "shop"}));
    let again = ask(Method::POST, "/api/v1/projects", again).await;
    assert_eq!(again.status.as_u16(), 422, "{}", again.body);
    let (code, books) = check(&server, &[]);
    assert_eq!(code, 0, "{books}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_in_the_ingest_log_and_from_a_backup_are_erased_too() {
    let mut server = Server::away(&["--shutdown-timeout-ms", "100"]).await;
    send(&server, &everything(ERASED, "")).await;
    let token = server.token("admin").await;
    let path = format!("{DATA}?install_id={ERASED}");
    let asked = server.call(&token, Method::DELETE, &path, None).await;
    let id = asked.body["id"].as_str().unwrap().to_owned();
    server.pass(Duration::from_secs(3));
    let path = format!("/api/v1/projects/default/erasures/{id}");
    wait::until("the wait for the log", async || {
        let erasure = server.call(&token, Method::GET, &path, None).await.body;
        erasure["state"] == "running"
            && erasure["receipt"]["step"] == "waiting until the ingest log is drained"
    })
    .await;
    // The server stops, and its successor continues the erasure.
    server.point_at_the_engine().await;
    let receipt = finished(&server, &id).await;
    assert_eq!(receipt["receipt"]["rows"]["spans"], 2, "{receipt}");
    assert_eq!(count(&server, "spans", "1 = 1").await, 0);

    // Rows of a restored backup.
    let back = format!(
        "INSERT INTO metrics (project, install_id, received_at, time, name) VALUES ('default', '{ERASED}', '2026-11-20 11:00:00', '2026-11-20 11:00:00', 'fps')"
    );
    server.query(&back).await;
    server.restart().await;
    server.pass(Duration::from_secs(3));
    server.answers("SELECT count() FROM metrics", "0").await;
    let receipt = finished(&server, &id).await;
    assert_eq!(receipt["receipt"]["rows"]["metrics"], 2, "{receipt}");
    server.pass(Duration::from_secs(31 * 24 * 3_600));
    server.restart().await;
    wait::until("the deletion of the install id", async || {
        let token = server.token("admin").await;
        let path = format!("/api/v1/projects/default/erasures/{id}");
        let known = server.call(&token, Method::GET, &path, None).await.body;
        known["subject"].is_null()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_erased_and_count_as_erased() {
    let server = server_with_a_refused_batch().await;
    send(&server, &everything(ERASED, "")).await;
    server.drained().await;
    let receipt = erase(&server, &format!("{DATA}?install_id={OTHER}")).await;
    assert_eq!(receipt["receipt"]["dead_letters"], 1, "{receipt}");
    assert_eq!(dead_letter(&server, &["list"]).lines().count(), 1);
    let outcomes = "SELECT outcome, sum(count) AS events FROM outcomes WHERE project != '' GROUP BY outcome HAVING events != 0 ORDER BY outcome";
    assert_eq!(server.query(outcomes).await, "erased\t11\nstored\t11");
    let (code, books) = check(&server, &[]);
    assert_eq!(code, 0, "{books}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_erasures_across_restarts_count_no_row_twice() {
    let mut server = Server::start().await;
    server.ready().await;
    let installs: Vec<Uuid> = (0..12).map(|_| Uuid::new_v4()).collect();
    for install in &installs {
        let mut batch = spans(3);
        batch["resource"]["install_id"] = json!(install);
        send(&server, &batch).await;
    }
    send(&server, &everything(OTHER, "")).await;
    server.drained().await;
    let token = server.token("admin").await;
    let mut ids = Vec::new();
    for install in &installs {
        let path = format!("{DATA}?install_id={install}");
        let asked = server.call(&token, Method::DELETE, &path, None).await;
        ids.push(asked.body["id"].as_str().unwrap().to_owned());
    }
    server.pass(Duration::from_secs(3));
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(1_700)).await;
        server.restart().await;
        server.pass(Duration::from_secs(61));
    }
    for id in &ids {
        let receipt = finished(&server, id).await;
        assert_eq!(receipt["receipt"]["rows"]["spans"], 3, "{receipt}");
    }
    assert_eq!(count(&server, "spans", "1 = 1").await, 2);
    let (code, books) = check(&server, &[]);
    assert_eq!(code, 0, "{books}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_receipt_tells_how_far_a_deletion_has_come() {
    let server = Server::start().await;
    server.ready().await;
    send(&server, &everything(ERASED, "")).await;
    roll_ups(&server, 1).await;
    stop_mutations(&server, "spans").await;
    let token = server.token("admin").await;
    let path = format!("{DATA}?install_id={ERASED}");
    let asked = server.call(&token, Method::DELETE, &path, None).await;
    server.pass(Duration::from_secs(3));
    let id = asked.body["id"].as_str().unwrap();
    let path = format!("/api/v1/projects/default/erasures/{id}");
    // A statement that waits for the deletion would keep the step before.
    wait::until("the deletion of spans", async || {
        let erasure = server.call(&token, Method::GET, &path, None).await.body;
        let step = erasure["receipt"]["step"].as_str().unwrap_or_default();
        step.starts_with("deleting rows of spans: ")
    })
    .await;
    start_mutations(&server, "spans").await;
    finished(&server, id).await;
    assert_eq!(count(&server, "spans", "1 = 1").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_that_another_install_uses_during_an_erasure_stays() {
    let server = Server::start().await;
    send(&server, &everything(ERASED, "")).await;
    roll_ups(&server, 1).await;
    let token = server.token("admin").await;
    let path = format!("{DATA}?install_id={ERASED}");
    let asked = server.call(&token, Method::DELETE, &path, None).await;
    server.pass(Duration::from_secs(3));
    let id = asked.body["id"].as_str().unwrap();
    let path = format!("/api/v1/projects/default/erasures/{id}");
    wait::until("the deletion of stacks", async || {
        let erasure = server.call(&token, Method::GET, &path, None).await.body;
        erasure["receipt"]["step"] == "deleting unused stacks" || erasure["state"] == "done"
    })
    .await;
    // The stack that only the erased install had.
    let mut other = everything(ERASED, "");
    other["resource"]["install_id"] = json!(OTHER);
    send(&server, &other).await;
    finished(&server, id).await;
    server.drained().await;
    let lost =
        "SELECT count(), countIf(stack_hash NOT IN (SELECT stack_hash FROM stacks)) FROM janks";
    assert_eq!(server.query(lost).await, "2\t0");
}
