//! What is in doubt is asked: whatever of a range ClickHouse has, the rest is completed, and nothing comes twice.

use std::fs;

use serde_json::{Value, json};

use crate::server::{Server, spans};

/// Raw rows, roll-ups, batches and counts: what each of them says there is.
const BOOKS: &str = "SELECT (SELECT count() FROM spans), (SELECT toUInt64(sum(samples)) FROM spans_hourly), \
     (SELECT toUInt64(sum(samples)) FROM spans_daily), (SELECT sum(accepted) FROM batches), \
     (SELECT toUInt64(sum(accepted)) FROM usage_daily), (SELECT sum(count) FROM outcomes WHERE project != '')";
const BATCHES: u64 = 3;
const SPANS: usize = 4;

fn books(spans: u64) -> String {
    [spans; 6].map(|spans| spans.to_string()).join("\t")
}

/// A server that stored a range, and then forgot in its ledger that it had done so.
async fn forgetful() -> Server {
    let mut server = Server::with(&["--flush-interval-ms", "60000"]).await;
    server.ready().await;
    for _ in 0..BATCHES {
        assert_eq!(server.send(&spans(SPANS)).await.status, 202);
    }
    server.end().await;
    let all = BATCHES * SPANS as u64;
    assert_eq!(server.query(BOOKS).await, books(all));
    let number = |bits: u32| {
        format!(
            "SELECT leftPad(lower(hex(bitShiftLeft(bitShiftRight(any(range_id), {bits}), {bits}))), 32, '0') FROM spans"
        )
    };
    let (range, fold) = (
        server.query(&number(24)).await,
        server.query(&number(36)).await,
    );
    let path = server.data_dir().join("drain.json");
    let mut ledger: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    ledger["range"] = json!({"number": range, "first": 1, "last": ledger["done"], "duplicates": [], "one_by_one": []});
    ledger["folds"] = json!([{"number": fold, "log_id": ledger["log_id"], "ranges": 1, "rows": all, "tables": ["batches", "spans"],
        "closed": true, "done": []}]);
    ledger["done"] = json!(0);
    fs::write(&path, ledger.to_string()).unwrap();
    // The log does not know either that anything is drained.
    fs::remove_file(server.data_dir().join("log/trimmed")).unwrap();
    server
}

/// Has the server drain what it thinks it has to, and one batch more.
async fn drains_to_balanced_books(mut server: Server) {
    server.start_again().await;
    server.ready().await;
    server.send(&spans(1)).await;
    server.end().await;
    assert_eq!(server.query(BOOKS).await, books(BATCHES * SPANS as u64 + 1));
}

/// Takes all rows out of a table. The tokens of their INSERTs stay: the table says that it has them.
async fn empty(server: &Server, table: &str) {
    let sql = format!("ALTER TABLE {table} DELETE WHERE 1 SETTINGS mutations_sync = 2");
    server.query(&sql).await;
    assert_eq!(
        server.query(&format!("SELECT count() FROM {table}")).await,
        "0"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_that_is_there_is_not_sent_again() {
    drains_to_balanced_books(forgetful().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_is_not_sent_again_when_clickhouse_forgot_its_tokens() {
    let server = forgetful().await;
    for table in [
        "spans",
        "batches",
        "outcomes",
        "spans_hourly",
        "spans_daily",
        "usage_hourly",
        "usage_daily",
    ] {
        for window in [0, 10_000] {
            server
                .query(&format!("ALTER TABLE {table} MODIFY SETTING non_replicated_deduplication_window = {window}"))
                .await;
        }
    }
    drains_to_balanced_books(server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn merges_keep_the_newest_mark_of_a_log() {
    let server = Server::start().await;
    for _ in 0..3 {
        server.send(&spans(5)).await;
        server.drained().await;
    }
    server
        .query("OPTIMIZE TABLE outcomes FINAL SETTINGS optimize_throw_if_noop = 1")
        .await;
    let marks = "SELECT count(), max(source) = (SELECT max(range_id) FROM batches) FROM outcomes WHERE project = ''";
    assert_eq!(server.query(marks).await, "1\t1");
    assert_eq!(
        server
            .query("SELECT sum(count) FROM outcomes WHERE project != ''")
            .await,
        "15"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_not_there_are_sent_again_though_their_tokens_are() {
    for tables in [
        &["batches"][..],
        &["outcomes"],
        &["spans_hourly"],
        &["spans_daily"],
        &["usage_hourly"],
        &["spans", "spans_hourly", "spans_daily"],
        &[
            "spans",
            "batches",
            "outcomes",
            "spans_hourly",
            "spans_daily",
            "usage_hourly",
            "usage_daily",
        ],
    ] {
        let server = forgetful().await;
        for table in tables {
            empty(&server, table).await;
        }
        drains_to_balanced_books(server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_ledger_the_log_is_drained_again_and_nothing_comes_twice() {
    for missing in [
        &[][..],
        &["outcomes"],
        &["spans_hourly", "spans_daily"],
        &["spans_daily"],
    ] {
        let server = forgetful().await;
        for table in missing {
            empty(&server, table).await;
        }
        fs::remove_file(server.data_dir().join("drain.json")).unwrap();
        drains_to_balanced_books(server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_was_lost_begins_anew_and_all_that_comes_is_stored() {
    let mut server = forgetful().await;
    fs::remove_dir_all(server.data_dir().join("log")).unwrap();
    server.start_again().await;
    server.ready().await;
    for _ in 0..BATCHES {
        server.send(&spans(SPANS)).await;
    }
    server.end().await;
    assert_eq!(server.query(BOOKS).await, books(2 * BATCHES * SPANS as u64));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_of_the_operator_that_fails_costs_nothing() {
    let server = Server::start().await;
    server.send(&spans(1)).await;
    server.drained().await;
    server
        .query("CREATE TABLE mine (v UInt64) ENGINE = MergeTree ORDER BY v")
        .await;
    server
        .query("CREATE MATERIALIZED VIEW mine_mv TO mine AS SELECT toUInt64(name) AS v FROM spans")
        .await;
    server.send(&spans(SPANS)).await;
    server.drained().await;
    server.query("DROP TABLE mine").await;
    server.send(&spans(SPANS)).await;
    server.drained().await;
    assert_eq!(server.query(BOOKS).await, books(1 + 2 * SPANS as u64));
}
