//! What waits to be forwarded when the server ends.

use std::process::{Command, Stdio};
use std::time::Duration;

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::forwarding::{FORWARD, forward, named, state, to};
use super::receiver::Receiver;
use super::sending;
use crate::engine::UNJANK;
use crate::processes::token;
use crate::server::{Server, batch};
use crate::wait;

fn checkouts(number: usize) -> Value {
    let mut sent = batch();
    sent["spans"] = (0..number).map(|_| named("checkout")).collect();
    sent
}

async fn failed_once(server: &Server, token: &str) {
    wait::until("an attempt failed", async || {
        state(server, token).await["error"].is_string()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_sent_when_the_server_ends() {
    let mut server = sending().await;
    let token = server.token("admin").await;
    let receiver = Receiver::answering(|_, before| {
        let status = if before == 0 { 503 } else { 200 };
        (status, None, Duration::ZERO)
    })
    .await;
    let mut setting = to(&receiver.url);
    setting["incidents"] = json!(true);
    forward(&server, &token, setting).await;
    server.send(&checkouts(3)).await;
    failed_once(&server, &token).await;
    server.send(&checkouts(4)).await;
    assert_eq!(state(&server, &token).await["waiting"], 7);
    let queue = server.app().intake.forward.clone();
    server.end().await;
    let told = queue.state("default");
    assert_eq!((told.delivered, told.waiting, told.dropped), (7, 0, 0));
    assert_eq!(receiver.received().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_asked_to_wait_is_left_alone_when_the_server_ends() {
    let mut server = sending().await;
    let token = server.token("admin").await;
    let receiver = Receiver::answering(|_, _| (429, Some("60"), Duration::ZERO)).await;
    forward(&server, &token, to(&receiver.url)).await;
    server.send(&checkouts(3)).await;
    failed_once(&server, &token).await;
    server.send(&checkouts(1)).await;
    let queue = server.app().intake.forward.clone();
    server.end().await;
    let told = queue.state("default");
    assert_eq!((told.dropped, told.waiting, told.waiting_bytes), (4, 0, 0));
    assert_eq!(receiver.received().len(), 1);
}

/// Starts the program with a project that forwards to a collector, and sends it spans. Returns the log that it writes until it has ended on
/// SIGTERM.
async fn log_until_the_end(collector: &str, spans: usize) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut child = tokio::process::Command::new(UNJANK)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(["--admin-listen", "127.0.0.1:0", "--notify-allow"])
        .args(["127.0.0.1", "--clickhouse-url", "http://127.0.0.1:9"])
        .args([
            "--shutdown-timeout-ms",
            "2000",
            "--log",
            "warn",
            "--data-dir",
        ])
        .arg(folder.path())
        .env("UNJANK_INGEST_KEYS", "k=*")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut listen = String::new();
    wait::until("the server listens", async || {
        let file = std::fs::read(folder.path().join("server.json"));
        let file: Option<Value> = file
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        listen = file.map_or_else(String::new, |file| {
            format!("http://{}", file["listen"].as_str().unwrap())
        });
        !listen.is_empty()
    })
    .await;
    let token = token(folder.path(), "admin", &[]);
    let client = Client::new();
    let setting = client.request(Method::PUT, format!("{listen}{FORWARD}"));
    let setting = setting.bearer_auth(&token).json(&to(collector));
    assert_eq!(setting.send().await.unwrap().status(), 204);
    let waiting = async || {
        let request = client.get(format!("{listen}{FORWARD}"));
        let answer = request.bearer_auth(&token).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        answer["state"]["waiting"].as_u64().unwrap()
    };
    // The setting takes effect within a second.
    wait::until("spans wait", async || {
        let request = client.post(format!("{listen}/v1/ingest")).bearer_auth("k");
        let request = request.header("content-type", "application/json");
        let request = request.body(checkouts(spans).to_string());
        assert_eq!(request.send().await.unwrap().status(), 202);
        waiting().await > 0
    })
    .await;
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    let mut log = String::new();
    let mut stderr = child.stderr.take().unwrap();
    let ended = async {
        stderr.read_to_string(&mut log).await.unwrap();
        child.wait().await.unwrap()
    };
    let ended = tokio::time::timeout(wait::PATIENCE, ended).await;
    assert!(ended.expect("an end").success(), "{log}");
    log
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_sent_before_the_end_is_in_the_log() {
    // The collector reads requests and never answers.
    let receiver = Receiver::answering(|_, _| (200, None, Duration::from_secs(3_600))).await;
    let log = log_until_the_end(&receiver.url, 3).await;
    let expected = "3 spans of project default were not forwarded: \
                    the server shut down before the collector had taken them";
    assert!(log.contains(expected), "{log}");

    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let log = log_until_the_end(&url, 2).await;
    let expected = "2 spans of project default were not forwarded: the receiver cannot be reached";
    assert!(log.contains(expected), "{log}");
}
