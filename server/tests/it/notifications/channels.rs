//! Channels: creating, changing, testing and deleting them. Their secrets are never returned.

use reqwest::Method;
use serde_json::json;

use super::receiver::Receiver;
use super::{CHANNELS, channel, sending, test};
use crate::server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_channels_are_write_only() {
    let server = sending().await;
    let receiver = Receiver::start().await;
    let token = server.token("admin").await;
    let url = format!("{}/services/T0/very-secret", receiver.url);
    let made = json!({
        "kind": "webhook", "name": "ops", "url": url, "signing_key": "a-signing-key-of-ours", "username": "unjank",
        "password": "a-password-of-ours",
    });
    let id = channel(&server, &token, made).await;
    let path = format!("{CHANNELS}/{id}");
    let renamed = json!({"name": "on call"});
    let renamed = server
        .call(&token, Method::PATCH, &path, Some(renamed))
        .await;
    assert_eq!(renamed.body["name"], "on call");
    assert_eq!(
        renamed.body["host"],
        receiver.url.trim_start_matches("http://")
    );
    assert_eq!(renamed.body["least_severity"], "info");
    // A change of the URL must not send the password to another server.
    let moved = json!({"url": "https://elsewhere.example.com/x"});
    let moved = server.call(&token, Method::PATCH, &path, Some(moved)).await;
    assert_eq!(moved.status, 422);
    assert!(moved.body["detail"].as_str().unwrap().contains("password"));
    // Fields that were not sent are unchanged.
    assert_eq!(
        test(&server, &token, &id).await.body,
        json!({"delivered": true, "error": null})
    );
    let request = receiver.received().remove(0);
    assert_eq!(request.path, "/services/T0/very-secret");
    assert_eq!(
        request.header("authorization"),
        "Basic dW5qYW5rOmEtcGFzc3dvcmQtb2Ytb3Vycw=="
    );
    assert!(request.header("x-unjank-signature").starts_with("v1="));
    assert_eq!(
        request.json()["alerts"][0]["labels"]["alertname"],
        "UnjankTest"
    );
    let listed = server.call(&token, Method::GET, CHANNELS, None).await;
    let audit = "/api/v1/projects/default/audit";
    let audit = server.call(&token, Method::GET, audit, None).await;
    assert!(
        audit.body.to_string().contains("channel.updated"),
        "{audit:?}"
    );
    let file = std::fs::read(server.data_dir().join("control.sqlite")).unwrap();
    let wal = std::fs::read(server.data_dir().join("control.sqlite-wal")).unwrap();
    let kept = String::from_utf8_lossy(&[file, wal].concat()).into_owned();
    for secret in ["very-secret", "a-signing-key-of-ours", "a-password-of-ours"] {
        for text in [&listed.body.to_string(), &audit.body.to_string(), &kept] {
            assert!(!text.contains(secret), "{secret}");
        }
    }
    let gone = server.call(&token, Method::DELETE, &path, None).await;
    assert_eq!(gone.status, 204);
    assert_eq!(test(&server, &token, &id).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_channels_are_refused_with_a_remedy() {
    let server = Server::away(&[]).await;
    let token = server.token("admin").await;
    let url = "https://hooks.example.com/x";
    for (body, expected) in [
        (json!({"name": "x"}), "`kind` must be webhook"),
        (
            json!({"kind": "pager", "name": "x"}),
            "`kind` must be webhook",
        ),
        (json!({"kind": "webhook", "name": "x"}), "`url` is missing"),
        (
            json!({"kind": "webhook", "name": "x", "url": "ftp://example.com"}),
            "https://",
        ),
        (
            json!({"kind": "webhook", "name": "x", "url": "https://a:b@example.com"}),
            "must not contain",
        ),
        (
            json!({"kind": "webhook", "name": "x", "url": "nonsense"}),
            "the URL",
        ),
        (
            json!({"kind": "webhook", "name": "x", "url": url, "signing_key": "short"}),
            "16 characters",
        ),
        (
            json!({"kind": "webhook", "name": "x", "url": url, "password": "p"}),
            "`username`",
        ),
        (
            json!({"kind": "webhook", "name": "x", "url": url, "to": ["a@example.com"]}),
            "for mail",
        ),
        (
            json!({"kind": "slack", "name": "x", "url": url, "signing_key": "0123456789abcdef"}),
            "only a webhook",
        ),
        (
            json!({"kind": "alertmanager", "name": "x", "url": url, "digest": true}),
            "the digest",
        ),
        (json!({"kind": "email", "name": "x"}), "`to` must have"),
        (
            json!({"kind": "email", "name": "x", "to": ["nobody"]}),
            "not an e-mail address",
        ),
        (
            json!({"kind": "email", "name": "x", "to": ["a@example.com"], "url": url}),
            "no `url`",
        ),
        (
            json!({"kind": "webhook", "name": "x", "url": url, "digest_hour": 24}),
            "0 to 23",
        ),
        (
            json!({"kind": "webhook", "name": "x", "url": url, "least_severity": "bad"}),
            "info, warning",
        ),
    ] {
        let refused = server
            .call(&token, Method::POST, CHANNELS, Some(body.clone()))
            .await;
        assert_eq!(
            refused.outcome(),
            (422, "channel_unfit".to_owned()),
            "{body}"
        );
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(expected), "{body}: {detail}");
    }
    let unknown = json!({"kind": "webhook", "name": "x", "url": url, "colour": "red"});
    let refused = server
        .call(&token, Method::POST, CHANNELS, Some(unknown))
        .await;
    assert_eq!(refused.outcome(), (422, "invalid_body".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_of_another_project_is_not_found() {
    let server = sending().await;
    let receiver = Receiver::start().await;
    let all = server.token("admin").await;
    let other = json!({"id": "other", "name": "Other"});
    let made = server
        .call(&all, Method::POST, "/api/v1/projects", Some(other))
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    let own = json!({"kind": "slack", "name": "chat", "url": receiver.url});
    let id = channel(&server, &all, own).await;
    let path = format!("/api/v1/projects/other/channels/{id}");
    for (method, path) in [
        (Method::DELETE, path.clone()),
        (Method::POST, format!("{path}/test")),
    ] {
        let answer = server.call(&all, method, &path, None).await;
        assert_eq!(answer.outcome(), (404, "not_found".to_owned()));
    }
    assert!(receiver.received().is_empty());
}
