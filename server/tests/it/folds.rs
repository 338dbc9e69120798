//! Under load, rows are rolled up some seconds later and in large folds, but still exactly once.

use std::fs;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::processes::{Program, fresh_spans, sql};
use crate::server::{Server, spans};

/// With these settings the server flushes nothing until it stops.
const ALL_AT_ONCE: [&str; 4] = [
    "--flush-interval-ms",
    "60000",
    "--max-names-per-hour",
    "100000",
];
const BATCHES: usize = 30;
const SPANS: usize = 2_000;

/// Counts raw rows, and the samples in the hourly and daily roll-ups.
const COUNTS: &str = "SELECT (SELECT count() FROM spans), (SELECT toUInt64(sum(samples)) FROM spans_hourly), \
     (SELECT toUInt64(sum(samples)) FROM spans_daily)";

/// Counts folds, and rows that belong to no fold.
const FOLDS: &str =
    "SELECT uniqExact(bitShiftRight(range_id, 36)), countIf(range_id = 0) FROM spans";

fn counts(spans: usize) -> String {
    format!("{spans}\t{spans}\t{spans}")
}

/// A batch in which no two spans fall into the same group of a roll-up.
fn all_different(number: usize) -> Value {
    let mut batch = spans(SPANS);
    for (place, span) in batch["spans"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .enumerate()
    {
        span["name"] = json!(format!("span {number}.{place}"));
    }
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn clickhouse_need_not_sort_the_rows_of_a_range() {
    let mut server = Server::with(&ALL_AT_ONCE).await;
    server.ready().await;
    // All batches have the same time of arrival, so their sessions are the next part of the order.
    for _ in 0..BATCHES {
        let mut batch = spans(4);
        batch["session_id"] = json!(Uuid::new_v4());
        for (place, start) in ["11:59", "10:30", "11:30", "10:59"].iter().enumerate() {
            batch["spans"][place]["start"] = json!(format!("2026-11-20T{start}:00Z"));
        }
        assert_eq!(server.send(&batch).await.status, 202);
    }
    server.end().await;
    assert_eq!(server.query(COUNTS).await, counts(BATCHES * 4));
    server.query("SYSTEM FLUSH LOGS").await;
    let sorted = "SELECT sum(ProfileEvents['MergeTreeDataWriterBlocks']), sum(ProfileEvents['MergeTreeDataWriterBlocksAlreadySorted']) \
                  FROM system.query_log WHERE type = 'QueryFinish' AND query LIKE concat('INSERT INTO `', currentDatabase(), '`.`spans` %')";
    assert_eq!(server.query(sorted).await, "1\t1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_range_is_folded_as_one_block_and_a_small_one_at_once() {
    let mut server = Server::with(&ALL_AT_ONCE).await;
    server.ready().await;
    for number in 0..BATCHES {
        assert_eq!(server.send(&all_different(number)).await.status, 202);
    }
    server.end().await;
    let all = BATCHES * SPANS;
    assert_eq!(server.query(COUNTS).await, counts(all));
    assert_eq!(server.query(FOLDS).await, "1\t0");
    // One block contains a row for each of the 60,000 groups, and the mark.
    let inserted = "SELECT count(), countIf(rows = 60001) FROM system.parts \
                    WHERE database = currentDatabase() AND table = 'spans_hourly' AND level = 0";
    assert_eq!(server.query(inserted).await, "1\t1");

    server.start_again().await;
    server.ready().await;
    server.send(&spans(1)).await;
    server.end().await;
    assert_eq!(server.query(COUNTS).await, counts(all + 1));
    assert_eq!(server.query(FOLDS).await, "2\t0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fold_that_was_rolled_up_when_the_server_died_is_not_rolled_up_again() {
    let mut server = Server::with(&ALL_AT_ONCE).await;
    server.ready().await;
    for number in 0..BATCHES {
        server.send(&all_different(number)).await;
    }
    server.end().await;
    // Restore the file as it was after the roll-up and before the server recorded it.
    let path = server.data_dir().join("drain.json");
    let mut drain: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let all = BATCHES * SPANS;
    let number = server.query("SELECT leftPad(lower(hex(bitShiftLeft(bitShiftRight(any(range_id), 36), 36))), 32, '0') FROM spans").await;
    drain["folds"] = json!([{"number": number, "log_id": drain["log_id"], "ranges": 1, "rows": all, "tables": ["batches", "spans"],
        "closed": true, "done": []}]);
    fs::write(&path, drain.to_string()).unwrap();
    server.start_again().await;
    server.ready().await;
    server.drained().await;
    server.end().await;
    let drain: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(drain["folds"], json!([]), "the server has handled the fold");
    assert_eq!(server.query(COUNTS).await, counts(all));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_a_killed_server_had_not_rolled_up_are_rolled_up_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut patient = Program::run(folder.path(), &[&["serve"][..], &ALL_AT_ONCE].concat()).await;
    for _ in 0..BATCHES {
        patient.send(&fresh_spans(SPANS)).await;
    }
    patient.kill();
    let mut program = Program::start(folder.path()).await;
    program.drained().await;
    program.kill();
    let program = Program::start(folder.path()).await;
    program.rolled_up().await;
    assert_eq!(sql(folder.path(), COUNTS), counts(BATCHES * SPANS));
    assert_eq!(sql(folder.path(), FOLDS), "1\t0");
}
