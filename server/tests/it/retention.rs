//! Rows are kept as long as the settings say, and no longer.

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use crate::rules::janks;
use crate::server::{Server, spans};

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_table_has_its_time_which_a_restart_may_change() {
    let mut server = Server::with(&["--retention-days", "20", "--retention-daily-days", "0"]).await;
    server.ready().await;
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
async fn stacks_and_classes_go_after_all_that_may_use_them() {
    let server = Server::with(&["--retention-daily-days", "100"]).await;
    server.ready().await;
    let kept = "SELECT name, extract(engine_full, 'TTL [^ ]+ \\+ toIntervalDay\\(([0-9]+)\\)') FROM system.tables \
                WHERE database = currentDatabase() AND name IN ('stacks', 'stack_classes') ORDER BY name";
    server
        .answers(kept, "stack_classes\t114\nstacks\t114")
        .await;
    // A stack that is in use is stored again within a week, so that only others grow old.
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
    server.query("OPTIMIZE TABLE stacks FINAL").await;
    server
        .answers(
            "SELECT countIf(stack_hash = 1), count() > 0 FROM stacks",
            "0\t1",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_older_goes_and_its_rollup_stays() {
    let server = Server::with(&["--retention-days", "30"]).await;
    server.ready().await;
    let rows = "SELECT (SELECT count() FROM spans), (SELECT sum(count) FROM spans_daily)";
    server.answers("SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'spans' AND engine_full LIKE '% TTL %'", "1").await;
    for age in ["2026-01-01 00:00:00", "2099-01-01 00:00:00"] {
        server
            .query(&format!(
                "INSERT INTO spans (project, start, sample_rate) VALUES ('default', '{age}', 1)"
            ))
            .await;
    }
    server.query("OPTIMIZE TABLE spans FINAL").await;
    server.answers(rows, "1\t2").await;
}
