//! Rows are kept as long as the settings say, and no longer.

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
