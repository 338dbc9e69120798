//! If it is unknown whether a range was stored, the server asks ClickHouse and inserts only the missing rows.

use std::fs;

use serde_json::{Value, json};

use crate::server::{Server, spans};

/// The number of spans according to raw rows, roll-ups, batches and outcomes.
const BOOKS: &str = "SELECT (SELECT count() FROM spans), (SELECT toUInt64(sum(samples)) FROM spans_hourly), \
     (SELECT toUInt64(sum(samples)) FROM spans_daily), (SELECT sum(accepted) FROM batches), \
     (SELECT toUInt64(sum(accepted)) FROM usage_daily), (SELECT sum(count) FROM outcomes WHERE project != '')";
const BATCHES: u64 = 3;
const SPANS: usize = 4;

fn books(spans: u64) -> String {
    [spans; 6].map(|spans| spans.to_string()).join("\t")
}

/// A stopped server that has stored a range, and whose ledger lists the range as pending.
async fn with_outdated_ledger() -> Server {
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
    // The log does not record either that anything was drained.
    fs::remove_file(server.data_dir().join("log/trimmed")).unwrap();
    server
}

/// Drains what the ledger lists and one more batch, then checks that all counts agree.
async fn drains_to_balanced_books(mut server: Server) {
    server.start_again().await;
    server.ready().await;
    server.send(&spans(1)).await;
    server.end().await;
    assert_eq!(server.query(BOOKS).await, books(BATCHES * SPANS as u64 + 1));
}

/// Deletes all rows of a table. ClickHouse keeps the deduplication tokens of their INSERTs, so it still claims to have the rows.
async fn empty(server: &Server, table: &str) {
    let sql = format!("ALTER TABLE {table} DELETE WHERE 1 SETTINGS mutations_sync = 2");
    server.query(&sql).await;
    assert_eq!(
        server.query(&format!("SELECT count() FROM {table}")).await,
        "0"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_range_is_not_inserted_again() {
    drains_to_balanced_books(with_outdated_ledger().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_range_is_not_inserted_again_after_clickhouse_lost_its_tokens() {
    let server = with_outdated_ledger().await;
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
async fn missing_rows_are_inserted_again_although_clickhouse_has_their_tokens() {
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
        let server = with_outdated_ledger().await;
        for table in tables {
            empty(&server, table).await;
        }
        drains_to_balanced_books(server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_ledger_the_log_is_drained_again_without_duplicates() {
    for missing in [
        &[][..],
        &["outcomes"],
        &["spans_hourly", "spans_daily"],
        &["spans_daily"],
    ] {
        let server = with_outdated_ledger().await;
        for table in missing {
            empty(&server, table).await;
        }
        fs::remove_file(server.data_dir().join("drain.json")).unwrap();
        drains_to_balanced_books(server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_log_is_lost_a_new_one_begins_and_new_batches_are_stored() {
    let mut server = with_outdated_ledger().await;
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
async fn after_the_end_of_the_log_is_lost_new_batches_are_stored_and_the_loss_is_counted() {
    let mut server = with_outdated_ledger().await;
    for file in fs::read_dir(server.data_dir().join("log")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|end| end == "segment") {
            fs::remove_file(path).unwrap();
        }
    }
    server.start_again().await;
    server.ready().await;
    assert!(server.metric("unjank_log_damaged_ranges_total").await >= 1.0);
    // Their records have the numbers of those that are lost.
    for _ in 0..BATCHES {
        server.send(&spans(SPANS)).await;
    }
    server.end().await;
    assert_eq!(server.query(BOOKS).await, books(2 * BATCHES * SPANS as u64));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_view_of_the_operator_loses_no_rows() {
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
