//! Several servers with one control database store a batch once, whichever of them the device sends it to.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

use crate::erasures::finished;
use crate::postgres::{Way, postgres};
use crate::server::{Server, spans};
use crate::wait;

const COUNTS: &str = "SELECT (SELECT count() FROM spans), (SELECT uniqExact(span_id) FROM spans), \
     (SELECT toUInt64(sum(samples)) FROM spans_hourly), (SELECT count() FROM batches)";

/// The numbers of stored and duplicate events according to `outcomes`.
const BOOKS: &str = "SELECT sumIf(count, outcome = 'stored'), sumIf(count, outcome = 'duplicate') \
     FROM outcomes WHERE project != '' AND signal = 'spans'";

struct Pair {
    one: Server,
    other: Server,
    database: String,
}

impl Pair {
    async fn start(more: &[&str]) -> Self {
        let postgres = tokio::task::spawn_blocking(postgres).await.unwrap();
        Self::on(postgres.database().await, more).await
    }

    async fn on(database: String, more: &[&str]) -> Self {
        let settings = [
            &[
                "--database-url",
                &database,
                "--secret",
                "one secret for all servers of this test",
            ],
            more,
        ];
        let one = Server::with(&settings.concat()).await;
        one.ready().await;
        let other = one.beside().await;
        other.ready().await;
        other.pass(Duration::from_secs(1));
        Self {
            one,
            other,
            database,
        }
    }

    async fn sql(&self, sql: String) {
        let mut connection = PgConnection::connect(&self.database).await.unwrap();
        let done = sqlx::query(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await;
        done.unwrap();
        connection.close().await.unwrap();
    }

    /// Makes all servers look as if they had been down for five minutes.
    async fn expire_all_claims(&self) {
        self.sql("UPDATE claiming_logs SET seen_at = now() - INTERVAL '5 minutes'".to_owned())
            .await;
    }

    /// Claims a batch for another server.
    async fn claims(&self, log: Uuid, batch: &Value) {
        let (log, batch) = (log.simple(), id_of(batch).simple());
        let project = self.one.query("SELECT any(project) FROM batches").await;
        self.sql(format!(
            "INSERT INTO claiming_logs VALUES ('\\x{log}', now())"
        ))
        .await;
        self.sql(format!(
            "INSERT INTO batch_claims VALUES ('{project}', '\\x{batch}', '\\x{log}', now())"
        ))
        .await;
    }

    async fn drained(&self) {
        self.one.drained().await;
        self.other.drained().await;
    }
}

fn id_of(batch: &Value) -> Uuid {
    batch["batch_id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_two_servers_accept_concurrently_is_stored_once() {
    let pair = Pair::start(&[]).await;
    for _ in 0..60 {
        let batch = spans(5);
        let (one, other) = tokio::join!(pair.one.send(&batch), pair.other.send(&batch));
        assert_eq!((one.status.as_u16(), other.status.as_u16()), (202, 202));
    }
    pair.drained().await;
    assert_eq!(pair.one.query(COUNTS).await, "300\t300\t300\t60");
    assert_eq!(pair.one.query(BOOKS).await, "300\t300");
}

#[tokio::test(flavor = "multi_thread")]
async fn halves_of_a_split_batch_are_stored_by_two_servers_and_a_late_whole_is_not() {
    let pair = Pair::start(&["--flush-interval-ms", "60000"]).await;
    let mut whole = spans(4);
    let mut halves = [spans(0), spans(0)];
    for (half, place) in halves.iter_mut().zip([0, 2]) {
        half["split_from"] = json!([whole["batch_id"]]);
        half["spans"] = json!(whole["spans"].as_array().unwrap()[place..place + 2]);
    }
    let mut pair = pair;
    assert_eq!(pair.one.send(&halves[0]).await.status, 202);
    assert_eq!(pair.other.send(&halves[1]).await.status, 202);
    pair.one.end().await;
    pair.other.end().await;
    assert_eq!(pair.other.query(COUNTS).await, "4\t4\t4\t2");
    // A delayed upload of the whole batch reaches a server that received neither half.
    let third = pair.one.beside().await;
    third.ready().await;
    whole["sent_at"] = json!("2026-11-20T12:00:01Z");
    assert_eq!(third.send(&whole).await.status, 202);
    let mut third = third;
    third.end().await;
    assert_eq!(third.query(COUNTS).await, "4\t4\t4\t2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_claimed_by_another_server_is_stored_only_after_that_server_is_gone() {
    let pair = Pair::start(&[]).await;
    pair.one.send(&spans(1)).await;
    pair.drained().await;
    let batch = spans(5);
    pair.claims(Uuid::new_v4(), &batch).await;
    assert_eq!(pair.one.send(&batch).await.status, 202);
    wait::until("a second attempt to store the batch", async || {
        pair.one.metric("unjank_writer_failures_total").await >= 2.0
    })
    .await;
    assert_eq!(pair.one.query(COUNTS).await, "1\t1\t1\t1");
    pair.expire_all_claims().await;
    pair.drained().await;
    assert_eq!(pair.one.query(COUNTS).await, "6\t6\t6\t2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_skips_batches_that_another_server_took_over() {
    let mut pair = Pair::start(&["--shutdown-timeout-ms", "1500"]).await;
    let refuse =
        |parts: u32| format!("ALTER TABLE batches MODIFY SETTING parts_to_throw_insert = {parts}");
    pair.one.send(&spans(1)).await;
    pair.drained().await;
    pair.one.query(&refuse(1)).await;
    let batch = spans(5);
    assert_eq!(pair.one.send(&batch).await.status, 202);
    wait::until("a refused INSERT", async || {
        pair.one.metric("unjank_writer_failures_total").await >= 1.0
    })
    .await;
    pair.one.end().await;
    let ledger = std::fs::read_to_string(pair.one.data_dir().join("drain.json")).unwrap();
    assert!(!ledger.contains("\"range\":null"), "{ledger}");
    pair.one.query(&refuse(1_000)).await;
    pair.expire_all_claims().await;
    assert_eq!(pair.other.send(&batch).await.status, 202);
    pair.other.drained().await;
    assert_eq!(pair.other.query(COUNTS).await, "6\t6\t6\t2");
    pair.one.start_again().await;
    pair.one.ready().await;
    pair.drained().await;
    assert_eq!(pair.other.query(COUNTS).await, "6\t6\t6\t2");
    assert_eq!(pair.other.query(BOOKS).await, "6\t5");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_postgresql_hangs_batches_are_acknowledged_and_wait_in_the_log() {
    let postgres = tokio::task::spawn_blocking(postgres).await.unwrap();
    let way = Way::to(postgres).await;
    let database = postgres.database().await;
    let through = database.replace(&postgres.port.to_string(), &way.port.to_string());
    let pair = Pair::on(through, &[]).await;
    pair.one.send(&spans(1)).await;
    pair.drained().await;
    way.blocked.send_replace(true);
    let batch = spans(5);
    let (one, other) = tokio::join!(pair.one.send(&batch), pair.other.send(&batch));
    assert_eq!((one.status.as_u16(), other.status.as_u16()), (202, 202));
    wait::until("a failed claim", async || {
        pair.one.metric("unjank_writer_failures_total").await >= 1.0
    })
    .await;
    assert_eq!(pair.one.query(COUNTS).await, "1\t1\t1\t1");
    way.blocked.send_replace(false);
    pair.drained().await;
    assert_eq!(pair.one.query(COUNTS).await, "6\t6\t6\t2");
    assert_eq!(pair.one.query(BOOKS).await, "6\t5");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_covers_the_rows_and_logs_of_every_server() {
    let pair = Pair::start(&[]).await;
    let install = "0b5a6b9e-6a53-4d3c-9a3c-1d2f6a1e7c11";
    for server in [&pair.one, &pair.other] {
        for batch in [spans(2), spans(3)] {
            server.send(&batch).await;
        }
        let mut mine = spans(4);
        mine["resource"]["install_id"] = json!(install);
        server.send(&mine).await;
    }
    pair.drained().await;
    // The clock of the other server is a second ahead.
    pair.one.pass(Duration::from_secs(2));
    let token = pair.one.token("admin").await;
    let path = format!("/api/v1/projects/default/data?install_id={install}");
    let asked = pair.one.call(&token, Method::DELETE, &path, None).await;
    assert_eq!(asked.status.as_u16(), 202, "{}", asked.body);
    wait::until("the erasure", async || {
        // Each server looks for erasures periodically.
        pair.one.pass(Duration::from_secs(5));
        pair.other.pass(Duration::from_secs(5));
        pair.one.query("SELECT count() FROM spans").await == "10"
    })
    .await;
    let receipt = finished(&pair.one, asked.body["id"].as_str().unwrap()).await;
    assert_eq!(receipt["receipt"]["rows"]["spans"], 8, "{receipt}");
    assert_eq!(pair.one.query("SELECT count(), toUInt64(sum(samples)) FROM spans_hourly WHERE project != '' GROUP BY project").await.split('\t').next_back(), Some("10"));
    assert_eq!(pair.one.query(BOOKS).await, "10\t0");
}

/// A batch of an install with a jank whose stack others share.
fn jank(install: Uuid) -> Value {
    let mut batch = spans(0);
    batch["resource"]["install_id"] = json!(install);
    batch["janks"] = json!([{
        "start": "2026-11-20T11:59:58Z",
        "duration_ms": 900,
        "stack": [{"class": "com.example.Cart", "function": "pay"}],
    }]);
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_stays_while_any_server_receives_janks_that_use_it() {
    let pair = Pair::start(&[]).await;
    let erased = Uuid::new_v4();
    for server in [&pair.one, &pair.other] {
        assert_eq!(server.send(&jank(erased)).await.status, 202);
    }
    pair.drained().await;
    pair.one.pass(Duration::from_secs(2));
    let token = pair.one.token("admin").await;
    let path = format!("/api/v1/projects/default/data?install_id={erased}");
    let asked = pair.one.call(&token, Method::DELETE, &path, None).await;
    let id = asked.body["id"].as_str().unwrap();
    let path = format!("/api/v1/projects/default/erasures/{id}");
    let mut passed = Duration::ZERO;
    wait::until("the erasure", async || {
        for server in [&pair.one, &pair.other] {
            server.pass(Duration::from_secs(20));
            assert_eq!(server.send(&jank(Uuid::new_v4())).await.status, 202);
        }
        passed += Duration::from_secs(20);
        let erasure = pair.one.call(&token, Method::GET, &path, None).await.body;
        erasure["state"] == "done"
    })
    .await;
    // Until then, janks of the other server may have been on their way.
    assert!(passed >= Duration::from_secs(600), "{passed:?}");
    pair.drained().await;
    let lost = "SELECT countIf(stack_hash NOT IN (SELECT stack_hash FROM stacks)) FROM janks";
    assert_eq!(pair.one.query(lost).await, "0");
}
