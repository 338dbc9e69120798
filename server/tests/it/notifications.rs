//! Notifications, from an incident to real receivers: HTTP servers, an Alertmanager, a mail server.

mod alertmanager;
mod channels;
mod digest;
mod forwarding;
mod forwarding_answers;
mod forwarding_at_the_end;
mod forwarding_names;
mod incidents;
mod killed;
mod late;
mod mail;
mod receiver;
mod targets;
mod telling;
mod written;

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Answer, Server};
use crate::wait;

const CHANNELS: &str = "/api/v1/projects/default/channels";
const LOG: &str = "/api/v1/projects/default/notifications";

/// Starts a server that may send to this machine, without a group wait.
async fn sending() -> Server {
    Server::with(&[
        "--notify-allow",
        "127.0.0.1",
        "--notify-group-wait-ms",
        "0",
        "--public-url",
        "https://unjank.example.com/",
    ])
    .await
}

async fn channel(server: &Server, token: &str, body: Value) -> String {
    let made = server.call(token, Method::POST, CHANNELS, Some(body)).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    made.body["id"].as_str().unwrap().to_owned()
}

async fn webhook(server: &Server, token: &str, name: &str, url: &str) -> String {
    channel(
        server,
        token,
        json!({"kind": "webhook", "name": name, "url": url}),
    )
    .await
}

async fn test(server: &Server, token: &str, channel: &str) -> Answer {
    let path = format!("{CHANNELS}/{channel}/test");
    server.call(token, Method::POST, &path, None).await
}

async fn log(server: &Server, token: &str) -> Vec<Value> {
    let answer = server.call(token, Method::GET, LOG, None).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.body["notifications"].as_array().unwrap().clone()
}

/// Waits until the log is as expected.
async fn logged(server: &Server, token: &str, fits: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let mut last = Vec::new();
    let fitted = wait::holds(async || {
        last = log(server, token).await;
        fits(&last)
    });
    assert!(fitted.await, "the log is {last:?}");
    last
}
