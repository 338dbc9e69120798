//! A channel cannot reach into the server's network.

use reqwest::Method;
use serde_json::json;

use super::receiver::Receiver;
use super::{CHANNELS, channel, sending, test, webhook};
use crate::server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn addresses_that_are_not_public_are_refused_in_every_spelling() {
    let server = Server::away(&[]).await;
    let token = server.token("admin").await;
    for target in [
        "127.0.0.1",
        "127.1",
        "0x7f.0.0.1",
        "2130706433",
        "0177.0.0.1",
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[ff02::1]",
    ] {
        let body = json!({"kind": "webhook", "name": "x", "url": format!("http://{target}:9090/")});
        let refused = server
            .call(&token, Method::POST, CHANNELS, Some(body))
            .await;
        assert_eq!(
            refused.outcome(),
            (422, "channel_unfit".to_owned()),
            "{target}"
        );
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains("--notify-allow"), "{target}: {detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_internal_name_is_refused_unless_it_is_allowed() {
    let receiver = Receiver::start().await;
    let url = receiver.url.replace("127.0.0.1", "localhost");
    let server = Server::away(&[]).await;
    let token = server.token("admin").await;
    // Internal names are not resolved, so the response does not reveal whether they exist.
    for name in ["localhost", "no-such-host", "db.internal"] {
        let body =
            json!({"kind": "webhook", "name": "inside", "url": url.replace("localhost", name)});
        let refused = server
            .call(&token, Method::POST, CHANNELS, Some(body))
            .await;
        assert_eq!(refused.outcome(), (422, "channel_unfit".to_owned()));
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(
            detail.starts_with(&format!("{name} has no public address")),
            "{detail}"
        );
    }
    assert!(receiver.received().is_empty());
    // A name can be allowed.
    let server = Server::away(&["--notify-allow", "localhost"]).await;
    let token = server.token("admin").await;
    let id = webhook(&server, &token, "inside", &url).await;
    let tried = test(&server, &token, &id).await;
    assert_eq!(tried.body["delivered"], true, "{tried:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let receiver = Receiver::answering(|_, _| (302, None, std::time::Duration::ZERO)).await;
    let server = sending().await;
    let token = server.token("admin").await;
    let slack = json!({"kind": "slack", "name": "chat", "url": receiver.url});
    let id = channel(&server, &token, slack).await;
    let tried = test(&server, &token, &id).await;
    let error = tried.body["error"].as_str().unwrap();
    assert!(error.contains("302, a redirect"), "{error}");
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_never_quotes_the_url_with_its_secret() {
    let server = sending().await;
    let token = server.token("admin").await;
    // The port was just released, so nothing listens there.
    let gone = Receiver::start().await.url.clone();
    let id = webhook(&server, &token, "gone", &format!("{gone}/very-secret")).await;
    tokio::task::yield_now().await;
    let tried = test(&server, &token, &id).await;
    assert_eq!(tried.body["delivered"], false, "{tried:?}");
    let error = tried.body["error"].as_str().unwrap();
    assert!(error.contains("cannot be reached"), "{error}");
    assert!(!error.contains("very-secret"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_of_channels_are_rate_limited() {
    let receiver = Receiver::start().await;
    let server = sending().await;
    let token = server.token("admin").await;
    let id = webhook(&server, &token, "chat", &receiver.url).await;
    for _ in 0..10 {
        assert_eq!(test(&server, &token, &id).await.status, 200);
    }
    let refused = test(&server, &token, &id).await;
    assert_eq!(refused.outcome(), (429, "too_many_tests".to_owned()));
    assert!(refused.retry_after.is_some());
    assert_eq!(receiver.received().len(), 10);
}
