//! Device tokens instead of ingest keys, over HTTP. Forged and malformed tokens are tested next to the code that verifies them.

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use reqwest::Method;
use serde_json::{Value, json};

use crate::otlp;
use crate::server::{Answer, KEY, NOW, Server, batch, span};
use crate::symbol_uploads::files_below;
use crate::wait;

const PROJECT: &str = "/api/v1/projects/default";
pub(crate) const KEYS: &str = "/api/v1/projects/default/device-keys";
pub(crate) const SECRET: &str = "a-secret-of-the-app's-own-back-end";
const INSTALL: &str = "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11";

pub(crate) fn token(kid: &str, install: &str) -> String {
    token_for(&json!("default"), kid, install)
}

fn token_for(audience: &Value, kid: &str, install: &str) -> String {
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some(kid.to_owned());
    let claims = json!({"aud": audience, "sub": install, "exp": NOW / 1_000_000 + 600});
    encode(
        &header,
        &claims,
        &EncodingKey::from_secret(SECRET.as_bytes()),
    )
    .unwrap()
}

async fn send(server: &Server, token: &str, batch: &Value) -> Answer {
    let request = server
        .client
        .post(format!("{}/v1/ingest", server.url))
        .bearer_auth(token)
        .json(batch);
    Answer::of(request.send().await.unwrap()).await
}

/// Sends batches until the response has this status.
async fn answered(server: &Server, token: &str, status: u16) -> Answer {
    let mut answer = send(server, token, &with_span()).await;
    wait::until("the change takes effect", async || {
        if answer.status != status {
            answer = send(server, token, &with_span()).await;
        }
        answer.status == status
    })
    .await;
    answer
}

fn with_span() -> Value {
    let mut batch = batch();
    batch["spans"] = json!([span()]);
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_sends_for_its_own_install_until_its_key_is_revoked() {
    let server = Server::start().await;
    let admin = server.token("admin").await;
    let key = json!({"algorithm": "HS256", "material": SECRET});
    let made = server.call(&admin, Method::POST, KEYS, Some(key)).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let kid = made.body["id"].as_str().unwrap();
    answered(&server, &token(kid, INSTALL), 202).await;
    for audience in [json!(["default"]), json!(["other", "default"])] {
        let sent = send(&server, &token_for(&audience, kid, INSTALL), &with_span()).await;
        assert_eq!(sent.status, 202, "{audience}: {:?}", sent.body);
    }
    let elsewhere = token_for(&json!(["other"]), kid, INSTALL);
    let refused = send(&server, &elsewhere, &with_span()).await;
    assert_eq!(refused.outcome(), (401, "token_invalid".to_owned()));
    let other = token(kid, "00000000-0000-4000-8000-000000000000");
    let refused = send(&server, &other, &with_span()).await;
    assert_eq!(refused.outcome(), (403, "token_not_for_install".to_owned()));
    let path = format!("{KEYS}/{kid}");
    let revoked = server.call(&admin, Method::DELETE, &path, None).await;
    assert_eq!(revoked.status, 204);
    let refused = answered(&server, &token(kid, INSTALL), 401).await;
    assert_eq!(refused.outcome(), (401, "token_invalid".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_that_requires_device_tokens_refuses_ingest_keys() {
    let server = Server::start().await;
    let admin = server.token("admin").await;
    let set = async |device_tokens: &str| {
        let patch = json!({"device_tokens": device_tokens});
        server
            .call(&admin, Method::PATCH, PROJECT, Some(patch))
            .await
    };
    let locked_out = set("required").await;
    assert_eq!(locked_out.outcome(), (422, "invalid".to_owned()));
    let detail = locked_out.body["detail"].as_str().unwrap();
    assert!(detail.contains("no active device key"), "{detail}");
    assert_eq!(set("maybe").await.outcome(), (422, "invalid".to_owned()));
    let key = json!({"algorithm": "HS256", "material": SECRET});
    let made = server.call(&admin, Method::POST, KEYS, Some(key)).await;
    let kid = made.body["id"].as_str().unwrap();
    assert_eq!(set("required").await.body["device_tokens"], "required");
    let refusal = (403, "device_token_required".to_owned());
    assert_eq!(answered(&server, KEY, 403).await.outcome(), refusal);
    let config = format!("{}/v1/config", server.url);
    let flags = format!("{}/ofrep/v1/evaluate/flags", server.url);
    for request in [
        server.client.get(&config).bearer_auth(KEY),
        server.client.get(&config).header("x-api-key", KEY),
        server.client.post(&flags).bearer_auth(KEY).json(&json!({})),
    ] {
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert_eq!(answer.outcome(), refusal);
    }
    answered(&server, &token(kid, INSTALL), 202).await;
    server.pass(std::time::Duration::from_secs(1));
    assert_eq!(set("optional").await.status, 200);
    answered(&server, KEY, 202).await;
    let audit = format!("{PROJECT}/audit");
    let audit = server.call(&admin, Method::GET, &audit, None).await;
    let changes = audit.body["entries"].as_array().unwrap().iter();
    let changes: Vec<_> = changes
        .filter(|entry| entry["action"] == "project.updated")
        .map(|entry| entry["detail"]["device_tokens"].clone())
        .collect();
    assert_eq!(changes, [json!("optional"), json!("required")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_device_key_is_refused_and_no_secret_is_shown_or_stored() {
    let server = Server::away(&[]).await;
    let admin = server.token("admin").await;
    for key in [
        json!({"algorithm": "HS256", "material": "short"}),
        json!({"algorithm": "ES256", "material": "no PEM"}),
        json!({"algorithm": "none", "material": SECRET}),
    ] {
        let refused = server.call(&admin, Method::POST, KEYS, Some(key)).await;
        assert_eq!(refused.outcome(), (422, "device_key_unfit".to_owned()));
    }
    let key = json!({"algorithm": "HS256", "material": SECRET});
    let made = server.call(&admin, Method::POST, KEYS, Some(key)).await;
    assert_eq!(made.status, 201);
    let listed = server.call(&admin, Method::GET, KEYS, None).await;
    assert_eq!(listed.body["keys"].as_array().unwrap().len(), 1);
    assert!(!format!("{:?}{:?}", made.body, listed.body).contains(SECRET));
    let files = files_below(server.data_dir());
    assert!(files.iter().any(|path| path.ends_with("control.sqlite")));
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains(SECRET) && !text.contains(&admin),
            "{}",
            path.display()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_sends_requests_of_opentelemetry_for_its_own_install_only() {
    let server = Server::start().await;
    let admin = server.token("admin").await;
    let key = json!({"algorithm": "HS256", "material": SECRET});
    let made = server.call(&admin, Method::POST, KEYS, Some(key)).await;
    let kid = made.body["id"].as_str().unwrap();
    answered(&server, &token(kid, INSTALL), 202).await;
    let export = async |install: &str, id: u64| {
        let body = otlp::traces(&[otlp::span("tap", id)]).to_string();
        let token = token(kid, install);
        let answer = otlp::post_with(&token, &server, "traces", otlp::JSON, body.into_bytes());
        answer.await.status().as_u16()
    };
    assert_eq!(export(INSTALL, 1).await, 200);
    assert_eq!(export("00000000-0000-4000-8000-000000000000", 2).await, 403);
    let stored = "SELECT count() FROM spans WHERE name = 'tap'";
    assert_eq!(server.stored(stored).await, "1");
}
