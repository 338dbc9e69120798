//! Quotas of keys and projects: a batch over the quota is refused, and is stored once when the device retries it later.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{Answer, KEY, Server, spans};
use crate::wait;

const PROJECT: &str = "/api/v1/projects/default";
const KEYS: &str = "/api/v1/projects/default/keys";

/// Starts a server that accepts at most 20 events a batch. Returns it with an admin's token.
async fn start() -> (Server, String) {
    let server = Server::with(&["--max-batch-events", "20"]).await;
    let token = server.token("admin").await;
    (server, token)
}

/// Creates a key and waits until the server accepts it.
pub(crate) async fn key(server: &Server, token: &str, quotas: Value) -> String {
    let new = json!({"name": "of a test", "quotas": quotas});
    let made = server.call(token, Method::POST, KEYS, Some(new)).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let key = made.body["key"].as_str().unwrap().to_owned();
    wait::until("the change takes effect", async || {
        poll(server, &key).await == 200
    })
    .await;
    key
}

async fn set(server: &Server, token: &str, quotas: Value) {
    let patch = json!({"quotas": quotas});
    let set = server
        .call(token, Method::PATCH, PROJECT, Some(patch))
        .await;
    assert_eq!((set.status.as_u16(), &set.body["quotas"]), (200, &quotas));
}

async fn poll(server: &Server, key: &str) -> StatusCode {
    let url = format!("{}/v1/config", server.url);
    let request = server.client.get(url).bearer_auth(key);
    request.send().await.unwrap().status()
}

pub(crate) async fn send(server: &Server, key: &str, batch: &Value) -> Answer {
    let request = server
        .client
        .post(format!("{}/v1/ingest", server.url))
        .bearer_auth(key)
        .json(batch);
    Answer::of(request.send().await.unwrap()).await
}

fn accepted(events: usize) -> (u16, String) {
    (202, format!("accepted {events} rejected 0"))
}

/// The seconds that a refused device waits.
fn wait_of(refused: &Answer) -> u64 {
    refused.retry_after.as_deref().unwrap().parse().unwrap()
}

fn refused(code: &str) -> (u16, String) {
    (429, code.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_over_the_quota_of_a_key_is_accepted_later_and_other_keys_are_unaffected() {
    let (server, token) = start().await;
    let small = key(&server, &token, json!({"events_per_second": 1})).await;
    let (first, second) = (spans(20), spans(5));
    assert_eq!(send(&server, &small, &first).await.outcome(), accepted(20));
    let over = send(&server, &small, &second).await;
    assert_eq!(over.outcome(), refused("quota_events"));
    assert_eq!(over.retry_after.as_deref(), Some("1"));
    // A new snapshot does not reset the usage.
    key(&server, &token, json!({})).await;
    let over = send(&server, &small, &second).await;
    assert_eq!(over.outcome(), refused("quota_events"));
    // One event fits again, but five do not. The server reads this body and keeps nothing of it.
    server.pass(Duration::from_millis(1_500));
    let over = send(&server, &small, &second).await;
    assert_eq!(over.outcome(), refused("quota_events"));
    assert!((4..=6).contains(&wait_of(&over)), "{over:?}");
    assert_eq!(poll(&server, &small).await, 200);
    assert_eq!(send(&server, KEY, &spans(20)).await.outcome(), accepted(20));
    server.pass(Duration::from_secs(4));
    assert_eq!(send(&server, &small, &second).await.outcome(), accepted(5));
    assert_eq!(server.stored("SELECT count() FROM spans").await, "45");
    let metrics = server.metrics().await;
    let line = r#"unjank_ingest_requests_total{code="quota_events",status="429"} 3"#;
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_change_of_a_key_does_not_reset_its_usage() {
    let (server, token) = start().await;
    let small = key(&server, &token, json!({"events_per_second": 1})).await;
    assert_eq!(
        send(&server, &small, &spans(20)).await.outcome(),
        accepted(20)
    );
    let listed = server.call(&token, Method::GET, KEYS, None).await;
    let mut listed = listed.body["keys"].as_array().unwrap().iter();
    let listed = listed.find(|key| key["name"] == "of a test").unwrap();
    let path = format!("{KEYS}/{}", listed["id"].as_str().unwrap());
    let change = async |patch: Value| {
        let changed = server.call(&token, Method::PATCH, &path, Some(patch)).await;
        changed.status.as_u16()
    };
    let over = send(&server, &small, &spans(1)).await;
    assert_eq!(over.outcome(), refused("quota_events"));
    assert_eq!(
        change(json!({"quotas": {"events_per_second": 5}})).await,
        204
    );
    // The bucket holds 50 now, of which 20 are used.
    wait::until("the change takes effect", async || {
        send(&server, &small, &spans(1)).await.status == 202
    })
    .await;
    assert_eq!(
        send(&server, &small, &spans(20)).await.outcome(),
        accepted(20)
    );
    assert_eq!(
        send(&server, &small, &spans(9)).await.outcome(),
        accepted(9)
    );
    let over = send(&server, &small, &spans(1)).await;
    assert_eq!(over.outcome(), refused("quota_events"));
    // A change of the expiry does not affect the quota.
    assert_eq!(change(json!({"expires_at": null})).await, 204);
    assert_eq!(change(json!({"quotas": {}})).await, 204);
    wait::until("the change takes effect", async || {
        send(&server, &small, &spans(20)).await.status == 202
    })
    .await;
    assert_eq!(change(json!({})).await, 422);
    assert_eq!(change(json!({"quota": {}})).await, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_projects_quota_applies_to_all_its_keys_until_it_is_raised() {
    let (mut server, token) = start().await;
    set(
        &server,
        &token,
        json!({"events_per_second": null, "bytes_per_day": 1}),
    )
    .await;
    let other = key(&server, &token, json!({})).await;
    let batch = spans(3);
    wait::until("the change takes effect", async || {
        send(&server, KEY, &batch).await.status == 429
    })
    .await;
    for key in [KEY, &other] {
        let over = send(&server, key, &batch).await;
        assert_eq!(over.outcome(), refused("quota_bytes"));
        // It is noon, and the quota resets at midnight. Devices come back within the hour after.
        assert!((43_200..=46_800).contains(&wait_of(&over)), "{over:?}");
        assert_eq!(poll(&server, key).await, 200);
    }
    set(
        &server,
        &token,
        json!({"events_per_second": null, "bytes_per_day": 1_000_000}),
    )
    .await;
    wait::until("the change takes effect", async || {
        send(&server, &other, &batch).await.status == 202
    })
    .await;
    server.end().await;
    assert_eq!(
        server
            .query("SELECT uniqExact(span_id) FROM spans WHERE name = 'checkout'")
            .await,
        server.query("SELECT count() FROM spans").await
    );
    // The refused batch was stored later, so it does not count as lost.
    assert_eq!(
        server
            .query("SELECT count() FROM outcomes WHERE outcome = 'rejected'")
            .await,
        "0"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daily_byte_quota_resets_at_midnight() {
    let (server, token) = start().await;
    let batch = spans(2);
    let bytes = batch.to_string().len();
    let small = key(&server, &token, json!({"bytes_per_day": bytes})).await;
    assert_eq!(send(&server, &small, &batch).await.outcome(), accepted(2));
    let next = spans(2);
    assert_eq!(
        send(&server, &small, &next).await.outcome(),
        refused("quota_bytes")
    );
    server.pass(Duration::from_secs(12 * 3_600));
    assert_eq!(send(&server, &small, &next).await.outcome(), accepted(2));
    assert_eq!(server.stored("SELECT count() FROM spans").await, "4");
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicates_do_not_use_the_quota() {
    let (server, token) = start().await;
    let small = key(&server, &token, json!({"events_per_second": 2})).await;
    let batch = spans(10);
    assert_eq!(send(&server, &small, &batch).await.outcome(), accepted(10));
    for _ in 0..5 {
        let again = send(&server, &small, &batch).await;
        assert_eq!(again.body["duplicate"], true, "{:?}", again.body);
    }
    assert_eq!(
        send(&server, &small, &spans(10)).await.outcome(),
        accepted(10)
    );
    assert_eq!(
        send(&server, &small, &spans(1)).await.outcome(),
        refused("quota_events")
    );
    assert_eq!(server.stored("SELECT count() FROM spans").await, "20");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_batches_do_not_exceed_the_quota() {
    let (server, token) = start().await;
    let small = key(&server, &token, json!({"events_per_second": 10})).await;
    let batches: Vec<_> = (0..30).map(|_| spans(10)).collect();
    let sent = batches.iter().map(|batch| send(&server, &small, batch));
    let answers = futures_util::future::join_all(sent).await;
    let taken = answers.iter().filter(|answer| answer.status == 202).count();
    assert_eq!(taken, 10, "{answers:?}");
    assert_eq!(server.stored("SELECT count() FROM spans").await, "100");
    // Each refused batch is accepted later and stored once.
    for (batch, answer) in batches.iter().zip(&answers) {
        if answer.status == 429 {
            server.pass(Duration::from_secs(1));
            assert_eq!(send(&server, &small, batch).await.outcome(), accepted(10));
        }
    }
    assert_eq!(server.stored("SELECT count() FROM spans").await, "300");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_would_be_refused_is_not_read() {
    let (server, token) = start().await;
    let small = key(&server, &token, json!({"bytes_per_day": 1_000})).await;
    let address = server.url.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/ingest HTTP/1.1\r\nhost: unjank\r\nauthorization: Bearer {small}\r\n\
         content-type: application/json\r\ncontent-length: 100000\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    let read = connection.read_exact(&mut answer);
    tokio::time::timeout(wait::PATIENCE, read)
        .await
        .expect("a response before the body is sent")
        .unwrap();
    assert_eq!(&answer, b"HTTP/1.1 429");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_read_in_vain_is_charged() {
    let (server, token) = start().await;
    let key = key(&server, &token, json!({"bytes_per_day": 500_000})).await;
    let batch = spans(1);
    assert_eq!(send(&server, &key, &batch).await.outcome(), accepted(1));
    // Its length is not declared, so the server notices at the limit that it is too large.
    let pieces = (0..20).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1 << 18]));
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let too_large = server.request_with(&key).body(body).send().await;
    // The server does not read the rest, so the client may miss the answer.
    assert!(too_large.is_err() || too_large.unwrap().status() == 413);
    assert_eq!(
        send(&server, &key, &spans(1)).await.outcome(),
        refused("quota_bytes")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_sends_a_large_body_receives_the_reason_of_its_refusal() {
    let (server, token) = start().await;
    let small = key(&server, &token, json!({"bytes_per_day": 1_000})).await;
    let mut batch = spans(1);
    batch["spans"][0]["name"] = json!("x".repeat(900_000));
    for _ in 0..20 {
        assert_eq!(
            send(&server, &small, &batch).await.outcome(),
            refused("quota_bytes")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_refused_by_a_full_log_do_not_use_the_quota() {
    // No ClickHouse: nothing drains.
    let server = Server::away(&[
        "--max-batch-events",
        "20",
        "--log-max-bytes",
        "1048576",
        "--shutdown-timeout-ms",
        "100",
    ])
    .await;
    let token = server.token("admin").await;
    let small = key(&server, &token, json!({"events_per_second": 2})).await;
    while send(&server, KEY, &spans(20)).await.status == 202 {}
    for _ in 0..3 {
        assert_eq!(
            send(&server, &small, &spans(20)).await.outcome(),
            (503, "log_full".to_owned())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_update_changes_only_the_given_fields() {
    let (server, token) = start().await;
    let name = json!({"name": "The shop"});
    let named = server
        .call(&token, Method::PATCH, PROJECT, Some(name))
        .await;
    assert_eq!(named.status, 200, "{:?}", named.body);
    let quotas = json!({"events_per_second": 500, "bytes_per_day": null});
    set(&server, &token, quotas.clone()).await;
    let same = server
        .call(&token, Method::PATCH, PROJECT, Some(json!({})))
        .await;
    assert_eq!(
        (&same.body["name"], &same.body["quotas"]),
        (&json!("The shop"), &quotas)
    );
    // Admins of the project lower limits. They do not raise those that an admin of the installation has set.
    let admin = server.token("admin --project default").await;
    set(
        &server,
        &admin,
        json!({"events_per_second": 400, "bytes_per_day": 1000}),
    )
    .await;
    for more in [
        json!({"events_per_second": 500, "bytes_per_day": 1000}),
        json!({"events_per_second": 400, "bytes_per_day": 1001}),
        json!({"events_per_second": 400}),
        json!({}),
    ] {
        let patch = Some(json!({ "quotas": more }));
        let refused = server.call(&admin, Method::PATCH, PROJECT, patch).await;
        assert_eq!(refused.status, 403, "{:?}", refused.body);
    }
    set(&server, &token, quotas).await;
    let wrong = json!({"quota": 1});
    let wrong = server
        .call(&token, Method::PATCH, PROJECT, Some(wrong))
        .await;
    assert_eq!(wrong.outcome(), (422, "invalid_body".to_owned()));
}
