//! From the operator's change to the answer a device gets.

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{Answer, KEY, Server, batch};

/// The settings' project.
const CONFIG: &str = "/api/v1/projects/default/config";

/// A device's poll: status, `ETag` and body.
struct Poll {
    status: StatusCode,
    etag: String,
    cache: String,
    body: Value,
}

async fn poll(server: &Server, query: &str, known: Option<&str>) -> Poll {
    let mut request = server
        .client
        .get(format!("{}/v1/config?{query}", server.url))
        .bearer_auth(KEY);
    if let Some(etag) = known {
        request = request.header("if-none-match", etag);
    }
    let response = request.send().await.unwrap();
    let header = |name: &str| {
        let value = response.headers().get(name);
        value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
    };
    Poll {
        status: response.status(),
        etag: header("etag"),
        cache: header("cache-control"),
        body: serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default(),
    }
}

/// Saves a configuration and waits until it is served.
pub(crate) async fn save(server: &Server, token: &str, configuration: Value) -> Answer {
    let current = server.call(token, Method::GET, CONFIG, None).await;
    let body =
        json!({"expected_revision": current.body["revision"], "configuration": configuration});
    let saved = server.call(token, Method::PUT, CONFIG, Some(body)).await;
    if saved.status == 201 {
        served(server, saved.body["revision"].as_i64().unwrap()).await;
    }
    saved
}

async fn served(server: &Server, revision: i64) {
    tokio::time::timeout(std::time::Duration::from_secs(1), async {
        while poll(server, "", None).await.body["revision"] != revision {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("a change is served within a second");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_saved_configuration_devices_get_the_defaults() {
    let server = Server::start().await;
    let first = poll(&server, "app_id=com.example.shop", None).await;
    assert_eq!(first.status, 200);
    assert_eq!(first.body["revision"], 0);
    assert_eq!(first.body["enabled"], true);
    assert_eq!(
        first.cache,
        format!("private, max-age={}", first.body["poll_interval_s"])
    );
    let again = poll(&server, "app_id=com.example.shop", Some(&first.etag)).await;
    assert_eq!(again.status, 304);
    assert_eq!(again.etag, first.etag);
    let weak = format!("\"other\", W/{}", first.etag);
    assert_eq!(poll(&server, "", Some(&weak)).await.status, 304);
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_are_refused_like_batches() {
    let server = Server::start().await;
    let wrong_app = poll(&server, "app_id=com.example.other", None).await;
    assert_eq!(
        (wrong_app.status.as_u16(), &wrong_app.body["code"]),
        (403, &json!("key_not_for_app"))
    );
    let bad = poll(&server, "build=many", None).await;
    assert_eq!(
        (bad.status.as_u16(), &bad.body["code"]),
        (400, &json!("invalid_query"))
    );
    let nobody = server
        .client
        .get(format!("{}/v1/config", server.url))
        .send()
        .await
        .unwrap();
    assert_eq!(nobody.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_reaches_the_devices_it_is_for_and_no_others() {
    let server = Server::start().await;
    let token = server.token("editor").await;
    let saved = save(
        &server,
        &token,
        json!({
            "base": {"sampling": {"janks": 0.5}},
            "overrides": [{
                "id": "android-4-12", "note": "look closer",
                "when": {"all": [{"os_name": ["android"]}, {"app_version": ">=4.12"}]},
                "patch": {"sampling": {"janks": 1.0}, "tracing": {"enabled": true}}
            }]
        }),
    )
    .await;
    assert_eq!(saved.status, 201, "{:?}", saved.body);
    let new = poll(&server, "os_name=android&app_version=4.12.0", None).await;
    assert_eq!(new.body["sampling"]["janks"], 1.0);
    let old = poll(&server, "os_name=android&app_version=4.11.9", None).await;
    assert_eq!(old.body["sampling"]["janks"], 0.5);
    let other = poll(&server, "os_name=ios&app_version=4.12.0", None).await;
    assert_eq!(other.body["sampling"]["janks"], 0.5);
    assert_eq!(other.etag, old.etag);
    assert_ne!(new.etag, old.etag);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_tells_the_device_that_its_configuration_changed() {
    let server = Server::start().await;
    let token = server.token("editor").await;
    let query = "app_id=com.example.shop&app_version=4.12.0&build=41200&os_name=android&os_version=15\
                 &device_model=Pixel%208&device_class=high&locale=de-DE\
                 &install_id=5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11";
    let before = poll(&server, query, None).await;
    let receipt = server.send(&batch()).await;
    assert_eq!(receipt.body["config_etag"], before.etag);
    let saved = save(
        &server,
        &token,
        json!({"base": {"enabled": true, "poll_interval_s": 300}}),
    )
    .await;
    assert_eq!(saved.status, 201, "{:?}", saved.body);
    let receipt = server.send(&batch()).await;
    let after = poll(&server, query, Some(&before.etag)).await;
    assert_eq!(after.status, 200);
    assert_eq!(receipt.body["config_etag"], after.etag);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_is_silent_where_the_network_decides_since_a_batch_does_not_say_it() {
    let server = Server::start().await;
    let token = server.token("editor").await;
    let on_wifi =
        json!({"id": "wifi", "when": {"network": ["wifi"]}, "patch": {"poll_interval_s": 60}});
    let saved = save(&server, &token, json!({"base": {}, "overrides": [on_wifi]})).await;
    assert_eq!(saved.status, 201, "{:?}", saved.body);
    assert_eq!(
        poll(&server, "network=wifi", None).await.body["poll_interval_s"],
        60
    );
    let receipt = server.send(&batch()).await;
    assert_eq!(
        (receipt.status.as_u16(), &receipt.body["config_etag"]),
        (202, &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_checked_whole_and_two_editors_do_not_overwrite_each_other() {
    let server = Server::start().await;
    let token = server.token("editor").await;
    let bad = save(
        &server,
        &token,
        json!({"base": {"sampling": {"janks": 7}}, "overrides": []}),
    )
    .await;
    assert_eq!(bad.outcome(), (422, "configuration_invalid".to_owned()));
    assert_eq!(bad.body["faults"][0]["path"], "base.sampling.janks");
    let one = json!({"expected_revision": 0, "configuration": {"base": {}}, "note": "one"});
    let first = server
        .call(&token, Method::PUT, CONFIG, Some(one.clone()))
        .await;
    assert_eq!(first.status, 201);
    let second = server.call(&token, Method::PUT, CONFIG, Some(one)).await;
    assert_eq!(second.outcome(), (409, "conflict".to_owned()));
    assert_eq!(second.body["current_revision"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn history_rollback_and_kill_switch_outlive_a_restart() {
    let mut server = Server::start().await;
    let token = server.token("editor").await;
    let quiet = json!({"base": {"sampling": {"janks": 0.25}}, "overrides": []});
    let loud = json!({
        "base": {"sampling": {"janks": 1.0}},
        "overrides": [{"id": "all", "when": {"all": []}, "patch": {"enabled": true}}]
    });
    assert_eq!(save(&server, &token, quiet).await.body["revision"], 1);
    let saved = save(&server, &token, loud).await;
    assert_eq!(saved.body["revision"], 2, "{:?}", saved.body);
    let kill = format!("{CONFIG}/kill");
    let killed = server
        .call(
            &token,
            Method::POST,
            &kill,
            Some(json!({"note": "it drains batteries"})),
        )
        .await;
    assert_eq!(killed.body["revision"], 3, "{:?}", killed.body);
    served(&server, 3).await;
    assert_eq!(poll(&server, "", None).await.body["enabled"], false);
    server.restart().await;
    assert_eq!(poll(&server, "", None).await.body["enabled"], false);
    let back = json!({"revision": 1, "expected_revision": 3});
    let rollback = format!("{CONFIG}/rollback");
    let rolled = server
        .call(&token, Method::POST, &rollback, Some(back))
        .await;
    assert_eq!(rolled.body["revision"], 4, "{:?}", rolled.body);
    served(&server, 4).await;
    let now = poll(&server, "", None).await;
    assert_eq!(
        (&now.body["enabled"], &now.body["sampling"]["janks"]),
        (&json!(true), &json!(0.25))
    );
    let history = format!("{CONFIG}/revisions");
    let history = server.call(&token, Method::GET, &history, None).await;
    let audit = "/api/v1/projects/default/audit?action=configuration.saved";
    let admin = server.token("admin").await;
    let audit = server.call(&admin, Method::GET, audit, None).await;
    let subjects: Vec<_> = audit.body["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["subject"].clone())
        .collect();
    // The clock of the tests stands still, so their order says nothing.
    let subjects: BTreeSet<_> = subjects.iter().filter_map(Value::as_str).collect();
    assert_eq!(subjects, BTreeSet::from(["1", "2", "3", "4"]));
    let notes: Vec<_> = history.body["revisions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["note"].clone())
        .collect();
    assert_eq!(
        notes,
        [
            "back to revision 1",
            "kill switch: it drains batteries",
            "",
            ""
        ]
    );
}

/// Waits until a poll with the key is answered with a status: a second at most.
async fn answers(server: &Server, key: &str, status: u16) {
    let url = format!("{}/v1/config", server.url);
    let poll = async || {
        let request = server.client.get(&url).bearer_auth(key);
        request.send().await.unwrap().status()
    };
    tokio::time::timeout(std::time::Duration::from_secs(1), async {
        while poll().await != status {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("within a second");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_on_one_server_is_served_by_the_other() {
    let url = crate::postgres::postgres().database().await;
    let replica = ["--database-url", url.as_str()];
    let (one, other) = (Server::with(&replica).await, Server::with(&replica).await);
    let token = one.token("editor").await;
    let body = json!({"expected_revision": 0, "configuration": {"base": {"poll_interval_s": 120}}});
    let saved = one.call(&token, Method::PUT, CONFIG, Some(body)).await;
    assert_eq!(saved.status, 201, "{:?}", saved.body);
    served(&other, 1).await;
    assert_eq!(poll(&other, "", None).await.body["poll_interval_s"], 120);
    let receipt = other.send(&batch()).await;
    assert!(receipt.body["config_etag"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_works_and_a_revoked_one_does_not_within_a_second() {
    let server = Server::start().await;
    let token = server.token("admin").await;
    let keys = "/api/v1/projects/default/keys";
    let made = server
        .call(
            &token,
            Method::POST,
            keys,
            Some(json!({"name": "release", "app_ids": ["com.example.shop"]})),
        )
        .await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let key = made.body["key"].as_str().unwrap();
    answers(&server, key, 200).await;
    let path = format!("{keys}/{}", made.body["id"].as_str().unwrap());
    assert_eq!(
        server
            .call(&token, Method::DELETE, &path, None)
            .await
            .status,
        204
    );
    answers(&server, key, 401).await;
    let listed = server.call(&token, Method::GET, keys, None).await;
    assert!(!listed.body.to_string().contains(key));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_no_object_and_no_kill_switch_meets_one() {
    let server = Server::start().await;
    let token = server.token("admin").await;
    let override_by_order = json!(["on", "", true, {"all": []}, {"enabled": true}, null]);
    for configuration in [
        json!([{"enabled": true}, []]),
        json!({"overrides": [override_by_order]}),
    ] {
        let saved = save(&server, &token, configuration).await;
        assert_eq!(saved.outcome(), (422, "configuration_invalid".to_owned()));
        assert_eq!(saved.body["faults"][0]["code"], "wrong_type");
    }
    let project = "/api/v1/projects/default";
    let key = format!("{project}/keys/00000000-0000-0000-0000-000000000000");
    let [rules, tokens] = ["rules", "tokens"].map(|what| format!("{project}/{what}"));
    for (method, path, body) in [
        (Method::PATCH, project, json!(["another name"])),
        (Method::PATCH, project, json!({"quotas": [1, 1]})),
        (Method::PATCH, &key, json!({"quotas": [1, 1]})),
        (Method::PUT, &rules, json!([0, "", ""])),
        (Method::POST, &tokens, json!(["ci", "admin", null])),
    ] {
        let refused = server.call(&token, method, path, Some(body)).await;
        assert_eq!(refused.outcome(), (422, "invalid_body".to_owned()));
    }
}
