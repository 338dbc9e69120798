//! Which channel receives which messages, when, and in which form.

use std::time::Duration;

use aws_lc_rs::hmac;
use reqwest::Method;
use serde_json::{Value, json};

use super::incidents::Database;
use super::receiver::{Received, Receiver};
use super::{CHANNELS, LOG, channel, log, logged, sending, webhook};
use crate::server::{NOW, Server};

const KEY: &str = "0123456789abcdef0123456789abcdef";

/// Verifies a signature like the five lines in docs/notifications.md.
fn is_genuine(request: &Received) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, KEY.as_bytes());
    let mut signed = format!("{}.", request.header("x-unjank-timestamp")).into_bytes();
    signed.extend_from_slice(&request.body);
    let signature = request.header("x-unjank-signature");
    let tag: Vec<u8> = (3..signature.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(signature.get(at..at + 2).unwrap(), 16).unwrap())
        .collect();
    signature.starts_with("v1=") && hmac::verify(&key, &signed, &tag).is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn incidents_of_a_rule_are_sent_as_one_signed_message_in_the_format_of_alertmanager() {
    let server = sending().await;
    let receiver = Receiver::start().await;
    let token = server.token("admin").await;
    let url = format!("{}/hook?token=secret", receiver.url);
    let made = json!({"kind": "webhook", "name": "ops", "url": url, "signing_key": KEY});
    channel(&server, &token, made).await;
    let rule = Database::of(&server).rule().await;
    let fired = rule.fire(&["critical", "warning"], NOW - 90_000_000).await;
    let request = receiver.has(1).await.remove(0);
    assert!(is_genuine(&request), "{request:?}");
    let message = request.json();
    assert_eq!(message["version"], "4");
    assert_eq!(message["status"], "firing");
    assert_eq!(message["receiver"], "ops");
    assert_eq!(message["truncatedAlerts"], 0);
    assert_eq!(message["externalURL"], "https://unjank.example.com");
    assert_eq!(
        message["groupLabels"],
        json!({"alertname": "CheckoutSlow", "project": "default"})
    );
    assert_eq!(message["groupKey"], format!("unjank/default/{}", rule.id));
    assert_eq!(
        message["commonAnnotations"]["summary"],
        "p75 of <checkout> is 480 ms, was 320 ms"
    );
    let alert = &message["alerts"][0];
    assert_eq!(message["alerts"].as_array().unwrap().len(), 2);
    assert_eq!(alert["labels"]["page"], fired[0].to_string());
    assert_eq!(alert["labels"]["severity"], "critical");
    assert_eq!(alert["startsAt"], "2026-11-20T11:58:30Z");
    assert_eq!(alert["endsAt"], "0001-01-01T00:00:00Z");
    // Links open the incident's page, which links to its numbers.
    let link = format!(
        "https://unjank.example.com/incidents/{}?project=default",
        fired[0]
    );
    assert_eq!(alert["generatorURL"], link);
    assert_eq!(alert["annotations"]["link"], link);
    assert_eq!(alert["fingerprint"].as_str().unwrap().len(), 16);
    rule.resolve(&fired[..1], NOW - 1_000_000).await;
    let end = receiver.has(2).await.remove(1);
    assert!(is_genuine(&end));
    let end = end.json();
    assert_eq!(end["status"], "resolved");
    assert_eq!(end["alerts"].as_array().unwrap().len(), 1);
    assert_eq!(end["alerts"][0]["fingerprint"], alert["fingerprint"]);
    assert_eq!(end["alerts"][0]["endsAt"], "2026-11-20T11:59:59Z");
    let log = logged(&server, &token, |log| {
        log.iter().all(|one| one["state"] == "delivered")
    });
    assert_eq!(log.await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_incident_of_a_rule_waits_for_others() {
    let server = Server::with(&["--notify-allow", "127.0.0.1"]).await;
    let receiver = Receiver::start().await;
    let token = server.token("admin").await;
    webhook(&server, &token, "ops", &receiver.url).await;
    let rule = Database::of(&server).rule().await;
    rule.fire(&["warning"], NOW).await;
    server.pass(Duration::from_secs(20));
    rule.fire(&["warning"], NOW + 20_000_000).await;
    assert!(log(&server, &token).await.is_empty());
    server.pass(Duration::from_secs(11));
    let message = receiver.has(1).await.remove(0).json();
    assert_eq!(message["alerts"].as_array().unwrap().len(), 2, "{message}");
    assert_eq!(log(&server, &token).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_receives_incidents_from_its_severity_on_and_the_end_of_those_it_received() {
    let server = sending().await;
    let (all, worst) = (Receiver::start().await, Receiver::start().await);
    let token = server.token("admin").await;
    webhook(&server, &token, "all", &all.url).await;
    let only =
        json!({"kind": "webhook", "name": "worst", "url": worst.url, "least_severity": "critical"});
    let only = channel(&server, &token, only).await;
    let rule = Database::of(&server).rule().await;
    let fired = rule.fire(&["info", "critical"], NOW).await;
    all.has(1).await;
    let message = worst.has(1).await.remove(0).json();
    assert_eq!(message["alerts"].as_array().unwrap().len(), 1);
    // The end goes to the channels that received the start, whatever their severity is by now.
    let path = format!("{CHANNELS}/{only}");
    let info = json!({"least_severity": "info"});
    server.call(&token, Method::PATCH, &path, Some(info)).await;
    rule.resolve(&fired, NOW).await;
    let end = worst.has(2).await.remove(1).json();
    assert_eq!(end["alerts"].as_array().unwrap().len(), 1, "{end}");
    let end = all.has(2).await.remove(1).json();
    assert_eq!(end["alerts"].as_array().unwrap().len(), 2, "{end}");
}

#[tokio::test(flavor = "multi_thread")]
async fn muted_incidents_are_not_announced_until_the_mute_ends() {
    let server = sending().await;
    let receiver = Receiver::start().await;
    let token = server.token("admin").await;
    webhook(&server, &token, "ops", &receiver.url).await;
    let muted = Database::of(&server).rule().await;
    muted.mute(NOW - 1, NOW + 60_000_000).await;
    let fired = muted.fire(&["critical", "critical"], NOW).await;
    muted.resolve(&fired[..1], NOW).await;
    let loud = Database::of(&server).rule().await;
    loud.fire(&["critical"], NOW).await;
    let message = receiver.has(1).await.remove(0).json();
    assert_eq!(message["groupKey"], format!("unjank/default/{}", loud.id));
    server.pass(Duration::from_secs(61));
    let message = receiver.has(2).await.remove(1).json();
    assert_eq!(message["status"], "firing");
    assert_eq!(message["alerts"].as_array().unwrap().len(), 1);
    assert_eq!(message["alerts"][0]["labels"]["page"], fired[1].to_string());
    assert_eq!(log(&server, &token).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_messages_are_retried_in_order_after_the_requested_delay() {
    let server = sending().await;
    let receiver = Receiver::answering(|_, before| match before {
        0 => (503, Some("120"), Duration::ZERO),
        _ => (200, None, Duration::ZERO),
    })
    .await;
    let token = server.token("admin").await;
    webhook(&server, &token, "ops", &receiver.url).await;
    let rule = Database::of(&server).rule().await;
    let fired = rule.fire(&["critical"], NOW).await;
    let waiting = |log: &[Value]| {
        log.first()
            .is_some_and(|one| one["attempts"] == 1 && one["state"] == "waiting")
    };
    let log = logged(&server, &token, waiting).await;
    assert_eq!(log[0]["next_attempt_at"], NOW + 120_000_000);
    assert_eq!(
        log[0]["last_error"],
        "the receiver responded with 503: the reason"
    );
    rule.resolve(&fired, NOW).await;
    logged(&server, &token, |log| log.len() == 2).await;
    server.pass(Duration::from_secs(119));
    assert_eq!(receiver.received().len(), 1);
    server.pass(Duration::from_secs(2));
    let received = receiver.has(3).await;
    let statuses: Vec<_> = received
        .iter()
        .map(|one| one.json()["status"].clone())
        .collect();
    assert_eq!(statuses, ["firing", "firing", "resolved"]);
    assert_eq!(received[0].key(), received[1].key());
    assert_ne!(received[1].key(), received[2].key());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_message_is_kept_and_can_be_retried_by_hand() {
    let server = sending().await;
    let receiver = Receiver::answering(|_, before| match before {
        0 => (401, None, Duration::ZERO),
        _ => (204, None, Duration::ZERO),
    })
    .await;
    let token = server.token("admin").await;
    webhook(&server, &token, "ops", &receiver.url).await;
    Database::of(&server)
        .rule()
        .await
        .fire(&["critical"], NOW)
        .await;
    let failed = |log: &[Value]| log.first().is_some_and(|one| one["state"] == "failed");
    let log = logged(&server, &token, failed).await;
    assert_eq!(
        log[0]["last_error"],
        "the receiver responded with 401: the reason"
    );
    let retry = format!("{LOG}/{}/retry", log[0]["id"].as_str().unwrap());
    assert_eq!(
        server.call(&token, Method::POST, &retry, None).await.status,
        204
    );
    receiver.has(2).await;
    let delivered = |log: &[Value]| log[0]["state"] == "delivered";
    logged(&server, &token, delivered).await;
    assert_eq!(
        server.call(&token, Method::POST, &retry, None).await.status,
        404
    );
    assert!(
        server.metrics().await.contains(
            "unjank_notification_attempts_total{kind=\"webhook\",outcome=\"refused\"} 1\n"
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_receiver_does_not_block_others() {
    let server = sending().await;
    let slow = Receiver::answering(|_, _| (200, None, Duration::from_secs(8))).await;
    let fast = Receiver::start().await;
    let token = server.token("admin").await;
    webhook(&server, &token, "slow", &slow.url).await;
    for _ in 0..5 {
        Database::of(&server)
            .rule()
            .await
            .fire(&["critical"], NOW)
            .await;
    }
    slow.has(1).await;
    webhook(&server, &token, "fast", &fast.url).await;
    for _ in 0..20 {
        Database::of(&server)
            .rule()
            .await
            .fire(&["critical"], NOW)
            .await;
    }
    fast.has(20).await;
    assert!(slow.received().len() <= 3, "{}", slow.received().len());
}

#[tokio::test(flavor = "multi_thread")]
async fn slack_receives_a_text_with_escaped_names() {
    let server = sending().await;
    let receiver = Receiver::start().await;
    let token = server.token("admin").await;
    let slack = json!({"kind": "slack", "name": "chat", "url": receiver.url});
    channel(&server, &token, slack).await;
    let rule = Database::of(&server).rule().await;
    let fired = rule.fire(&["critical"], NOW).await;
    let message = receiver.has(1).await.remove(0).json();
    let text = message["text"].as_str().unwrap();
    let link = format!(
        "https://unjank.example.com/incidents/{}?project=default",
        fired[0]
    );
    assert_eq!(
        text,
        format!(
            "**\\[FIRING\\] Checkout is slow**\n• p75 of <\u{200b}checkout> is 480 ms, was 320 ms ([open]({link}))"
        )
    );
}
