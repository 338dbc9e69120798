//! API tokens over HTTP: created, shown once, listed and revoked. No token has more rights than the token that created it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Answer, NOW, Server};

const OF_PROJECT: &str = "/api/v1/projects/default/tokens";
const OF_ALL: &str = "/api/v1/tokens";
const DAY: i64 = 24 * 3_600 * 1_000_000;

async fn make(server: &Server, token: &str, path: &str, new: Value) -> Answer {
    server.call(token, Method::POST, path, Some(new)).await
}

fn new(role: &str) -> Value {
    json!({"name": "ci", "role": role})
}

async fn status(server: &Server, token: &str, path: &str) -> u16 {
    let answer = server.call(token, Method::GET, path, None).await;
    answer.status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_token_is_shown_once_and_works_until_it_is_revoked() {
    let server = Server::away(&[]).await;
    let admin = server.token("admin --project default").await;
    let made = make(&server, &admin, OF_PROJECT, new("viewer")).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let token = made.body["token"].as_str().unwrap();
    assert!(token.starts_with(made.body["prefix"].as_str().unwrap()));
    let config = "/api/v1/projects/default/config";
    assert_eq!(status(&server, token, config).await, 200);
    assert_eq!(status(&server, token, OF_PROJECT).await, 403);
    let me = server.call(token, Method::GET, "/api/v1/me", None).await;
    assert_eq!(me.outcome(), (401, "token_missing".to_owned()));
    let detail = me.body["detail"].as_str().unwrap();
    assert!(detail.contains("takes no API token"), "{detail}");
    let listed = server.call(&admin, Method::GET, OF_PROJECT, None).await;
    assert!(!listed.body.to_string().contains(token));
    let mut listed = listed.body["tokens"].as_array().unwrap().iter();
    let listed = listed.find(|one| one["id"] == made.body["id"]).unwrap();
    assert_eq!(
        (&listed["role"], &listed["project"]),
        (&json!("viewer"), &json!("default"))
    );
    let path = format!("{OF_PROJECT}/{}", made.body["id"].as_str().unwrap());
    let revoke = async || {
        server
            .call(&admin, Method::DELETE, &path, None)
            .await
            .status
    };
    server.pass(std::time::Duration::from_secs(1));
    assert_eq!(revoke().await, 204);
    assert_eq!(revoke().await, 404);
    assert_eq!(status(&server, token, config).await, 401);
    let audit = "/api/v1/projects/default/audit";
    let audit = server.call(&admin, Method::GET, audit, None).await;
    let entries = audit.body["entries"].as_array().unwrap().iter();
    let done: Vec<_> = entries
        .filter(|entry| entry["subject"] == made.body["id"])
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(done, ["api_token.revoked", "api_token.created"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_cannot_create_one_with_more_rights() {
    let server = Server::away(&[]).await;
    let operator = server.token("admin").await;
    let admin = server.token("admin --project default").await;
    let shop = json!({"id": "shop"});
    server
        .call(&operator, Method::POST, "/api/v1/projects", Some(shop))
        .await;
    // The token of a project creates no tokens for all projects or for another project.
    let all = make(&server, &admin, OF_ALL, new("viewer")).await;
    assert_eq!(all.outcome(), (403, "role".to_owned()));
    let of_shop = "/api/v1/projects/shop/tokens";
    let other = make(&server, &admin, of_shop, new("viewer")).await;
    assert_eq!(other.outcome(), (404, "project_unknown".to_owned()));
    // Nor does it revoke a token of another project.
    let made = make(&server, &operator, of_shop, new("admin")).await;
    let path = format!("{OF_PROJECT}/{}", made.body["id"].as_str().unwrap());
    let foreign = server.call(&admin, Method::DELETE, &path, None).await;
    assert_eq!(foreign.outcome(), (404, "not_found".to_owned()));
    for role in ["viewer", "editor"] {
        let made = make(&server, &operator, OF_ALL, new(role)).await;
        assert_eq!(made.body["project"], json!(null));
        let token = made.body["token"].as_str().unwrap();
        for path in [OF_ALL, OF_PROJECT] {
            let refused = make(&server, token, path, new("viewer")).await;
            assert_eq!(refused.outcome(), (403, "role".to_owned()));
        }
    }
    let unknown = make(&server, &operator, OF_ALL, new("owner")).await;
    assert_eq!(unknown.outcome(), (422, "invalid".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_expires_together_with_the_tokens_it_created() {
    let server = Server::away(&[]).await;
    let operator = server.token("admin").await;
    let until = |end: i64| json!({"name": "ci", "role": "admin", "expires_at": end});
    let past = make(&server, &operator, OF_ALL, until(NOW)).await;
    assert_eq!(past.outcome(), (422, "invalid".to_owned()));
    let made = make(&server, &operator, OF_ALL, until(NOW + DAY)).await;
    let short = made.body["token"].as_str().unwrap();
    let longer = make(&server, short, OF_PROJECT, until(NOW + 2 * DAY)).await;
    assert_eq!(
        longer.outcome(),
        (403, "token_outlives_its_maker".to_owned())
    );
    let same = make(&server, short, OF_ALL, new("admin")).await;
    assert_eq!(same.body["expires_at"], json!(NOW + DAY));
    let child = same.body["token"].as_str().unwrap();
    assert_eq!(status(&server, child, OF_ALL).await, 200);
    server.pass(std::time::Duration::from_secs(24 * 3_600));
    for token in [short, child] {
        assert_eq!(status(&server, token, OF_ALL).await, 401);
    }
    let listed = server.call(&operator, Method::GET, OF_ALL, None).await;
    assert_eq!(listed.body["tokens"].as_array().unwrap().len(), 3);
}
