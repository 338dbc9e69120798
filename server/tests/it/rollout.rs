//! The rollout of a revision of the configuration to installs.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::remote_config::save;
use crate::server::{Server, batch};

const ROLLOUT: &str = "/api/v1/projects/default/config/rollout";

/// Sends a batch of an install that runs a revision.
async fn report(server: &Server, install: u128, version: &str, revision: u64) {
    let mut batch = batch();
    batch["resource"]["install_id"] = json!(Uuid::from_u128(install));
    batch["resource"]["app_version"] = json!(version);
    batch["config_revision"] = json!(revision);
    assert_eq!(server.send(&batch).await.status, 202);
}

async fn rollout(server: &Server, token: &str) -> Value {
    let answer = server.call(token, Method::GET, ROLLOUT, None).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_arrives_install_by_install() {
    let server = Server::start().await;
    server.ready().await;
    let token = server.token("editor").await;
    assert_eq!(rollout(&server, &token).await["revision"], 0);
    for install in 1..=4 {
        let version = if install == 4 { "4.12.0" } else { "4.11.0" };
        report(&server, install, version, 0).await;
    }
    server.pass(Duration::from_secs(60));
    let patch = json!({"sampling": {"janks": 0.5}});
    let new = json!({"base": {}, "overrides": [
        {"id": "new", "when": {"app_version": ">=4.12"}, "patch": patch}]});
    save(&server, &token, new).await;
    server.pass(Duration::from_secs(60));
    report(&server, 4, "4.12.0", 1).await;
    report(&server, 1, "4.11.0", 0).await;
    server.drained().await;
    let found = rollout(&server, &token).await;
    let counts = [
        "revision",
        "installs",
        "running",
        "waiting",
        "concerned",
        "concerned_running",
    ];
    assert_eq!(
        counts.map(|name| found[name].clone()),
        [1, 4, 1, 1, 1, 1].map(|count| json!(count))
    );
    assert_eq!(
        found["revisions"],
        json!([{"revision": 1, "installs": 1}, {"revision": 0, "installs": 3}])
    );
    assert_eq!(
        (&found["poll_interval_s"], &found["upload_interval_s"]),
        (&json!(900), &json!(60))
    );
    assert_eq!(found["announced"], true);
    // An older batch that arrives late does not move an install back to an older revision.
    report(&server, 4, "4.12.0", 0).await;
    server.drained().await;
    assert_eq!(rollout(&server, &token).await["running"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_concerns_no_install_is_reported_as_such() {
    let server = Server::start().await;
    server.ready().await;
    let token = server.token("editor").await;
    report(&server, 1, "4.11.0", 0).await;
    server.drained().await;
    let nobody = json!({"base": {}, "overrides": [
        {"id": "nobody", "when": {"os_name": ["symbian"]}, "patch": {"sampling": {"janks": 0.5}}}]});
    save(&server, &token, nobody).await;
    let found = rollout(&server, &token).await;
    assert_eq!(
        (&found["installs"], &found["concerned"]),
        (&json!(1), &json!(0))
    );
}
