//! Rows expire after the configured retention.

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use unjank_server::store::{LIFE, Login, Period, Rebuilder, Target};
use uuid::Uuid;

use crate::books::check;
use crate::engine::{PASSWORD, USER};
use crate::rules::janks;
use crate::server::{Answer, Server, spans};
use crate::wait;

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_table_has_its_own_retention_which_a_restart_can_change() {
    let days = ["--retention-days", "20", "--retention-daily-days", "0"];
    // Other tests keep batches for longer.
    let mut server = Server::starting(&days).await;
    wait::until("the tables exist", async || {
        server.readiness().await.status == 200
    })
    .await;
    let kept = "SELECT name, extract(engine_full, 'TTL [^ ]+ \\\\+ toIntervalDay\\\\(([0-9]+)\\\\)') FROM system.tables \
                WHERE database = currentDatabase() AND name IN ('spans', 'spans_hourly', 'spans_daily', 'batches', 'stacks', 'traffic') \
                ORDER BY name";
    let expected = |raw: &str, daily: &str| {
        format!(
            "batches\t8\nspans\t{raw}\nspans_daily\t{daily}\nspans_hourly\t90\nstacks\t\ntraffic\t{raw}"
        )
    };
    server.answers(kept, expected("20", "").trim_end()).await;
    server.send(&spans(1)).await;
    server.end().await;
    server.change(&["--retention-days", "0", "--retention-daily-days", "700"]);
    server.start_again().await;
    server.answers(kept, expected("", "700").trim_end()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stacks_and_classes_outlive_every_row_that_can_refer_to_them() {
    let server = Server::with(&["--retention-daily-days", "100"]).await;
    server.ready().await;
    let kept = "SELECT name, extract(engine_full, 'TTL [^ ]+ \\+ toIntervalDay\\(([0-9]+)\\)') FROM system.tables \
                WHERE database = currentDatabase() AND name IN ('stacks', 'stack_classes') ORDER BY name";
    server
        .answers(kept, "stack_classes\t114\nstacks\t114")
        .await;
    // A stack in use is stored again every week, so that only unused stacks expire.
    let batch = janks(&["com.example.A".to_owned()]);
    server.send(&batch).await;
    let sent = "SELECT uniqExact(received_at) FROM stacks";
    assert_eq!(server.stored(sent).await, "1");
    server.pass(Duration::from_secs(7 * 24 * 3600));
    let mut again = batch.clone();
    again["batch_id"] = json!(Uuid::new_v4());
    again["sent_at"] = json!("2026-11-20T12:00:00Z");
    server.send(&again).await;
    server.answers(sent, "2").await;
    server.query("INSERT INTO stacks (project, stack_hash, received_at) VALUES ('default', 1, now() - INTERVAL 200 DAY)").await;
    server.start_ageing("stacks").await;
    server.query("OPTIMIZE TABLE stacks FINAL").await;
    server
        .answers(
            "SELECT countIf(stack_hash = 1), count() > 0 FROM stacks",
            "0\t1",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_rows_are_deleted_and_their_roll_up_is_kept() {
    let server = Server::with(&["--retention-days", "30"]).await;
    server.ready().await;
    let rows = "SELECT (SELECT count() FROM spans), (SELECT sum(count) FROM spans_hourly)";
    server.answers("SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'spans' AND engine_full LIKE '% TTL %'", "1").await;
    for age in ["2026-01-01 00:00:00", "2099-01-01 00:00:00"] {
        server
            .query(&format!(
                "INSERT INTO spans (project, start, sample_rate) VALUES ('default', '{age}', 1)"
            ))
            .await;
        server
            .query(&format!(
                "INSERT INTO spans_hourly (project, hour, count) VALUES ('default', '{age}', 1)"
            ))
            .await;
    }
    server.start_ageing("spans").await;
    server.query("OPTIMIZE TABLE spans FINAL").await;
    server.answers(rows, "1\t2").await;
}

const STORAGE: &str = "/api/v1/projects/shop/storage";
const STORAGE_OF_DEFAULT: &str = "/api/v1/projects/default/storage";
const OFTEN: [&str; 2] = ["--retention-interval-ms", "200"];

/// Creates the project `shop`. Returns an admin's token and a key of the project.
pub(crate) async fn shop(server: &Server) -> (String, String) {
    let admin = server.token("admin").await;
    let made = server
        .call(
            &admin,
            Method::POST,
            "/api/v1/projects",
            Some(json!({"id": "shop"})),
        )
        .await;
    assert_eq!(made.status.as_u16(), 201);
    let key = server
        .call(
            &admin,
            Method::POST,
            "/api/v1/projects/shop/keys",
            Some(json!({"name": "app"})),
        )
        .await;
    let key = key.body["key"].as_str().unwrap().to_owned();
    (admin, key)
}

/// Sends batches until a response has the expected status. Returns its body.
async fn send_until(server: &Server, key: &str, start: &str, expected: u16) -> Value {
    for _ in 0..200 {
        let mut batch = spans(2);
        for span in batch["spans"].as_array_mut().unwrap() {
            span["start"] = json!(start);
        }
        let answer = server
            .request_with(key)
            .body(batch.to_string())
            .send()
            .await;
        let answer = Answer::of(answer.unwrap()).await;
        if answer.status.as_u16() == expected {
            return answer.body;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no response had the status {expected}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_can_have_its_own_retention() {
    let server = Server::with(&OFTEN).await;
    server.ready().await;
    let (admin, key) = shop(&server).await;
    send_until(&server, &key, "2026-11-18T12:00:00Z", 202).await;
    send_until(&server, "any-key", "2026-11-18T12:00:00Z", 202).await;
    server
        .answers("SELECT project, sum(samples) FROM spans_daily WHERE project != '' GROUP BY project ORDER BY project", "default\t2\nshop\t2")
        .await;
    let keep = json!({"keep": {"raw_days": 7}});
    let set = server.call(&admin, Method::PUT, STORAGE, Some(keep)).await;
    assert_eq!(set.status.as_u16(), 204, "{}", set.body);
    server.pass(Duration::from_secs(20 * 86_400));
    server
        .answers(
            "SELECT project, count() FROM spans GROUP BY project",
            "default\t2",
        )
        .await;
    // The roll-ups remain, the books balance, and a rebuild changes nothing.
    let rolled = "SELECT project, sum(samples) FROM spans_hourly WHERE project != '' GROUP BY project ORDER BY project";
    assert_eq!(server.query(rolled).await, "default\t2\nshop\t2");
    let (code, books) = check(&server, &["--from", "2026-11-17"]);
    assert_eq!(code, 0, "{books}");
    let store = server.app().clickhouse.clone();
    let now = Period {
        from: 1_794_960_000,
        to: 1_795_132_800,
    };
    let rebuilder = Rebuilder::begin(&store, 1_795_176_000, LIFE).await.unwrap();
    let plan = rebuilder.plan(&BTreeSet::from(["spans"]), now).unwrap();
    for part in plan {
        rebuilder.rebuild(&part, &|_, _| ()).await.unwrap();
    }
    rebuilder.end().await.unwrap();
    assert_eq!(server.query(rolled).await, "default\t2\nshop\t2");
    // A retention longer than the default extends the TTL. Rows of other projects expire as before.
    let keep = json!({"keep": {"raw_days": 700}});
    server.call(&admin, Method::PUT, STORAGE, Some(keep)).await;
    let ttl = "SELECT extract(engine_full, 'toIntervalDay\\\\(([0-9]+)\\\\)') FROM system.tables WHERE database = currentDatabase() AND name = 'spans'";
    server.answers(ttl, "700").await;
    server.pass(Duration::from_secs(20 * 86_400));
    server.answers("SELECT count() FROM spans", "0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_over_its_disk_quota_loses_its_oldest_events_and_is_then_refused() {
    let server = Server::with(&OFTEN).await;
    server.ready().await;
    let (admin, key) = shop(&server).await;
    for day in ["2026-11-15", "2026-11-17", "2026-11-20"] {
        send_until(&server, &key, &format!("{day}T10:00:00Z"), 202).await;
    }
    send_until(&server, "any-key", "2026-11-15T12:00:00Z", 202).await;
    server.answers("SELECT count() FROM spans", "8").await;
    let used = server.call(&admin, Method::GET, STORAGE, None).await.body;
    assert!(used["used_bytes"].as_u64() > Some(1_000), "{used}");
    assert_eq!(used["default_keep"]["raw_days"], 30);
    let small = json!({"disk_bytes": 100});
    server.call(&admin, Method::PUT, STORAGE, Some(small)).await;
    server
        .answers(
            "SELECT project, toDate(start), count() FROM spans GROUP BY ALL ORDER BY ALL",
            "default\t2026-11-15\t2\nshop\t2026-11-20\t2",
        )
        .await;
    let refused = send_until(&server, &key, "2026-11-20T10:00:00Z", 429).await;
    assert_eq!(refused["code"], "quota_disk", "{refused}");
    send_until(&server, "any-key", "2026-11-20T10:00:00Z", 202).await;
    let used = server.call(&admin, Method::GET, STORAGE, None).await.body;
    assert_eq!(used["is_over_quota"], true, "{used}");
    let large = json!({"disk_bytes": 1_000_000_000});
    server.call(&admin, Method::PUT, STORAGE, Some(large)).await;
    send_until(&server, &key, "2026-11-20T10:00:00Z", 202).await;
}

/// Keeps the engine from carrying out mutations of a table.
pub(crate) async fn stop_mutations(server: &Server, table: &str) {
    let stop = format!("SYSTEM STOP MERGES `{}`.`{table}`", server.database());
    server.query(&stop).await;
}

pub(crate) async fn start_mutations(server: &Server, table: &str) {
    let start = format!("SYSTEM START MERGES `{}`.`{table}`", server.database());
    server.query(&start).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_rows_are_being_deleted_is_known_of_each_project() {
    let server = Server::start().await;
    let (_, key) = shop(&server).await;
    send_until(&server, &key, "2026-11-15T10:00:00Z", 202).await;
    server.answers("SELECT count() FROM spans", "2").await;
    stop_mutations(&server, "spans").await;
    let store = server.app().clickhouse.clone();
    let is_deleting = async |project: Option<&str>| store.is_deleting_rows(project).await.unwrap();
    assert!(!is_deleting(None).await);
    store.drop_events("shop", 1_795_132_800).await.unwrap();
    // ClickHouse keeps the literals and the functions of the statement.
    let text = "SELECT position(command, $$unhex('73686f70')$$) > 0, position(command, $$'old rows'$$) > 0 \
                FROM system.mutations WHERE database = currentDatabase() AND table = 'spans' AND NOT is_done";
    assert_eq!(server.query(text).await, "1\t1");
    for (project, expected) in [
        (None, true),
        (Some("shop"), true),
        (Some("sho"), false),
        (Some("shop2"), false),
        (Some("default"), false),
    ] {
        assert_eq!(is_deleting(project).await, expected, "{project:?}");
    }
    start_mutations(&server, "spans").await;
    wait::until("the deletion", async || !is_deleting(None).await).await;
    assert_eq!(server.query("SELECT count() FROM spans").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_of_all_projects_are_checked_while_rows_of_one_are_being_deleted() {
    let server = Server::with(&OFTEN).await;
    let (admin, key) = shop(&server).await;
    for day in ["2026-11-15", "2026-11-20"] {
        let start = format!("{day}T10:00:00Z");
        send_until(&server, &key, &start, 202).await;
        send_until(&server, "any-key", &start, 202).await;
    }
    server.answers("SELECT count() FROM spans", "8").await;
    stop_mutations(&server, "spans").await;
    let set = async |path: &str, storage: Value| {
        let set = server.call(&admin, Method::PUT, path, Some(storage)).await;
        assert_eq!(set.status.as_u16(), 204, "{}", set.body);
    };
    let now = "2026-11-20T10:00:00Z";
    set(STORAGE, json!({"disk_bytes": 100})).await;
    send_until(&server, &key, now, 429).await;
    set(STORAGE_OF_DEFAULT, json!({"disk_bytes": 100})).await;
    send_until(&server, "any-key", now, 429).await;
    // Without a quota, the usage does not matter.
    set(STORAGE, json!({})).await;
    send_until(&server, &key, now, 202).await;
    let deleted = "SELECT uniqExact(command) FROM system.mutations WHERE database = currentDatabase() AND table = 'spans' AND NOT is_done";
    assert_eq!(server.query(deleted).await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_a_sweep_that_fails_does_not_keep_the_others_from_running() {
    let server = Server::with(&OFTEN).await;
    let (admin, key) = shop(&server).await;
    let start = "2026-11-15T10:00:00Z";
    send_until(&server, &key, start, 202).await;
    send_until(&server, "any-key", start, 202).await;
    let rows = "SELECT project, count() FROM spans GROUP BY project ORDER BY project";
    server.answers(rows, "default\t2\nshop\t2").await;
    // No retention can be set for this table.
    server
        .query("CREATE OR REPLACE TABLE former_groups (id UInt8) ENGINE = MergeTree ORDER BY id")
        .await;
    let small = json!({"disk_bytes": 100});
    server.call(&admin, Method::PUT, STORAGE, Some(small)).await;
    server.answers(rows, "default\t2").await;
    let keep = json!({"keep": {"raw_days": 7}});
    let set = server.call(&admin, Method::PUT, STORAGE_OF_DEFAULT, Some(keep));
    assert_eq!(set.await.status.as_u16(), 204);
    server.pass(Duration::from_secs(20 * 86_400));
    server.answers(rows, "").await;
}

/// A gateway that has lost its ClickHouse. Returns its URL and the statements that it got. It ends with the tasks.
async fn gateway() -> (String, Arc<Mutex<Vec<String>>>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let statements = Arc::new(Mutex::new(Vec::new()));
    let got = Arc::clone(&statements);
    let router = Router::new().fallback(move |statement: String| {
        got.lock().unwrap().push(statement);
        ready(StatusCode::BAD_GATEWAY)
    });
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, statements, serving)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_stops_asking_for_disk_usage_while_clickhouse_is_away() {
    let server = Server::with(&OFTEN).await;
    let (admin, _) = shop(&server).await;
    for path in [STORAGE, STORAGE_OF_DEFAULT] {
        let quota = json!({"disk_bytes": 1_000_000_000});
        let set = server.call(&admin, Method::PUT, path, Some(quota)).await;
        assert_eq!(set.status.as_u16(), 204, "{}", set.body);
    }
    let (url, statements, _serving) = gateway().await;
    let login = Login {
        user: USER.to_owned(),
        password: PASSWORD.to_owned(),
    };
    server.app().clickhouse.point_at(Some(&Target {
        url,
        writer: login.clone(),
        reader: login,
        database: server.database().to_owned(),
        compress: false,
    }));
    let asked = |project: &str| {
        let hex = |text: &str| -> String { text.bytes().map(|b| format!("{b:02x}")).collect() };
        let literal = hex(&format!("unhex('{}')", hex(project)));
        let statements = statements.lock().unwrap();
        statements
            .iter()
            .filter(|one| one.contains(&literal))
            .count()
    };
    wait::until("five sweeps", async || asked("default") >= 5).await;
    // A sweep may have begun before.
    assert!(asked("shop") <= 1, "{}", asked("shop"));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_operator_can_extend_the_retention_or_set_a_disk_quota() {
    let server = Server::start().await;
    server.ready().await;
    shop(&server).await;
    let admin = server
        .command(&[
            "token",
            "create",
            "--name",
            "shop",
            "--role",
            "admin",
            "--project",
            "shop",
        ])
        .await;
    for (settings, status) in [
        (json!({"keep": {"raw_days": 7, "daily_days": 30}}), 204),
        (json!({}), 204),
        (json!({"keep": {"raw_days": 31}}), 403),
        (json!({"keep": {"daily_days": 0}}), 403),
        (json!({"disk_bytes": 1}), 403),
        (json!({"keep": {"raw_days": 36_501}}), 403),
        (json!({"keep": {"raw_days": -1}}), 422),
        (json!({"keep": {"raw": 1}}), 422),
    ] {
        let answer = server
            .call(admin.trim(), Method::PUT, STORAGE, Some(settings.clone()))
            .await;
        assert_eq!(
            answer.status.as_u16(),
            status,
            "{settings}: {}",
            answer.body
        );
    }
}
