//! The daily digest. Once a day, it sends the numbers that the screens show.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::mail::MailServer;
use super::receiver::Receiver;
use super::{channel, log, logged};
use crate::server::{Server, batch, span};

const HOUR: u64 = 3_600;

/// Sends 200 spans of this duration on a day.
async fn a_day(server: &Server, day: &str, duration_us: u64) {
    let mut spans = batch();
    spans["spans"] = (0..200)
        .map(|_| {
            let mut span = span();
            span["start"] = json!(format!("{day}T09:00:00Z"));
            span["duration_us"] = json!(duration_us);
            span
        })
        .collect();
    assert_eq!(server.send(&spans).await.body["accepted"], 200);
}

fn traffic(install: Uuid, bytes: u64) -> Value {
    let mut batch = batch();
    batch["resource"]["install_id"] = json!(install);
    batch["traffic"] = json!([{
        "day": "2026-11-20", "source": "api", "network": "wifi", "tx_bytes": bytes, "rx_bytes": 0, "requests": 3, "failed_requests": 0,
    }]);
    batch
}

/// Sends the traffic of twelve installs, of which one has nearly all.
async fn send_traffic(server: &Server, heavy: Uuid) {
    for number in 0..12 {
        let (install, bytes) = if number == 5 {
            (heavy, 5_000_000_000)
        } else {
            (Uuid::new_v4(), 1_000 + number)
        };
        // One user has two of the small installs, and two installs are without a user.
        let user = match number {
            0 | 1 => "=twice".to_owned(),
            10 | 11 => String::new(),
            _ => format!("user-{number}"),
        };
        let mut traffic = traffic(install, bytes);
        traffic["resource"]["user_id"] = json!(user);
        assert_eq!(server.send(&traffic).await.body["accepted"], 1);
    }
}

/// Asserts that a preview ranks the users of [`send_traffic`], by numbers and in the text.
fn assert_ranks_users(preview: &Value) {
    let digest = &preview["digest"];
    let users = digest["users"].as_array().unwrap();
    assert_eq!((users.len(), &users[0]["user_id"]), (9, &json!("user-5")));
    assert_eq!(
        users[1],
        json!({"user_id": "=twice", "bytes": 2_001.0, "requests": 6.0, "installs": 2.0})
    );
    assert_eq!(
        digest["without_user"],
        json!({"bytes": 2_021.0, "requests": 6.0, "installs": 2.0})
    );
    let text = preview["text"].as_str().unwrap();
    assert!(
        text.contains("=twice: 2.0 kB in 6 requests, on 2 installs"),
        "{text}"
    );
    assert!(
        text.contains("without a user: 2.0 kB in 6 requests, on 2 installs"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_digest_of_a_day_is_sent_once_and_names_regressions() {
    let mails = MailServer::start().await;
    let mut server = Server::with(&["--notify-allow", "127.0.0.1", "--smtp-url", &mails.url]).await;
    let receiver = Receiver::start().await;
    let token = server.token("admin").await;
    a_day(&server, "2026-11-19", 100_000).await;
    a_day(&server, "2026-11-20", 150_000).await;
    let heavy = Uuid::new_v4();
    send_traffic(&server, heavy).await;
    let new = crate::rules::janks(&["com.example.shop.Cart".to_owned()]);
    assert_eq!(server.send(&new).await.body["accepted"], 1);
    server.drained().await;
    let hook = json!({"kind": "webhook", "name": "hook", "url": receiver.url, "digest": true, "incidents": false});
    channel(&server, &token, hook).await;
    let mail = json!({"kind": "email", "name": "mail", "to": ["ann@example.com"], "digest": true, "digest_hour": 9});
    channel(&server, &token, mail).await;
    let path = "/api/v1/projects/default/digest?day=2026-11-20";
    let preview = server.call(&token, Method::GET, path, None).await;
    assert_eq!(preview.status, 200, "{preview:?}");
    let digest = &preview.body["digest"];
    let worse = &digest["regressions"][0];
    assert_eq!(
        (&worse["signal"], &worse["what"]),
        (&json!("spans"), &json!("checkout")),
        "{digest}"
    );
    assert!(
        (0.4..0.6).contains(&worse["change"].as_f64().unwrap()),
        "{worse}"
    );
    assert_eq!(digest["traffic"].as_array().unwrap().len(), 12);
    assert_eq!(digest["traffic"][0]["install_id"], heavy.to_string());
    assert_ranks_users(&preview.body);
    assert_eq!(
        digest["new_groups"].as_array().unwrap().len(),
        1,
        "{digest}"
    );
    assert_eq!(digest["health"]["events_accepted"], 413.0);
    // 06:59 UTC on 2026-11-21, a minute before the webhook's default digest hour.
    server.pass(Duration::from_secs(18 * HOUR + 3_540));
    assert!(log(&server, &token).await.is_empty());
    server.pass(Duration::from_secs(60));
    let sent = receiver.has(1).await.remove(0).json();
    assert_eq!(sent["kind"], "digest");
    assert_eq!(&sent["digest"], digest);
    server.pass(Duration::from_secs(2 * HOUR));
    let mail = mails.has(1).await.remove(0);
    assert!(
        mail.text.contains("traffic-default-2026-11-20.csv"),
        "{}",
        mail.text
    );
    assert!(
        mail.text.contains(heavy.to_string().get(..8).unwrap()),
        "{}",
        mail.text
    );
    assert!(
        mail.text
            .contains("traffic-of-users-default-2026-11-20.csv"),
        "{}",
        mail.text
    );
    // The digest is sent once, even after a restart. The next day has its own digest.
    server.restart().await;
    server.ready().await;
    server.pass(Duration::from_secs(24 * HOUR));
    logged(&server, &token, |log| log.len() == 4).await;
    let keys: Vec<_> = receiver
        .has(2)
        .await
        .iter()
        .map(super::receiver::Received::key)
        .collect();
    assert!(
        keys[0].ends_with(":2026-11-20") && keys[1].ends_with(":2026-11-21"),
        "{keys:?}"
    );
    assert_eq!(mails.has(2).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_day_is_refused() {
    let server = Server::away(&[]).await;
    let token = server.token("viewer").await;
    for (query, expected) in [("day=yesterday", "2026-11-20"), ("date=2026-11-20", "date")] {
        let path = format!("/api/v1/projects/default/digest?{query}");
        let refused = server.call(&token, Method::GET, &path, None).await;
        assert_eq!(refused.outcome(), (400, "invalid_query".to_owned()));
        assert!(refused.body["detail"].as_str().unwrap().contains(expected));
    }
}
