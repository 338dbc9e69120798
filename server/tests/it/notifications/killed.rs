//! A server is killed while it sends: no message is lost, and repeated messages have the same key.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;
use unjank_foundation::clock::Clock;

use super::incidents::Database;
use super::receiver::Receiver;
use super::webhook;
use crate::postgres::postgres;
use crate::processes::{Program, token};
use crate::server::{NOW, Server};

const SERVE: [&str; 5] = [
    "serve",
    "--notify-allow",
    "127.0.0.1",
    "--notify-group-wait-ms",
    "0",
];
const CHANNELS: usize = 4;
const RULES: usize = 6;

async fn channels(program: &Program, folder: &std::path::Path, url: &str) -> Vec<String> {
    let token = token(folder, "admin", &[]);
    let mut ids = Vec::new();
    for number in 0..CHANNELS {
        let body = json!({"kind": "webhook", "name": format!("c{number}"), "url": url});
        let path = format!("{}/api/v1/projects/default/channels", program.listen);
        let request = program.client.request(Method::POST, path);
        let made = request
            .bearer_auth(&token)
            .json(&body)
            .send()
            .await
            .unwrap();
        assert_eq!(made.status(), 201);
        let made: Value = made.json().await.unwrap();
        ids.push(made["id"].as_str().unwrap().to_owned());
    }
    ids
}

/// Makes some rules fire. Returns the keys of the messages that all channels must receive.
async fn fire_rules(folder: &std::path::Path, channels: &[String]) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let now = Clock::system().now().as_micros();
    for _ in 0..RULES {
        let rule = Database::in_folder(folder).rule().await;
        let fired = rule.fire(&["critical"], now).await[0];
        keys.extend(
            channels
                .iter()
                .map(|channel| format!("firing:{channel}:{fired}")),
        );
    }
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_while_sending_loses_no_message_and_repeats_with_the_same_key() {
    let folder = tempfile::tempdir().unwrap();
    let arrived = Arc::new(Notify::new());
    let notify = Arc::clone(&arrived);
    // Some requests arrive but get no response before the server is killed.
    let receiver = Receiver::answering(move |_, before| {
        let deadly = before % 5 == 3 && before < 20;
        if deadly {
            notify.notify_one();
        }
        (200, None, Duration::from_secs(if deadly { 4 } else { 0 }))
    })
    .await;
    let mut program = Program::run(folder.path(), &SERVE).await;
    let ids = channels(&program, folder.path(), &receiver.url).await;
    let expected = fire_rules(folder.path(), &ids).await;
    let mut kills = 0;
    while kills < 3 {
        let arrived = tokio::time::timeout(Duration::from_secs(90), arrived.notified()).await;
        arrived.expect("messages keep arriving");
        program.kill();
        kills += 1;
        program = Program::run(folder.path(), &SERVE).await;
    }
    let complete = async {
        while receiver.keys().0 != expected {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let done = tokio::time::timeout(Duration::from_secs(150), complete).await;
    let (keys, repeats) = receiver.keys();
    assert!(done.is_ok(), "missing: {:?}", expected.difference(&keys));
    assert_eq!(keys.len(), CHANNELS * RULES);
    // Only messages in flight at a kill are repeated, at most one per channel. The receiver drops them by their keys.
    assert!(
        (1..=kills * CHANNELS).contains(&repeats),
        "{repeats} repeats after {kills} kills"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_on_one_database_send_each_message_once() {
    let url = tokio::task::spawn_blocking(postgres)
        .await
        .unwrap()
        .database()
        .await;
    let settings = [
        "--database-url",
        url.as_str(),
        "--secret",
        "one secret for all servers of this test",
        "--notify-allow",
        "127.0.0.1",
        "--notify-group-wait-ms",
        "0",
    ];
    let (one, other) = (Server::with(&settings).await, Server::with(&settings).await);
    let receiver = Receiver::answering(|_, _| (200, None, Duration::from_millis(5))).await;
    let token = one.token("admin").await;
    for name in ["a", "b", "c", "d"] {
        webhook(&one, &token, name, &receiver.url).await;
    }
    for _ in 0..20 {
        let rule = Database(url.clone()).rule().await;
        let fired = rule.fire(&["critical"], NOW).await;
        rule.resolve(&fired, NOW).await;
    }
    receiver.has(80).await;
    super::logged(&other, &token, |log| {
        log.len() >= 80 && log.iter().all(|one| one["state"] == "delivered")
    })
    .await;
    let (keys, repeats) = receiver.keys();
    assert_eq!((keys.len() >= 80, repeats), (true, 0));
    let sent = |metrics: &str| {
        let delivered =
            "unjank_notification_attempts_total{kind=\"webhook\",outcome=\"delivered\"} ";
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix(delivered));
        line.unwrap().parse::<usize>().unwrap()
    };
    let shares = [sent(&one.metrics().await), sent(&other.metrics().await)];
    assert_eq!(shares[0] + shares[1], keys.len(), "{shares:?}");
}
