//! The configuration as flags, requested with plain HTTP.

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use unjank_foundation::ids::canonical_id;
use unjank_remote_config::bucket;

use crate::remote_config::save;
use crate::server::{Answer, KEY, Server};

pub(crate) const FLAGS: &str = "/ofrep/v1/evaluate/flags";

/// The configuration of the tests of flags: one override for Android, and one for half of the installs, with the salt
/// `canary`.
pub(crate) fn configuration() -> Value {
    json!({
        "base": {
            "poll_interval_s": 300,
            "sampling": {"janks": 0.25, "spans": {"default": 0.5, "overrides": [{"name": "app.start", "rate": 1}]}},
            "tracing": {"enabled": false, "allow": ["^com\\.example\\."]},
            "toggles": {"checkout button": "blue", "limits": {"cart": 20, "tags": ["a", "b"]}, "team/size": 7,
                        "enabled": "a name the document has"}
        },
        "overrides": [
            {"id": "android", "when": {"os_name": ["android"]}, "patch": {"toggles": {"checkout button": "green"}}},
            {"id": "canary", "when": {"percentage": {"percent": 50.0}}, "patch": {"tracing": {"enabled": true}}}
        ]
    })
}

/// Returns an install inside or outside that half.
pub(crate) fn install(within: bool) -> String {
    let mut ids = (0..).map(|number| format!("install-{number}"));
    ids.find(|id| (bucket("canary", &canonical_id(id)) < 50_000) == within)
        .unwrap()
}

pub(crate) async fn serving(configuration: Value) -> Server {
    let server = Server::away(&[]).await;
    let token = server.token("editor").await;
    let saved = save(&server, &token, configuration).await;
    assert_eq!(saved.status, 201, "{:?}", saved.body);
    server
}

fn post(server: &Server, path: &str) -> RequestBuilder {
    let request = server.client.post(format!("{}{path}", server.url));
    request.header("content-type", "application/json")
}

async fn evaluate(server: &Server, path: &str, context: Value) -> Answer {
    let body = json!({"context": context}).to_string();
    let request = post(server, path).bearer_auth(KEY).body(body);
    Answer::of(request.send().await.unwrap()).await
}

fn flag(key: &str, value: impl Into<Value>, reason: &str, variant: &str) -> Value {
    json!({"key": key, "value": value.into(), "reason": reason, "variant": variant, "metadata": {"revision": 1}})
}

#[tokio::test(flavor = "multi_thread")]
async fn all_flags_are_the_document_and_the_toggles() {
    let server = serving(configuration()).await;
    let context = json!({"targetingKey": install(false), "osName": "ios"});
    let answer = evaluate(&server, FLAGS, context.clone()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body["metadata"], json!({"revision": 1}));
    let polled = server
        .client
        .get(format!("{}/v1/config?os_name=ios", server.url))
        .bearer_auth(KEY)
        .send()
        .await
        .unwrap();
    let document: Value = serde_json::from_slice(&polled.bytes().await.unwrap()).unwrap();
    let flags = answer.body["flags"].as_array().unwrap();
    let mut toggles = Vec::new();
    for one in flags {
        let key = one["key"].as_str().unwrap();
        let value = &one["value"];
        assert_eq!(one, &flag(key, value.clone(), "STATIC", "base"));
        let path = format!("/{}", key.replace('/', "~1").replace('.', "/"));
        if let Some(expected) = document.pointer(&path) {
            assert_eq!(value, expected, "{key}");
        } else {
            toggles.push((key, value));
        }
    }
    let expected = [
        ("checkout button", &json!("blue")),
        ("limits", &json!({"cart": 20, "tags": ["a", "b"]})),
        ("team/size", &json!(7)),
    ];
    assert_eq!(toggles, expected);
    let keys: Vec<_> = flags
        .iter()
        .map(|one| one["key"].as_str().unwrap())
        .collect();
    insta::assert_snapshot!(keys.join("\n"));
    // A request for a single flag returns the same.
    for one in flags {
        let key = one["key"].as_str().unwrap().replace('/', "%2F");
        let path = format!("{FLAGS}/{}", key.replace(' ', "%20"));
        let alone = evaluate(&server, &path, context.clone()).await;
        assert_eq!((alone.status.as_u16(), &alone.body), (200, one));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flag_names_the_overrides_that_decided() {
    let server = serving(configuration()).await;
    let (inside, outside) = (install(true), install(false));
    let tracing = format!("{FLAGS}/tracing.enabled");
    for (context, value, reason, variant) in [
        (json!({"targetingKey": outside}), false, "STATIC", "base"),
        (
            json!({"targetingKey": outside, "osName": "android"}),
            false,
            "TARGETING_MATCH",
            "android",
        ),
        (
            json!({"targetingKey": outside, "os_name": "Android"}),
            false,
            "TARGETING_MATCH",
            "android",
        ),
        (json!({"targetingKey": inside}), true, "SPLIT", "canary"),
        (
            json!({"targetingKey": inside, "os_name": "android"}),
            true,
            "SPLIT",
            "android+canary",
        ),
    ] {
        let answer = evaluate(&server, &tracing, context).await;
        assert_eq!(answer.body, flag("tracing.enabled", value, reason, variant));
    }
    let token = server.token("editor").await;
    let mut killed = configuration();
    killed["base"]["enabled"] = json!(false);
    assert_eq!(save(&server, &token, killed).await.status, 201);
    let answer = evaluate(&server, &tracing, json!({"targetingKey": inside})).await;
    assert_eq!(
        (
            &answer.body["reason"],
            &answer.body["variant"],
            &answer.body["metadata"]
        ),
        (
            &json!("DISABLED"),
            &json!("canary"),
            &json!({"revision": 2})
        )
    );
}

/// Each attribute: its two names, its condition, the value that a device sends, and a requirement that the value meets.
fn attributes() -> Value {
    json!([
        ["app_id", "appId", "app_id", "com.example.shop", ["com.example.shop"]],
        ["app_version", "appVersion", "app_version", "4.12.1", "~4.12"],
        ["build", "build", "build", 41200, {"min": 41200, "max": 41200}],
        ["build", "build", "build", 41200.0, {"min": 41200, "max": 41200}],
        ["build", "build", "build", "41200", {"min": 41200, "max": 41200}],
        ["build", "build", "build", "4.12e4", {"min": 41200, "max": 41200}],
        ["build", "build", "build", " 41200", {"min": 41200, "max": 41200}],
        ["os_name", "osName", "os_name", "ios", ["ios"]],
        ["os_version", "osVersion", "os_version", "18.1", ">=18"],
        ["os_version", "osVersion", "os_version", 34, ">=34"],
        ["device_model", "deviceModel", "device_model", "Pixel 8", ["pixel*"]],
        ["device_class", "deviceClass", "device_class", "low", ["low"]],
        ["network", "network", "network", "wifi", ["wifi"]],
        ["locale", "locale", "locale", "de-AT", ["de"]],
        ["sdk_version", "sdkVersion", "sdk_version", "1.2.0", "1.*"],
        ["user_id", "userId", "user_id", "u-1", ["u-1"]],
        ["user_id", "userId", "user_id", 4711.0, ["4711"]],
        ["targetingKey", "targetingKey", "install_id", "i-1", ["i-1"]],
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attribute_is_accepted_under_both_of_its_names_and_as_other_languages_write_it() {
    let server = Server::away(&[]).await;
    let token = server.token("editor").await;
    for row in attributes().as_array().unwrap() {
        let condition = row[2].as_str().unwrap();
        let (value, expected) = (&row[3], &row[4]);
        let when = json!({"not": {"not": {condition: expected}}});
        let one = json!({"id": "one", "when": when, "patch": {"poll_interval_s": 77}});
        let saved = save(&server, &token, json!({"base": {}, "overrides": [one]})).await;
        assert_eq!(saved.status, 201, "{:?}", saved.body);
        for name in [&row[0], &row[1]] {
            let name = name.as_str().unwrap();
            let context = json!({name: value, "targetingKey": "i-1", "more": {"of": ["theirs"]}, "unknown": null});
            let answer = evaluate(&server, &format!("{FLAGS}/poll_interval_s"), context).await;
            assert_eq!(
                (answer.status.as_u16(), &answer.body["value"]),
                (200, &json!(77)),
                "{name}"
            );
        }
    }
    // A bad character, also in an attribute that no condition needs, costs a character.
    for members in [
        r#""nick": "Bob \ud83d""#,
        r#""nick": "\ude00", "app_id": "com.example.shop""#,
        "\"device_model\": \"a\tb\u{0}\"",
        "\"score\": NaN, \"build\": 4.12e4",
        "\"nick\": \"caf\u{e9}\"",
        // Clients that merge contexts write an attribute in both spellings.
        r#""appVersion": "4.12.1", "app_version": "4.12.1""#,
        r#""appVersion": null, "app_version": "4.12.1""#,
        r#""appVersion": "4.12.1", "app_version": """#,
        r#""osName": "ios", "osName": "ios""#,
    ] {
        let body = format!("\u{feff}{{\"context\": {{\"targetingKey\": \"i\", {members}}}}}");
        // Without its second byte, é is not UTF-8.
        let bytes: Vec<u8> = body.bytes().filter(|byte| *byte != 0xa9).collect();
        for path in [FLAGS.to_owned(), format!("{FLAGS}/enabled")] {
            let request = post(&server, &path).bearer_auth(KEY).body(bytes.clone());
            let answer = Answer::of(request.send().await.unwrap()).await;
            assert_eq!(answer.status, 200, "{members}: {}", answer.body);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_responses_have_equal_etags_and_are_not_sent_again() {
    let mut twice = configuration();
    // This override changes nothing in the document, but the variant differs.
    twice["overrides"][1] = json!({"id": "tablets", "when": {"device_class": ["tablet"]}, "patch": {"poll_interval_s": 300}});
    let server = serving(twice).await;
    let ask = async |context: Value, known: &str| {
        let request = post(&server, FLAGS).bearer_auth(KEY);
        let request = request.header("if-none-match", known);
        let response = request.body(json!({"context": context}).to_string());
        let response = response.send().await.unwrap();
        let etag = response.headers()["etag"].to_str().unwrap().to_owned();
        (
            response.status().as_u16(),
            etag,
            response.bytes().await.unwrap(),
        )
    };
    let (status, plain, body) = ask(json!({}), "\"other\"").await;
    assert_eq!((status, plain.len()), (200, 34));
    let (status, same, same_body) = ask(json!({"os_name": "ios"}), "").await;
    assert_eq!((status, &same, &same_body), (200, &plain, &body));
    let (status, variant, variant_body) = ask(json!({"device_class": "tablet"}), &plain).await;
    assert_eq!(status, 200);
    assert!(variant != plain && variant_body != body);
    for known in [plain.clone(), format!("\"x\", W/{plain}"), "*".to_owned()] {
        let (status, etag, body) = ask(json!({}), &known).await;
        assert_eq!((status, &etag, body.len()), (304, &plain, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_error_has_the_form_that_the_protocol_requires() {
    let server = serving(configuration()).await;
    let unknown = evaluate(
        &server,
        &format!("{FLAGS}/nothing"),
        json!({"targetingKey": "i"}),
    )
    .await;
    let details = "there is no flag with this name";
    let expected =
        json!({"key": "nothing", "errorCode": "FLAG_NOT_FOUND", "errorDetails": details});
    assert_eq!((unknown.status.as_u16(), unknown.body), (404, expected));
    let too_long = format!("{{\"context\": {{\"x\": \"{}\"}}}}", "x".repeat(64 << 10));
    for (body, status, code) in [
        ("", 400, "PARSE_ERROR"),
        ("{\"context\": {", 400, "PARSE_ERROR"),
        ("[]", 400, "PARSE_ERROR"),
        ("{\"context\": \"me\"}", 400, "INVALID_CONTEXT"),
        (
            "{\"context\": {\"targetingKey\": 5}}",
            400,
            "INVALID_CONTEXT",
        ),
        (
            "{\"context\": {\"targetingKey\": \"i\", \"osVersion\": 4.10}}",
            400,
            "INVALID_CONTEXT",
        ),
        (
            "{\"context\": {\"targetingKey\": \"i\", \"build\": -1}}",
            400,
            "INVALID_CONTEXT",
        ),
        (
            "{\"context\": {\"targetingKey\": \"i\", \"build\": 1.5}}",
            400,
            "INVALID_CONTEXT",
        ),
        (
            "{\"context\": {\"targetingKey\": \"i\", \"appId\": \"a\", \"app_id\": \"b\"}}",
            400,
            "INVALID_CONTEXT",
        ),
        ("{}", 400, "TARGETING_KEY_MISSING"),
        ("{\"context\": null}", 400, "TARGETING_KEY_MISSING"),
        (
            "{\"context\": {\"targetingKey\": \"\"}}",
            400,
            "TARGETING_KEY_MISSING",
        ),
        (&too_long, 413, "GENERAL"),
    ] {
        for key in [None, Some("enabled")] {
            let path = key.map_or_else(|| FLAGS.to_owned(), |key| format!("{FLAGS}/{key}"));
            let request = post(&server, &path).bearer_auth(KEY).body(body.to_owned());
            let answer = Answer::of(request.send().await.unwrap()).await;
            let found = (answer.status.as_u16(), answer.body["errorCode"].as_str());
            let start: String = body.chars().take(80).collect();
            assert_eq!(found, (status, Some(code)), "{start}");
            assert_eq!(answer.body["key"].as_str(), key, "{start}");
            assert!(answer.body["errorDetails"].is_string(), "{start}");
        }
    }
    let bytes = post(&server, &format!("{FLAGS}/%FF"))
        .bearer_auth(KEY)
        .body("{}");
    let bytes = Answer::of(bytes.send().await.unwrap()).await;
    assert_eq!(
        (bytes.status.as_u16(), &bytes.body["errorCode"]),
        (400, &json!("PARSE_ERROR"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_install_is_required_only_if_an_override_depends_on_it() {
    let in_force = json!({"id": "one", "when": {"any": [{"not": {"install_id": ["i-1"]}}]}, "patch": {"enabled": true}});
    let with = |changed: Value| {
        let mut one = in_force.clone();
        one.as_object_mut()
            .unwrap()
            .extend(changed.as_object().unwrap().clone());
        json!({"base": {}, "overrides": [one]})
    };
    let server = serving(with(json!({"when": {"os_name": ["ios"]}}))).await;
    let token = server.token("editor").await;
    assert_eq!(evaluate(&server, FLAGS, json!({})).await.status, 200);
    for (changed, status) in [
        (json!({}), 400),
        (json!({"enabled": false}), 200),
        (json!({"expires_at": "2026-11-20T12:00:01Z"}), 400),
        (json!({"expires_at": "2026-11-20T12:00:00Z"}), 200),
    ] {
        let saved = save(&server, &token, with(changed.clone())).await;
        assert_eq!(saved.status, 201, "{:?}", saved.body);
        assert_eq!(
            evaluate(&server, FLAGS, json!({})).await.status,
            status,
            "{changed}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_are_refused_like_batches() {
    let server = Server::start().await;
    let refused = async |request: RequestBuilder| {
        Answer::of(request.body("{}").send().await.unwrap())
            .await
            .outcome()
    };
    for path in [FLAGS.to_owned(), format!("{FLAGS}/enabled")] {
        let ask = || post(&server, &path);
        let outcome = |status: u16, code: &str| (status, code.to_owned());
        assert_eq!(refused(ask()).await, outcome(401, "key_missing"));
        assert_eq!(
            refused(ask().bearer_auth("wrong")).await,
            outcome(401, "key_unknown")
        );
        assert_eq!(
            refused(ask().header("x-api-key", "wrong")).await,
            outcome(401, "key_unknown")
        );
        // `Authorization` takes precedence over `X-API-Key`.
        let both = ask().header("x-api-key", KEY).bearer_auth("wrong");
        assert_eq!(refused(both).await, outcome(401, "key_unknown"));
        let token = ask().bearer_auth("eyJhbGciOiJIUzI1NiIsImtpZCI6IngifQ.e30.e30");
        assert_eq!(refused(token).await, outcome(401, "token_invalid"));
        let text = server
            .client
            .post(format!("{}{path}", server.url))
            .bearer_auth(KEY);
        assert_eq!(refused(text).await, outcome(415, "content_type"));
        let allowed = ask()
            .header("x-api-key", KEY)
            .body("{}")
            .send()
            .await
            .unwrap();
        assert_eq!(allowed.status(), 200);
        let read = server
            .client
            .get(format!("{}{path}", server.url))
            .bearer_auth(KEY);
        assert_eq!(refused(read).await, outcome(405, "method_not_allowed"));
        let other = evaluate(&server, &path, json!({"appId": "com.example.other"})).await;
        assert_eq!(other.outcome(), outcome(403, "key_not_for_app"));
    }
}
