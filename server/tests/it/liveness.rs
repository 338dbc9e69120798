//! If a part of a server dies, the server logs the reason and ends, so that its supervisor restarts it.

use std::process::Command;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::processes::{Program, unjank};
use crate::server::{Server, spans};
use crate::wait;

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_panics_ends_the_server_and_acknowledged_events_are_stored_at_the_next_start() {
    let mut server = Server::away(&["--shutdown-timeout-ms", "100"]).await;
    assert_eq!(server.send(&spans(3)).await.status, 202);
    server.break_clock();
    let error = server.failed().await;
    assert!(error.contains("the background task `"), "{error}");
    assert!(error.contains("the clock is broken"), "{error}");

    server.mend_clock();
    server.change(&[]);
    server.start_again().await;
    assert_eq!(server.stored("SELECT count() FROM spans").await, "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_log_ended_ends_too() {
    let mut server = Server::start().await;
    server.ready().await;
    server.send(&spans(2)).await;
    server.app().log.close().await;
    let error = server.failed().await;
    assert!(
        error.contains("the background task `ingest log` ended unexpectedly"),
        "{error}"
    );
    assert_eq!(
        server.query("SELECT count() FROM spans").await,
        "2",
        "what was durable was drained"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_follows_the_disk_without_any_batch() {
    let server = Server::start().await;
    server.ready().await;
    let in_the_way = server.data_dir().join("log/probe");
    std::fs::remove_file(&in_the_way).unwrap();
    std::fs::create_dir(&in_the_way).unwrap();
    wait::until("the failure of the disk", async || {
        let ready = server.readiness().await;
        ready.status == 503 && ready.body["log"] == "the disk fails"
    })
    .await;
    std::fs::remove_dir(&in_the_way).unwrap();
    wait::until("readiness", async || server.readiness().await.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_disk_is_reported_in_time_and_does_not_block_the_shutdown() {
    let mut server = Server::with(&["--shutdown-timeout-ms", "100"]).await;
    server.ready().await;
    // Opening a FIFO without a reader blocks for ever.
    let probe = server.data_dir().join("log/probe");
    std::fs::remove_file(&probe).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(probe)
            .status()
            .unwrap()
            .success()
    );
    wait::until("the hanging disk", async || {
        let ready = server.readiness().await;
        ready.status == 503 && ready.body["log"] == "the disk does not answer"
    })
    .await;
    let ends = tokio::time::timeout(wait::PATIENCE, server.end());
    ends.await.expect("an end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_without_an_id_of_its_own_is_refused_and_counted() {
    let mut server = Server::start().await;
    let mut batch = spans(1);
    batch["batch_id"] = Uuid::nil().to_string().into();
    for _ in 0..2 {
        let refused = server.send(&batch).await;
        assert_eq!(refused.outcome(), (400, "invalid_envelope".to_owned()));
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains("`batch_id` is the nil UUID"), "{detail}");
    }
    server.end().await;
    assert_eq!(
        server
            .query("SELECT signal, outcome, reason, sum(count) FROM outcomes WHERE project != '' GROUP BY ALL")
            .await,
        "batch\trejected\tinvalid_envelope\t2"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_the_device_will_retry_has_no_outcome_yet() {
    let mut server = Server::with(&["--body-timeout-ms", "200"]).await;
    let stalled =
        server
            .request()
            .header("content-length", "1000")
            .body(reqwest::Body::wrap_stream(futures_util::stream::pending::<
                Result<Vec<u8>, std::io::Error>,
            >()));
    assert_eq!(stalled.send().await.unwrap().status(), 408);
    server.end().await;
    assert_eq!(server.query("SELECT count() FROM outcomes").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_are_told_why_the_embedded_engine_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libchdb.so");
    let arguments = ["serve", "--engine-library", library.to_str().unwrap()];
    let server = Program::run(folder.path(), &arguments).await;
    let clickhouse = async |url: &str| {
        let answer = server.client.get(format!("{url}/readyz")).send().await;
        let body: Value = answer.unwrap().json().await.unwrap();
        body["clickhouse"].to_string()
    };
    wait::until("the reason", async || {
        let reason = clickhouse(server.admin_url()).await;
        reason.contains("libchdb.so is not a file")
    })
    .await;
    assert_eq!(clickhouse(&server.listen).await, "\"away\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_health_check_in_another_container_asks_the_port_and_says_what_it_cannot_know() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Program::start(folder.path()).await;
    let health = || unjank(folder.path(), &["healthcheck"]);
    wait::until("the server is ready", async || health().status.success()).await;
    let file = folder.path().join("server.json");
    let mut seen: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert!(seen["pid_namespace"].is_string(), "{seen}");
    // As another container sees it, in which no process has the number.
    seen["pid_namespace"] = json!("pid:[1]");
    seen["pid"] = json!(i32::MAX);
    std::fs::write(&file, seen.to_string()).unwrap();
    wait::until("the port is asked", async || health().status.success()).await;
    server.kill();
    let refused = health();
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success(), "{error}");
    for reason in ["unknown here whether it has ended", "cannot connect to"] {
        assert!(error.contains(reason), "{error}");
    }
}
