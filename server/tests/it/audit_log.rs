//! The audit log: names of people and objects, and filters.

use reqwest::Method;
use serde_json::{Value, json};

use crate::people::{admin, request};
use crate::server::{Answer, Server};

const PROJECT: &str = "/api/v1/projects/default";

async fn entries(server: &Server, token: &str, query: &str) -> Vec<Value> {
    let path = format!("{PROJECT}/audit?{query}");
    let answer = server.call(token, Method::GET, &path, None).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.body["entries"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_name_the_person_and_the_object_even_after_it_is_deleted() {
    let server = Server::start().await;
    let token = server.token("admin").await;
    let cookies = admin(&server).await;
    let post = |path: &str, body: Value| {
        let path = format!("/projects/default/{path}");
        request(&server, Method::POST, &path)
            .header("cookie", &cookies.session)
            .json(&body)
            .send()
    };
    let key = Answer::of(post("keys", json!({"name": "mobile"})).await.unwrap()).await;
    assert_eq!(key.status, 201, "{:?}", key.body);
    let key = key.body["id"].as_str().unwrap();
    let revoked = server
        .call(
            &token,
            Method::DELETE,
            &format!("{PROJECT}/keys/{key}"),
            None,
        )
        .await;
    assert_eq!(revoked.status, 204);
    let channel = json!({"name": "On call", "kind": "webhook", "url": "https://example.com/hook"});
    let channel = server
        .call(
            &token,
            Method::POST,
            &format!("{PROJECT}/channels"),
            Some(channel),
        )
        .await;
    assert_eq!(channel.status, 201, "{:?}", channel.body);
    let id = channel.body["id"].as_str().unwrap();
    let deleted = server
        .call(
            &token,
            Method::DELETE,
            &format!("{PROJECT}/channels/{id}"),
            None,
        )
        .await;
    assert_eq!(deleted.status, 204);

    let created = &entries(
        &server,
        &token,
        &format!("action=ingest_key.created&subject={key}"),
    )
    .await[0];
    assert_eq!(created["subject_name"], "mobile");
    let person = created["actor_name"].as_str().unwrap();
    assert!(!person.is_empty() && !person.contains("user:"), "{created}");
    let revoked = &entries(&server, &token, "action=ingest_key.revoked").await[0];
    // The name is in the entry itself, not only in the key.
    assert_eq!(revoked["detail"]["name"], "mobile");
    let deleted = &entries(&server, &token, "action=channel.deleted").await[0];
    assert_eq!(deleted["subject_name"], "On call");

    let actor = created["actor"].as_str().unwrap();
    let by_person = entries(&server, &token, &format!("actor={actor}")).await;
    assert!(by_person.iter().all(|one| one["actor"] == actor) && !by_person.is_empty());
    let of_key = entries(&server, &token, &format!("subject={key}")).await;
    assert_eq!(of_key.len(), 2);
    let at = created["at"].as_i64().unwrap();
    assert!(
        entries(&server, &token, &format!("to={at}"))
            .await
            .iter()
            .all(|one| one["at"].as_i64() < Some(at))
    );
    let bad = server
        .call(
            &token,
            Method::GET,
            &format!("{PROJECT}/audit?actor=nobody"),
            None,
        )
        .await;
    assert_eq!(bad.outcome(), (400, "invalid_query".to_owned()));
}
