//! Remote configuration, from an operator's change to the response to a device.

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{Answer, KEY, Server, batch};
use crate::wait;

const CONFIG: &str = "/api/v1/projects/default/config";

/// The response to a device's poll.
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
    wait::until("the change is served", async || {
        poll(server, "", None).await.body["revision"] == revision
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_saved_configuration_devices_get_the_defaults() {
    let server = Server::away(&[]).await;
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
async fn polls_with_a_wrong_key_or_query_are_refused() {
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
async fn an_override_applies_only_to_matching_devices() {
    let server = Server::away(&[]).await;
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
async fn conditions_order_versions_and_their_builds() {
    let server = Server::away(&[]).await;
    let token = server.token("editor").await;
    let at_least = |id: &str, requirement: &str| {
        json!({
            "id": id, "note": "builds", "when": {"app_version": requirement},
            "patch": {"sampling": {"janks": 1.0}}
        })
    };
    let overrides = [
        at_least("builds", ">=4.10"),
        at_least("plus", ">=1.4.0+10, <2"),
    ];
    let document = json!({"base": {"sampling": {"janks": 0.5}}, "overrides": overrides});
    let saved = save(&server, &token, document).await;
    assert_eq!(saved.status, 201, "{:?}", saved.body);
    for (version, janks) in [
        ("4.10.0 (41)", 1.0),
        ("4.9.0 (40)", 0.5),
        ("1.4.0%2B10", 1.0),
        ("1.4.0%2B9", 0.5),
        ("1.4.0", 0.5),
        ("5.0 beta 2", 1.0),
        ("4.10.1.2.3", 1.0),
        ("nightly", 0.5),
    ] {
        let polled = poll(&server, &format!("app_version={version}"), None).await;
        assert_eq!(polled.body["sampling"]["janks"], janks, "{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_has_the_etag_of_the_devices_current_configuration() {
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
async fn a_receipt_has_no_etag_if_the_configuration_depends_on_the_network() {
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
    // A batch does not name its network.
    let receipt = server.send(&batch()).await;
    assert_eq!(
        (receipt.status.as_u16(), &receipt.body["config_etag"]),
        (202, &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_configurations_are_refused_and_concurrent_edits_conflict() {
    let server = Server::away(&[]).await;
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
async fn history_rollback_and_kill_switch_survive_a_restart() {
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
    let audit = "/api/v1/projects/default/audit";
    let admin = server.token("admin").await;
    let audit = server.call(&admin, Method::GET, audit, None).await;
    let entries = audit.body["entries"].as_array().unwrap().iter();
    // The test clock does not advance, so the order is undefined.
    let recorded: BTreeSet<_> = entries
        .filter_map(|entry| entry["action"].as_str().zip(entry["subject"].as_str()))
        .filter(|(action, _)| action.starts_with("configuration."))
        .collect();
    assert_eq!(
        recorded,
        BTreeSet::from([
            ("configuration.saved", "1"),
            ("configuration.saved", "2"),
            ("configuration.switched_off", "3"),
            ("configuration.switched_on", "4"),
        ])
    );
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

/// Waits until a poll with the key has this status.
async fn wait_for_status(server: &Server, key: &str, status: u16) {
    let url = format!("{}/v1/config", server.url);
    wait::until("the status of a poll", async || {
        let request = server.client.get(&url).bearer_auth(key);
        request.send().await.unwrap().status() == status
    })
    .await;
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
async fn new_and_revoked_keys_take_effect() {
    let server = Server::away(&[]).await;
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
    wait_for_status(&server, key, 200).await;
    let path = format!("{keys}/{}", made.body["id"].as_str().unwrap());
    assert_eq!(
        server
            .call(&token, Method::DELETE, &path, None)
            .await
            .status,
        204
    );
    wait_for_status(&server, key, 401).await;
    let listed = server.call(&token, Method::GET, keys, None).await;
    assert!(!listed.body.to_string().contains(key));
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_with_arrays_in_place_of_objects_are_refused() {
    let server = Server::away(&[]).await;
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

/// Sends a body as it is written.
async fn send(server: &Server, token: &str, method: Method, path: &str, body: &[u8]) -> Answer {
    let request = server
        .client
        .request(method, format!("{}{path}", server.url))
        .header("content-type", "application/json")
        .bearer_auth(token)
        .body(body.to_vec());
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_read_as_other_languages_write_them() {
    let server = Server::away(&[]).await;
    let admin = server.token("admin").await;
    let put = async |body: &[u8]| send(&server, &admin, Method::PUT, CONFIG, body).await;
    let base = r#"{"poll_interval_s": 600.0, "jank": {"anr_ms": 5e3}, "toggles": {"price": 2.0}}"#;
    let whole = |revision: &str, note: &str| {
        format!(
            r#"{{"expected_revision": {revision}, "note": "{note}", "configuration": {{"base": {base}}}}}"#
        )
    };
    let saved = put(format!("\u{feff}{}", whole("0.0", r"cut \ud83d")).as_bytes()).await;
    assert_eq!(saved.status, 201, "{:?}", saved.body);
    assert_eq!(saved.body["note"], "cut \u{fffd}");
    let base = &saved.body["configuration"]["base"];
    assert_eq!(base["poll_interval_s"], 600);
    assert_eq!(base["jank"]["anr_ms"], 5_000);
    // The value of a toggle belongs to the app.
    assert_eq!(base["toggles"]["price"].to_string(), "2.0");
    let mut latin = whole("1", "caf?").into_bytes();
    for byte in &mut latin {
        if *byte == b'?' {
            *byte = 0xe9;
        }
    }
    let saved = put(&latin).await;
    assert_eq!(saved.status, 201, "{:?}", saved.body);
    assert_eq!(saved.body["note"], "caf\u{fffd}");
    for (revision, note, status) in [
        ("2.5", "a fraction", 422),
        (r#""2""#, "a text", 422),
        ("NaN", "no number", 400),
        ("2", r"bad escape \d", 400),
    ] {
        let refused = put(whole(revision, note).as_bytes()).await;
        assert_eq!(
            refused.outcome(),
            (status, "invalid_body".to_owned()),
            "{note}"
        );
    }
    let rules = "/api/v1/projects/default/alert-rules";
    let templates = format!("{rules}/templates");
    let templates = server.call(&admin, Method::GET, &templates, None).await;
    let mut rule = templates.body["templates"][0].clone();
    rule["for_minutes"] = json!(0.0);
    let check = format!("{rules}/check");
    let checked = server.call(&admin, Method::POST, &check, Some(rule)).await;
    assert_eq!(checked.body, json!({"valid": true, "faults": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_character_is_not_replaced_in_a_secret() {
    let server = Server::away(&[]).await;
    let admin = server.token("admin").await;
    for (path, body) in [
        (
            "/api/v1/login",
            r#"{"email": "ann@example.com", "password": "a long one \ud83d"}"#,
        ),
        (
            "/api/v1/projects/default/device-keys",
            r#"{"algorithm": "HS256", "material": "a secret that is long enough \ud83d"}"#,
        ),
        (
            "/api/v1/projects/default/channels",
            r#"{"kind": "webhook", "signing_key": "\ud83d"}"#,
        ),
    ] {
        let refused = send(&server, &admin, Method::POST, path, body.as_bytes()).await;
        assert_eq!(
            refused.outcome(),
            (400, "invalid_body".to_owned()),
            "{path}"
        );
    }
}
