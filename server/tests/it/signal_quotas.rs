//! Quotas of signals: events over the quota are dropped, other signals are stored, and every event is counted.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::columns;
use crate::server::{Answer, KEY, Server, spans};
use crate::wait;

const PROJECT: &str = "/api/v1/projects/default";
const OUTCOMES: &str = "SELECT signal, outcome, reason, sum(count) FROM outcomes WHERE project != '' GROUP BY ALL ORDER BY ALL";

/// Starts a server that accepts at most 20 events a batch. Returns it with an admin's token.
async fn start() -> (Server, String) {
    let server = Server::with(&["--max-batch-events", "20"]).await;
    let token = server.token("admin").await;
    (server, token)
}

async fn set(server: &Server, token: &str, quotas: Value) -> Answer {
    let patch = json!({"signal_quotas": quotas});
    server
        .call(token, Method::PATCH, PROJECT, Some(patch))
        .await
}

/// Sends batches of one span until a response is as wanted. Returns the number of batches sent before.
async fn send_until(server: &Server, wanted: impl Fn(&Value) -> bool) -> u64 {
    let mut sent = 0;
    wait::until("the wanted response", async || {
        let is_wanted = wanted(&server.send(&spans(1)).await.body);
        sent += u64::from(!is_wanted);
        is_wanted
    })
    .await;
    sent
}

fn is_rate_limited(answer: &Value) -> bool {
    answer["rate_limits"][0]["dropped"] == 1
}

/// A batch of spans and janks.
fn mixed(count: usize) -> Value {
    let mut batch = spans(count);
    batch["janks"] = json!([{"kind": "jank", "page": "FeedActivity", "start": "2026-11-20T11:59:58Z", "duration_ms": 2300}]);
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_over_its_quota_is_dropped_and_the_others_are_stored() {
    let (mut server, token) = start().await;
    set(&server, &token, json!({"spans": 0})).await;
    let stored = send_until(&server, is_rate_limited).await;
    set(&server, &token, json!({"spans": 1})).await;
    let dropped = 1 + send_until(&server, |answer| answer.get("rate_limits").is_none()).await;
    // The bucket holds 20, of which one is used. A batch that finds any room is accepted whole.
    let taken = server.send(&mixed(19)).await;
    assert_eq!(taken.body["accepted"], 20);
    let limit = json!([{"signal": "spans", "retry_after_s": 1}]);
    assert_eq!(taken.body["rate_limits"], limit);
    let batch = mixed(12);
    let held = server.send(&batch).await;
    assert_eq!(held.outcome(), (202, "accepted 1 rejected 0".to_owned()));
    let limit = json!([{"signal": "spans", "retry_after_s": 1, "dropped": 12}]);
    assert_eq!(held.body["rate_limits"], limit);
    // The dropped events of that batch cannot be stored later.
    server.pass(Duration::from_secs(3));
    let again = server.send(&batch).await;
    assert_eq!(
        (&again.body["duplicate"], &again.body["accepted"]),
        (&json!(true), &json!(1))
    );
    // Three events fit, and all five are accepted. The bucket owes two, so the next event fits after 3 s.
    let ahead = server.send(&spans(5)).await;
    let limit = json!([{"signal": "spans", "retry_after_s": 3}]);
    assert_eq!(
        (&ahead.body["accepted"], &ahead.body["rate_limits"]),
        (&json!(5), &limit)
    );
    let only = server.send(&spans(2)).await;
    assert_eq!(only.outcome(), (202, "accepted 0 rejected 0".to_owned()));
    let metrics = server.metrics().await;
    let dropped = dropped + 12 + 2;
    let stored = stored + 1 + 19 + 5;
    for (outcome, signal, events) in [
        ("rejected", "spans", dropped),
        ("stored", "spans", stored),
        ("stored", "janks", 2),
    ] {
        let line = format!(
            r#"unjank_ingest_events_total{{outcome="{outcome}",signal="{signal}"}} {events}"#
        );
        assert!(
            metrics.lines().any(|one| one == line),
            "{line} in {metrics}"
        );
    }
    server.drained().await;
    server.end().await;
    let expected = format!(
        "janks\tduplicate\tbatch\t1\njanks\tstored\t\t2\n\
         spans\tduplicate\tbatch\t12\nspans\trejected\trate_limited\t{dropped}\nspans\tstored\t\t{stored}"
    );
    assert_eq!(server.query(OUTCOMES).await, expected);
    let spans = server.query("SELECT count() FROM spans").await;
    assert_eq!(spans, stored.to_string());
    let batches = "SELECT sum(accepted), sum(rejected) FROM batches";
    assert_eq!(
        server.query(batches).await,
        format!("{}\t{dropped}", stored + 2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_is_accepted_after_its_quota_is_removed() {
    let (server, token) = start().await;
    let set_to = set(&server, &token, json!({"spans": 0, "metrics": null})).await;
    assert_eq!(set_to.body["signal_quotas"], json!({"spans": 0}));
    send_until(&server, is_rate_limited).await;
    let held = server.send(&mixed(1)).await;
    let limit = json!([{"signal": "spans", "retry_after_s": 3600, "dropped": 1}]);
    assert_eq!(held.body["rate_limits"], limit);
    // Another setting leaves the quota unchanged. An empty object removes it.
    let name = json!({"name": "The shop"});
    let named = server
        .call(&token, Method::PATCH, PROJECT, Some(name))
        .await;
    assert_eq!(named.body["signal_quotas"], json!({"spans": 0}));
    set(&server, &token, json!({})).await;
    send_until(&server, |answer| answer["accepted"] == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_is_not_charged_and_gets_the_receipt_of_the_stored_batch() {
    let (server, token) = start().await;
    set(&server, &token, json!({"spans": 0})).await;
    send_until(&server, is_rate_limited).await;
    set(&server, &token, json!({"spans": 1})).await;
    send_until(&server, |answer| answer.get("rate_limits").is_none()).await;
    let batch = spans(9);
    for duplicate in [false, true, true, true] {
        let answer = server.send(&batch).await;
        assert_eq!(
            (&answer.body["duplicate"], &answer.body["accepted"]),
            (&json!(duplicate), &json!(9))
        );
        assert!(
            answer.body.get("rate_limits").is_none(),
            "{:?}",
            answer.body
        );
    }
    // Ten of 20 are left.
    let rest = server.send(&spans(9)).await;
    assert!(rest.body.get("rate_limits").is_none(), "{:?}", rest.body);
    // One event is left. The duplicate would overdraw the bucket, but its charge is refunded, so its receipt has no limit.
    let again = server.send(&batch).await;
    assert!(again.body.get("rate_limits").is_none(), "{:?}", again.body);
    assert_eq!(
        server.send(&spans(1)).await.body["rate_limits"][0]["retry_after_s"],
        1
    );
    // The batch was stored whole, whatever the limit is now.
    let again = server.send(&batch).await;
    assert_eq!(again.body["accepted"], 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_with_columns_take_from_the_quota_of_a_signal() {
    let (server, token) = start().await;
    set(&server, &token, json!({"spans": 0})).await;
    send_until(&server, is_rate_limited).await;
    set(&server, &token, json!({"spans": 1})).await;
    send_until(&server, |answer| answer.get("rate_limits").is_none()).await;
    let send = async |batch: &Value| columns::send(&server, columns::columns(batch)).await;
    // The bucket holds 20, of which one is used.
    let taken = send(&mixed(19)).await;
    assert_eq!(taken.body["accepted"], 20);
    let limit = json!([{"signal": "spans", "retry_after_s": 1}]);
    assert_eq!(taken.body["rate_limits"], limit);
    let batch = mixed(12);
    let held = send(&batch).await;
    assert_eq!(held.outcome(), (202, "accepted 1 rejected 0".to_owned()));
    let limit = json!([{"signal": "spans", "retry_after_s": 1, "dropped": 12}]);
    assert_eq!(held.body["rate_limits"], limit);
    // Both forms take from one quota.
    let in_json = server.send(&spans(2)).await;
    assert_eq!(in_json.body["rate_limits"][0]["dropped"], 2);
    for again in [send(&batch).await, server.send(&batch).await] {
        assert_eq!(
            (&again.body["duplicate"], &again.body["accepted"]),
            (&json!(true), &json!(1))
        );
    }
    assert_eq!(server.stored("SELECT count() FROM janks").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_are_cut_off_take_from_the_quota_once() {
    let (server, token) = start().await;
    set(&server, &token, json!({"spans": 0})).await;
    send_until(&server, is_rate_limited).await;
    set(&server, &token, json!({"spans": 1})).await;
    send_until(&server, |answer| answer.get("rate_limits").is_none()).await;
    let count = "SELECT count() FROM spans";
    let before: u64 = server.stored(count).await.parse().unwrap();
    let batch = spans(9);
    let body = batch.to_string();
    let request = format!(
        "POST /v1/ingest HTTP/1.1\r\nhost: unjank\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let address = server.url.trim_start_matches("http://");
    for millis in 0..12 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
    // Another request may still store the batch.
    let mut answer = server.send(&batch).await;
    while answer.status == 503 {
        answer = server.send(&batch).await;
    }
    let body = &answer.body;
    assert_eq!(
        (&body["accepted"], &body["duplicate"]),
        (&json!(9), &json!(true))
    );
    // Ten of 20 are left.
    let rest = server.send(&spans(9)).await;
    assert!(rest.body.get("rate_limits").is_none(), "{:?}", rest.body);
    assert_eq!(server.stored(count).await, (before + 18).to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_events_do_not_use_the_quota_of_the_project() {
    let (server, token) = start().await;
    let patch = json!({"signal_quotas": {"spans": 0}, "quotas": {"events_per_second": 1}});
    server
        .call(&token, Method::PATCH, PROJECT, Some(patch))
        .await;
    send_until(&server, is_rate_limited).await;
    server.pass(Duration::from_secs(60));
    for _ in 0..10 {
        let answer = server.send(&mixed(19)).await;
        assert_eq!(answer.outcome(), (202, "accepted 1 rejected 0".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_signal_quotas_are_refused() {
    let (server, token) = start().await;
    for (quotas, reason) in [
        (
            json!({"span": 1}),
            "there is no signal `span`, only spans, frame_windows",
        ),
        (json!({"sdk_health": 1}), "`sdk_health` cannot be limited"),
    ] {
        let refused = set(&server, &token, quotas).await;
        assert_eq!(refused.outcome(), (422, "invalid".to_owned()));
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(reason), "{detail}");
    }
    let wrong = set(&server, &token, json!({"spans": -1})).await;
    assert_eq!(wrong.outcome(), (422, "invalid_body".to_owned()));
}
