//! A batch is stored once, however often and wherever it is sent again.

use serde_json::{Value, json};

use crate::server::{Server, spans};

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_is_answered_as_a_duplicate_and_stored_once() {
    let server = Server::start().await;
    let batch = spans(5);
    let first = server.send(&batch).await;
    let second = server.send(&batch).await;
    assert_eq!(
        (
            first.body["duplicate"].clone(),
            second.body["duplicate"].clone()
        ),
        (json!(false), json!(true))
    );
    assert_eq!(first.body["accepted"], second.body["accepted"]);
    assert_eq!(server.stored("SELECT count() FROM spans").await, "5");
    // The times of the second attempt are wrong, but the events are stored.
    let mut batch = spans(5);
    batch["spans"][0]["duration_us"] = json!(-1);
    batch["spans"][1]["start"] = json!("0001-01-01T00:00:00Z");
    let counts = |receipt: &Value| {
        let unlisted = receipt["rejected_unlisted"][0]["events"].as_u64();
        let rejected = receipt["rejected"].as_array().map(Vec::len);
        let accepted = receipt["accepted"].as_u64();
        (accepted, rejected, unlisted, receipt["duplicate"] == true)
    };
    let first = server.send(&batch).await.body;
    assert_eq!(counts(&first), (Some(3), Some(2), None, false));
    let second = server.send(&batch).await.body;
    assert_eq!(counts(&second), (Some(3), Some(2), None, true));
    assert_eq!(first["rejected"], second["rejected"]);
    batch["sent_at"] = json!("2026-11-28T12:00:00Z");
    let third = server.send(&batch).await.body;
    assert_eq!(counts(&third), (Some(3), Some(0), Some(2), true));
    batch["sent_at"] = json!("0000-12-31T23:59:00Z");
    let fourth = server.send(&batch).await.body;
    assert_eq!(counts(&fourth), (Some(3), Some(0), Some(2), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_after_a_restart_is_still_a_duplicate() {
    let mut server = Server::start().await;
    let batch = spans(5);
    server.send(&batch).await;
    server.restart().await;
    let again = server.send(&batch).await;
    assert_eq!(again.body["duplicate"], true);
    server.end().await;
    assert_eq!(server.query("SELECT count() FROM spans").await, "5");
    assert_eq!(
        server
            .query("SELECT signal, outcome, sum(count) FROM outcomes WHERE project != '' GROUP BY ALL ORDER BY ALL")
            .await,
        "spans\tduplicate\t5\nspans\tstored\t5"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_stored_by_another_server_is_stored_once() {
    let one = Server::start().await;
    let batch = spans(5);
    one.send(&batch).await;
    one.drained().await;
    // Another server on the same database has its own log and its own list of recent batches. It finds the batch in ClickHouse.
    let other = Server::with(&["--clickhouse-database", one.database()]).await;
    let again = other.send(&batch).await;
    other.drained().await;
    assert_eq!(again.status, 202);
    assert_eq!(one.query("SELECT count() FROM spans").await, "5");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_batch_many_times_at_once_is_stored_once() {
    let server = Server::start().await;
    let batch = spans(5);
    let answers = futures_util::future::join_all((0..20).map(|_| server.send(&batch))).await;
    assert!(
        answers.iter().all(|answer| answer.status == 202
            || answer.outcome() == (503, "batch_in_flight".to_owned()))
    );
    let fresh = answers
        .iter()
        .filter(|answer| answer.body["duplicate"] == false)
        .count();
    assert_eq!(fresh, 1);
    assert_eq!(server.stored("SELECT count() FROM spans").await, "5");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_only_bad_events_is_acknowledged_and_counted() {
    let server = Server::start().await;
    let mut batch = spans(1);
    batch["spans"][0]["duration_us"] = json!(-1);
    assert_eq!(
        server.send(&batch).await.outcome(),
        (202, "accepted 0 rejected 1".to_owned())
    );
    assert_eq!(
        server
            .stored("SELECT accepted, rejected FROM batches")
            .await,
        "0\t1"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_stored_batch_is_not_stored_after_a_restart_or_by_another_server() {
    let mut server = Server::start().await;
    let whole = spans(4);
    server.send(&whole).await;
    let part = || {
        let mut part = spans(2);
        part["split_from"] = json!([uuid::Uuid::new_v4(), whole["batch_id"]]);
        part
    };
    assert_eq!(server.send(&part()).await.status, 202);
    server.restart().await;
    assert_eq!(server.send(&part()).await.status, 202);
    server.drained().await;
    let other = Server::with(&["--clickhouse-database", server.database()]).await;
    assert_eq!(other.send(&part()).await.status, 202);
    other.drained().await;
    assert_eq!(server.query("SELECT count() FROM spans").await, "4");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_claims_to_be_split_from_itself_is_refused() {
    let server = Server::start().await;
    let mut batch = spans(1);
    batch["split_from"] = json!([batch["batch_id"]]);
    let answer = server.send(&batch).await;
    assert_eq!(answer.status, 400);
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(
        detail.contains("`split_from` names the batch itself"),
        "{detail}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_batch_is_not_stored_after_a_half_of_it() {
    let server = Server::start().await;
    let whole = spans(4);
    let mut half = spans(0);
    half["split_from"] = json!([whole["batch_id"]]);
    half["spans"] = json!(whole["spans"].as_array().unwrap()[..2]);
    server.send(&half).await;
    server.drained().await;
    // Another server knows of the half only what ClickHouse knows.
    let other = Server::with(&["--clickhouse-database", server.database()]).await;
    assert_eq!(other.send(&whole).await.status, 202);
    other.drained().await;
    assert_eq!(server.query("SELECT count() FROM spans").await, "2");
    assert_eq!(
        server
            .query("SELECT sum(count) FROM outcomes WHERE outcome = 'duplicate'")
            .await,
        "4"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn more_small_batches_than_one_sql_statement_can_list_are_drained_at_once() {
    const BATCHES: usize = 7_200;
    let mut server = Server::with(&["--flush-interval-ms", "60000"]).await;
    server.ready().await;
    let send = async || {
        for _ in 0..BATCHES / 16 {
            assert_eq!(server.send(&spans(1)).await.status, 202);
        }
    };
    futures_util::future::join_all((0..16).map(|_| send())).await;
    server.end().await;
    let counts = "SELECT count(), uniqExact(bitShiftRight(range_id, 24)) FROM batches";
    assert_eq!(server.query(counts).await, format!("{BATCHES}\t1"));
}
