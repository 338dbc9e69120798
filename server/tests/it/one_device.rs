//! What one device gets from the remote configuration, and why, as people ask for it.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::remote_config::save;
use crate::server::{Answer, KEY, Server, batch};
use crate::wait;

const DEVICE: &str = "/api/v1/projects/default/config/device";
/// At 29.922 % of installs with the salt `new-checkout`.
const INSTALL: &str = "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11";

async fn ask(server: &Server, token: &str, body: Value) -> Answer {
    server.call(token, Method::POST, DEVICE, Some(body)).await
}

async fn about(server: &Server, token: &str, attributes: &Value) -> Value {
    let answer = ask(server, token, json!({"attributes": attributes})).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.body
}

/// Returns the document that a device with these attributes gets from its poll, and the `ETag`.
async fn polled(server: &Server, attributes: &Value) -> (Value, String) {
    let attributes = attributes.as_object().unwrap().iter();
    let pairs: Vec<_> = attributes
        .map(|(name, value)| {
            let text = value.as_str().map_or(value.to_string(), str::to_owned);
            format!("{name}={text}")
        })
        .collect();
    let url = format!("{}/v1/config?{}", server.url, pairs.join("&"));
    let request = server.client.get(url).bearer_auth(KEY);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let etag = response.headers()["etag"].to_str().unwrap().to_owned();
    (Answer::of(response).await.body, etag)
}

/// A base, and overrides by version, percentage, install and locale. One is disabled.
fn configuration() -> Value {
    let share = |percent: u32| json!({"percentage": {"percent": percent, "salt": "new-checkout"}});
    json!({
        "base": {"sampling": {"janks": 0.5}, "tracing": {"enabled": false}},
        "overrides": [
            {"id": "new", "when": {"app_version": ">=4.12"}, "patch": {"sampling": {"janks": 1}, "tracing": {"enabled": true}}},
            {"id": "ramp", "when": share(30), "patch": {"toggles": {"ramp": true}}},
            {"id": "small", "when": share(29), "patch": {"toggles": {"small": true}}},
            {"id": "off", "enabled": false, "when": {"all": []}, "patch": {"enabled": false}},
            {"id": "mine", "note": "my phone", "when": {"install_id": [INSTALL.to_uppercase()]}, "patch": {"poll_interval_s": 60}},
            {"id": "german", "when": {"all": [{"locale": ["de"]}, {"not": {"os_name": ["ios"]}}]},
             "patch": {"toggles": {"german": true}}},
            {"id": "beta", "when": {"user_id": ["u-1"]}, "patch": {"enabled": true, "sampling": {"janks": 0.25}}}
        ]
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_is_what_the_device_gets() {
    let server = Server::start().await;
    let editor = server.token("editor").await;
    let viewer = server.token("viewer").await;
    let devices = [
        json!({}),
        json!({"app_version": "4.12.0", "os_name": "android"}),
        json!({"app_version": "4.11.9", "os_name": "ios", "locale": "de-AT"}),
        json!({"build": 41200, "os_name": "android", "locale": "de-AT"}),
        json!({"install_id": INSTALL}),
        json!({"install_id": INSTALL.to_uppercase(), "app_version": "4.13.0"}),
        json!({"install_id": "00000000-0000-0000-0000-000000000007"}),
        json!({"app_id": "com.example.shop", "user_id": "u-1", "network": "wifi", "app_version": "5.0.0"}),
    ];
    for step in 0..3 {
        if step == 1 {
            let saved = save(&server, &editor, configuration()).await;
            assert_eq!(saved.status, 201, "{:?}", saved.body);
        }
        if step == 2 {
            let kill = "/api/v1/projects/default/config/kill";
            let reason = Some(json!({"note": "too much"}));
            server.call(&editor, Method::POST, kill, reason).await;
            let served = async || polled(&server, &json!({})).await.0["revision"] == 2;
            wait::until("the kill switch is served", served).await;
        }
        for device in &devices {
            let (document, etag) = polled(&server, device).await;
            let answer = about(&server, &viewer, device).await;
            assert_eq!(answer["document"], document, "{device}");
            assert_eq!(answer["etag"], etag, "{device}");
            assert_eq!(answer["revision"], step);
            assert_eq!(answer["current_revision"], step);
            assert_eq!(answer["last_report"], Value::Null);
            let janks = key(&answer, "sampling.janks");
            assert_eq!(janks["value"], document["sampling"]["janks"], "{device}");
        }
    }
    // The kill switch disables the override that would keep this device on.
    let killed = about(&server, &viewer, &devices[7]).await;
    assert_eq!(killed["document"]["enabled"], false);
    assert_eq!(over(&killed, "beta")["outcome"], "disabled");
    assert_eq!(over(&killed, "beta")["matches"], true);
    assert_eq!(key(&killed, "enabled")["source"], "base");
}

/// Returns what an answer says about a key.
fn key(answer: &Value, name: &str) -> Value {
    let keys = answer["keys"].as_array().unwrap();
    keys.iter().find(|one| one["key"] == name).unwrap().clone()
}

/// Returns what an answer says about an override.
fn over(answer: &Value, id: &str) -> Value {
    let overrides = answer["overrides"].as_array().unwrap();
    overrides
        .iter()
        .find(|one| one["id"] == id)
        .unwrap()
        .clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_override_and_each_value_has_its_reason() {
    let server = Server::start().await;
    let editor = server.token("editor").await;
    let saved = save(&server, &editor, configuration()).await;
    assert_eq!(saved.status, 201, "{:?}", saved.body);
    let device = json!({"install_id": INSTALL.to_uppercase(), "app_version": "4.11.9", "os_name": "ios", "locale": "de-AT"});
    let answer = about(&server, &editor, &device).await;
    assert_eq!(answer["attributes"]["install_id"], INSTALL);
    let overrides = answer["overrides"].as_array().unwrap().iter();
    let outcomes: Vec<_> = overrides
        .map(|one| {
            (
                one["id"].as_str().unwrap(),
                one["outcome"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        outcomes,
        [
            ("new", "unmet"),
            ("ramp", "applied"),
            ("small", "unmet"),
            ("off", "disabled"),
            ("mine", "applied"),
            ("german", "unmet"),
            ("beta", "unmet")
        ]
    );
    let part = |condition: &str, negated: bool, device: Value, wanted: Value, percentage: Value| {
        json!([{"condition": condition, "negated": negated, "device": device, "wanted": wanted, "left_out": 0,
                "percentage": percentage}])
    };
    let unmet = |id: &str| over(&answer, id)["unmet"].clone();
    assert_eq!(
        unmet("new"),
        part(
            "app_version",
            false,
            json!("4.11.9"),
            json!([">=4.12"]),
            Value::Null
        )
    );
    let place = json!({"below": 29.0, "install": 29.922});
    assert_eq!(
        unmet("small"),
        part("percentage", false, json!(INSTALL), json!([]), place)
    );
    assert_eq!(
        unmet("german"),
        part("os_name", true, json!("ios"), json!(["ios"]), Value::Null)
    );
    assert_eq!(
        unmet("beta"),
        part("user_id", false, Value::Null, json!(["u-1"]), Value::Null)
    );
    assert_eq!(unmet("off"), json!([]));
    assert_eq!(
        over(&answer, "mine"),
        json!({"id": "mine", "note": "my phone", "outcome": "applied", "matches": true, "unmet": [], "unmet_parts": 0,
               "expires_at": null, "keys": 1, "overridden_keys": 0, "overridden": []})
    );
    for (name, value, source, id) in [
        ("poll_interval_s", json!(60), "override", json!("mine")),
        ("toggles.ramp", json!(true), "override", json!("ramp")),
        ("tracing.enabled", json!(false), "base", Value::Null),
        ("sampling.janks", json!(0.5), "base", Value::Null),
        (
            "sampling.spans.default",
            json!(0.01),
            "default",
            Value::Null,
        ),
    ] {
        assert_eq!(
            key(&answer, name),
            json!({"key": name, "value": value, "source": source, "set_by": id})
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_attributes_are_those_that_the_install_last_reported() {
    let server = Server::start().await;
    let editor = server.token("editor").await;
    let report = async |version: &str, revision: u64| {
        let mut batch = batch();
        batch["resource"]["app_version"] = json!(version);
        batch["resource"]["os_name"] = json!("android");
        batch["config_revision"] = json!(revision);
        assert_eq!(server.send(&batch).await.status, 202);
        server.drained().await;
    };
    report("4.11.0", 0).await;
    server.pass(Duration::from_secs(60));
    report("4.12.0", 0).await;
    let when = json!({"all": [{"os_name": ["android"]}, {"app_version": ">=4.12"}]});
    let new = json!({"id": "new", "when": when, "patch": {"sampling": {"janks": 0.25}}});
    save(&server, &editor, json!({"base": {}, "overrides": [new]})).await;
    let capitals = json!({"install_id": INSTALL.to_uppercase()});
    let answer = about(&server, &editor, &capitals).await;
    assert_eq!(over(&answer, "new")["outcome"], "applied");
    assert_eq!(answer["attributes"]["app_version"], "4.12.0");
    assert_eq!(
        (&answer["revision"], &answer["last_report"]["revision"]),
        (&json!(1), &json!(0))
    );
    let filled = answer["last_report"]["filled"].to_string();
    for name in ["app_id", "app_version", "os_name"] {
        assert!(filled.contains(&format!("\"{name}\"")), "{filled}");
    }
    // The device gets what the answer says.
    let whole = json!({"install_id": INSTALL, "app_id": "com.example.shop", "app_version": "4.12.0", "os_name": "android"});
    assert_eq!(answer["document"], polled(&server, &whole).await.0);
    // What the question names takes precedence, also if it is empty.
    let older = json!({"install_id": INSTALL, "app_version": "4.11.0"});
    let older = about(&server, &editor, &older).await;
    assert_eq!(over(&older, "new")["unmet"][0]["device"], "4.11.0");
    let unknown = about(
        &server,
        &editor,
        &json!({"install_id": INSTALL, "os_name": ""}),
    )
    .await;
    assert_eq!(over(&unknown, "new")["unmet"][0]["device"], Value::Null);
    assert_eq!(over(&unknown, "new")["unmet"][0]["condition"], "os_name");
    report("4.12.0", 1).await;
    let answer = about(&server, &editor, &capitals).await;
    assert_eq!(answer["last_report"]["revision"], 1);
    // The last day is asked first, then the others.
    server.pass(Duration::from_secs(2 * 24 * 3_600));
    let answer = about(&server, &editor, &capitals).await;
    assert_eq!(answer["last_report"]["revision"], 1);
    assert_eq!(answer["attributes"]["app_version"], "4.12.0");
    server.pass(Duration::from_secs(6 * 24 * 3_600));
    let answer = about(&server, &editor, &capitals).await;
    assert_eq!(answer["last_report"], Value::Null);
    assert_eq!(over(&answer, "new")["outcome"], "unmet");
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_revisions_and_drafts_can_be_asked_about() {
    let server = Server::away(&[]).await;
    let editor = server.token("editor").await;
    save(&server, &editor, json!({"base": {"poll_interval_s": 120}})).await;
    save(&server, &editor, json!({"base": {"poll_interval_s": 240}})).await;
    for (revision, poll_interval_s) in [
        (json!(null), 240),
        (json!(2), 240),
        (json!(1), 120),
        (json!(0), 900),
    ] {
        let answer = ask(&server, &editor, json!({"revision": revision})).await;
        assert_eq!(answer.body["document"]["poll_interval_s"], poll_interval_s);
        let revision = revision.as_u64().unwrap_or(2);
        assert_eq!(answer.body["document"]["revision"], revision);
        assert_eq!(answer.body["current_revision"], 2);
    }
    let everywhere = |id: &str, janks: f64| json!({"id": id, "when": {"app_version": "*"}, "patch": {"sampling": {"janks": janks}}});
    let past = json!({"id": "past", "expires_at": "2020-01-01T00:00:00Z", "when": {"os_name": ["ios"]}, "patch": {"enabled": false}});
    let draft = json!({"overrides": [everywhere("early", 0.25), past, everywhere("late", 0.75)]});
    let question =
        json!({"configuration": draft, "attributes": {"os_name": "ios", "app_version": "1"}});
    let answer = ask(&server, &editor, question).await;
    assert_eq!(answer.body["document"]["sampling"]["janks"], 0.75);
    assert_eq!(answer.body["document"]["revision"], 2);
    assert_eq!(over(&answer.body, "past")["outcome"], "expired");
    assert_eq!(
        over(&answer.body, "early")["overridden"],
        json!([{"key": "sampling.janks", "by": "late"}])
    );
    let latest = "/api/v1/projects/default/config";
    let latest = server.call(&editor, Method::GET, latest, None).await;
    assert_eq!(latest.body["revision"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_that_cannot_be_answered_are_refused() {
    let server = Server::away(&[]).await;
    let viewer = server.token("viewer").await;
    for (body, status, code) in [
        (json!({"revision": 9}), 404, "not_found"),
        (
            json!({"revision": 0, "configuration": {}}),
            422,
            "invalid_body",
        ),
        (
            json!({"configuration": {"base": {"sampling": {"janks": 2}}}}),
            422,
            "configuration_invalid",
        ),
        (
            json!({"attributes": {"appversion": "4.12"}}),
            422,
            "invalid_body",
        ),
        (json!({"attributes": {"build": ""}}), 422, "invalid_body"),
        (
            json!({"attributes": {"build": "4.12"}}),
            422,
            "invalid_body",
        ),
        (json!({"attributes": []}), 422, "invalid_body"),
        (
            json!({"attributes": {"install_id": INSTALL}}),
            503,
            "store_unavailable",
        ),
        (
            json!({"attributes": {"install_id": "7"}}),
            503,
            "store_unavailable",
        ),
    ] {
        let answer = ask(&server, &viewer, body.clone()).await;
        assert_eq!(answer.outcome(), (status, code.to_owned()), "{body}");
    }
    // A blank id names no install, so ClickHouse is not asked.
    let other = ask(&server, &viewer, json!({"attributes": {"install_id": " "}})).await;
    assert_eq!(other.status, 200, "{:?}", other.body);
    // A build is read as devices send it.
    for build in [json!(41_200), json!("41200"), json!(41_200.0)] {
        let answer = about(&server, &viewer, &json!({"build": build})).await;
        assert_eq!(answer["attributes"]["build"], 41_200, "{build}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_members_of_the_project_may_ask() {
    let server = Server::away(&[]).await;
    let operator = server.token("admin").await;
    let made = json!({"id": "other", "name": "Other"});
    let made = server
        .call(&operator, Method::POST, "/api/v1/projects", Some(made))
        .await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let viewer = server.token("viewer --project default").await;
    assert_eq!(ask(&server, &viewer, json!({})).await.status, 200);
    let path = "/api/v1/projects/other/config/device";
    let other = server
        .call(&viewer, Method::POST, path, Some(json!({})))
        .await;
    assert_eq!(other.outcome(), (404, "project_unknown".to_owned()));
}
