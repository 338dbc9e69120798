//! The kill switch: what it does to overrides, how it is shown, and the way back.

use reqwest::Method;
use serde_json::{Value, json};

use crate::people::{admin, request};
use crate::remote_config::save;
use crate::server::{Answer, KEY, Server};
use crate::wait;

const CONFIG: &str = "/api/v1/projects/default/config";
const KILL: &str = "/api/v1/projects/default/config/kill";
const SWITCH_ON: &str = "/api/v1/projects/default/config/switch-on";

async fn switch(server: &Server, token: &str, path: &str, note: &str) -> Answer {
    let body = json!({"note": note});
    server.call(token, Method::POST, path, Some(body)).await
}

async fn switched_off(server: &Server, token: &str) -> Value {
    let answer = server.call(token, Method::GET, KILL, None).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.body["switched_off"].clone()
}

/// Waits until devices get a revision, and returns the document of a device on this system.
async fn served(server: &Server, revision: &Value, os_name: &str) -> Value {
    let url = format!("{}/v1/config?os_name={os_name}", server.url);
    let mut body = Value::Null;
    wait::until("the change is served", async || {
        let request = server.client.get(&url).bearer_auth(KEY);
        body = Answer::of(request.send().await.unwrap()).await.body;
        body["revision"] == *revision
    })
    .await;
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn it_disables_overrides_that_set_enabled_and_keeps_all_others() {
    let server = Server::away(&[]).await;
    let token = server.token("editor").await;
    let before = json!({"base": {"sampling": {"janks": 0.5}}, "overrides": [
        {"id": "quiet", "when": {"os_name": ["ios"]}, "patch": {"sampling": {"janks": 0.1}}},
        {"id": "beta", "when": {"os_name": ["android"]}, "patch": {"enabled": true}}]});
    assert_eq!(switched_off(&server, &token).await, Value::Null);
    assert_eq!(save(&server, &token, before).await.status, 201);
    assert_eq!(switched_off(&server, &token).await, Value::Null);
    let killed = switch(&server, &token, KILL, "too much").await;
    let overrides = &killed.body["configuration"]["overrides"];
    assert_eq!(overrides[0].get("enabled"), None);
    assert_eq!(overrides[1]["enabled"], false);
    let ios = served(&server, &killed.body["revision"], "ios").await;
    assert_eq!(
        (&ios["enabled"], &ios["sampling"]["janks"]),
        (&json!(false), &json!(0.1))
    );
    let android = served(&server, &killed.body["revision"], "android").await;
    assert_eq!(android["enabled"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_that_is_off_says_since_when_and_by_whom_and_can_be_switched_on() {
    let server = Server::away(&[]).await;
    let token = server.token("editor").await;
    let beta = json!({"id": "beta", "when": {"all": []}, "patch": {"enabled": true}});
    save(&server, &token, json!({"base": {}, "overrides": [beta]})).await;
    let cookies = admin(&server).await;
    let kill = request(&server, Method::POST, "/projects/default/config/kill")
        .header("cookie", &cookies.session);
    let killed = kill
        .json(&json!({"note": "too much"}))
        .send()
        .await
        .unwrap();
    assert_eq!(killed.status(), 201);
    // A change that is saved while the project is off belongs to another author.
    let mut later = Answer::of(killed).await.body["configuration"].clone();
    later["base"]["poll_interval_s"] = json!(60);
    assert_eq!(save(&server, &token, later).await.body["revision"], 3);
    let off = switched_off(&server, &token).await;
    assert_eq!(
        (&off["revision"], &off["note"], &off["except"]),
        (&json!(2), &json!("kill switch: too much"), &json!([]))
    );
    let (author, name) = (
        off["author"].as_str().unwrap(),
        off["author_name"].as_str().unwrap(),
    );
    assert!(author.starts_with("user:"), "{off}");
    let editors = off["editors"][0].as_str().unwrap();
    assert!(editors.starts_with(name), "{off}");

    let viewer = server.token("viewer").await;
    assert_eq!(switch(&server, &viewer, SWITCH_ON, "").await.status, 403);
    let on = switch(&server, &token, SWITCH_ON, "fixed").await;
    assert_eq!(on.status, 201, "{:?}", on.body);
    assert_eq!(
        on.body["configuration"],
        json!({"base": {"poll_interval_s": 60}, "overrides": [
            {"id": "beta", "when": {"all": []}, "patch": {"enabled": true}}]})
    );
    assert_eq!(on.body["note"], "switched on again: fixed");
    assert_eq!(switched_off(&server, &token).await, Value::Null);
    let again = switch(&server, &token, SWITCH_ON, "").await;
    assert_eq!(again.outcome(), (422, "invalid".to_owned()));
}

/// An override for some devices. Overrides for the same devices would hide each other.
fn enabling(id: &str) -> Value {
    json!({"id": id, "when": {"os_name": [id]}, "patch": {"enabled": true}})
}

async fn saved(server: &Server, token: &str, configuration: Value) {
    let saved = save(server, token, configuration).await;
    assert_eq!(saved.status, 201, "{:?}", saved.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn switching_on_restores_what_was_on_and_keeps_later_changes() {
    let server = Server::away(&[]).await;
    let token = server.token("editor").await;
    let mut paused = enabling("paused");
    paused["enabled"] = json!(false);
    let before = json!({"base": {}, "overrides": [enabling("beta"), paused, enabling("removed")]});
    saved(&server, &token, before).await;
    let killed = switch(&server, &token, KILL, "").await;
    let mut later = killed.body["configuration"].clone();
    later["base"]["poll_interval_s"] = json!(60);
    later["overrides"].as_array_mut().unwrap().pop();
    saved(&server, &token, later).await;
    let on = switch(&server, &token, SWITCH_ON, "").await;
    assert_eq!(
        on.body["configuration"],
        json!({"base": {"poll_interval_s": 60}, "overrides": [enabling("beta"), paused]})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_that_was_off_from_its_first_revision_is_switched_on() {
    let server = Server::away(&[]).await;
    let token = server.token("editor").await;
    let off = json!({"base": {"enabled": false}, "overrides": []});
    saved(&server, &token, off).await;
    let on = switch(&server, &token, SWITCH_ON, "").await;
    assert_eq!(on.body["configuration"]["base"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_a_second_kill_disabled_is_restored() {
    let server = Server::away(&[]).await;
    let token = server.token("editor").await;
    let both = json!([enabling("beta"), enabling("by_hand")]);
    saved(&server, &token, json!({"base": {}, "overrides": both})).await;
    // Switched off by hand, so the overrides still enable collection. Then one is disabled by hand, and the other one by the switch.
    let mut off = json!({"base": {"enabled": false}, "overrides": both});
    saved(&server, &token, off.clone()).await;
    off["overrides"][1]["enabled"] = json!(false);
    saved(&server, &token, off).await;
    assert_eq!(
        switched_off(&server, &token).await["except"],
        json!(["beta"])
    );
    switch(&server, &token, KILL, "").await;
    let mut by_hand = enabling("by_hand");
    by_hand["enabled"] = json!(false);
    let on = switch(&server, &token, SWITCH_ON, "").await;
    assert_eq!(
        on.body["configuration"],
        json!({"base": {}, "overrides": [enabling("beta"), by_hand]})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_that_keep_devices_on_are_named() {
    let server = Server::away(&[]).await;
    let token = server.token("editor").await;
    let off = json!({"base": {"enabled": false}, "overrides": [
        {"id": "testers", "when": {"os_name": ["ios"]}, "patch": {"enabled": true}},
        {"id": "over", "when": {"os_name": ["android"]}, "patch": {"enabled": true}, "expires_at": "2020-01-01T00:00:00Z"}]});
    assert_eq!(save(&server, &token, off).await.status, 201);
    assert_eq!(
        switched_off(&server, &token).await["except"],
        json!(["testers"])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_change_has_its_own_name_in_the_audit_log() {
    let server = Server::away(&[]).await;
    let token = server.token("admin").await;
    save(&server, &token, json!({"base": {"poll_interval_s": 60}})).await;
    save(&server, &token, json!({"base": {"poll_interval_s": 70}})).await;
    let rollback = json!({"revision": 1, "expected_revision": 2});
    let path = format!("{CONFIG}/rollback");
    server
        .call(&token, Method::POST, &path, Some(rollback))
        .await;
    switch(&server, &token, KILL, "").await;
    switch(&server, &token, SWITCH_ON, "").await;
    for (action, subjects) in [
        ("saved", json!(["1", "2"])),
        ("rolled_back", json!(["3"])),
        ("switched_off", json!(["4"])),
        ("switched_on", json!(["5"])),
    ] {
        let path = format!("/api/v1/projects/default/audit?action=configuration.{action}");
        let audit = server.call(&token, Method::GET, &path, None).await;
        let entries = audit.body["entries"].as_array().unwrap();
        let mut found: Vec<_> = entries.iter().map(|one| one["subject"].clone()).collect();
        found.sort_by_key(ToString::to_string);
        assert_eq!(Value::Array(found), subjects, "{action}");
    }
}
