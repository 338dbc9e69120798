//! What the exporters of OpenTelemetry do when a server cannot take a request, and when its answer is lost: each value is stored once.

use std::time::Duration;

use serde_json::json;

use crate::otlp_clients::{Client, all_of_all_is_stored, all_send, server_of_today};
use crate::overload::Upload;
use crate::processes::{Program, sql};
use crate::quotas;
use crate::relay::{Fault, Relay};
use crate::server::{KEY, Server, spans};
use crate::wait;

/// Waits until each client has been refused with this code.
async fn all_refused(server: &Server, code: &str) {
    let line = format!("unjank_ingest_requests_total{{code=\"{code}\",status=");
    wait::until("each client is refused", async || {
        let metrics = server.metrics().await;
        let mut lines = metrics.lines().filter(|one| one.starts_with(&line));
        let count = lines.find_map(|one| one.rsplit(' ').next()?.parse::<u64>().ok());
        count >= Some(Client::ALL.len() as u64)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exporters_over_the_quota_of_their_key_send_again_as_soon_as_they_may() {
    let server = server_of_today(&["--max-batch-events", "1000"]).await;
    let token = server.token("admin").await;
    let key = quotas::key(&server, &token, json!({"events_per_second": 100})).await;
    // As many as ten seconds allow.
    let all = quotas::send(&server, &key, &spans(1_000)).await;
    assert_eq!(all.status, 202);
    let refusals = async {
        all_refused(&server, "quota_events").await;
        server.pass(Duration::from_secs(10));
    };
    tokio::join!(all_send(&server.url, &key), refusals);
    all_of_all_is_stored(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exporters_of_an_overloaded_server_send_again() {
    let server = server_of_today(&["--max-connections", "64"]).await;
    let mut uploads = Vec::new();
    for number in 0..24 {
        uploads.push(Upload::begin(&server, number).await);
    }
    let refusals = async {
        all_refused(&server, "overloaded").await;
        for upload in uploads {
            let answer = upload.end().await;
            assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
        }
    };
    tokio::join!(all_send(&server.url, KEY), refusals);
    all_of_all_is_stored(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_exporters_repeat_because_no_answer_came_is_stored_once() {
    let server = server_of_today(&[]).await;
    let relay = Relay::before(&server.url, |path, time| match (path, time) {
        ("/v1/traces" | "/v1/metrics", 1) => Some(Fault::LosesAnswer),
        ("/v1/traces", 2) => Some(Fault::Answers(502)),
        ("/v1/logs", 1) => Some(Fault::Answers(503)),
        _ => None,
    })
    .await;
    all_send(&relay.url, KEY).await;
    all_of_all_is_stored(&server).await;
    // The same bytes came again.
    assert_eq!(relay.requests(), (9, 3 * (3 + 2 + 2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_before_it_answers_exporters_stores_each_value_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start(folder.path()).await;
    let relay = Relay::before(&program.listen, |path, time| match (path, time) {
        ("/v1/traces", 1) => Some(Fault::LosesAnswerAndStops),
        _ => None,
    })
    .await;
    let kills = async {
        loop {
            relay.stopped().await;
            program.kill();
            program = Program::start(folder.path()).await;
            relay.lead_to(&program.listen);
        }
    };
    tokio::select! {
        () = all_send(&relay.url, "k") => {}
        () = kills => {}
    }
    program.drained().await;
    for client in Client::ALL {
        let ask = async |query: &str| sql(folder.path(), query);
        client.all_is_stored(ask).await;
    }
}
