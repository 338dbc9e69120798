//! Ids of installs that are no UUIDs, as apps with OpenTelemetry or OpenFeature have them. The same text is the same install everywhere.

use reqwest::Method;
use serde_json::{Value, json};

use crate::asked::Asked;
use crate::device_tokens::{KEYS, SECRET, token};
use crate::otlp::{JSON, phone, post_with, send, span, text};
use crate::remote_config::save;
use crate::server::{KEY, Server};
use crate::wait;

const PERIOD: &str = "from=2026-11-20T10:00:00Z&to=2026-11-20T13:00:00Z";
const DATA: &str = "/api/v1/projects/default/data?install_id=phone-7";
const DEVICE: &str = "/api/v1/projects/default/config/device";

fn sent_by(install: &str, span_id: u64) -> Value {
    let mut resource = phone();
    resource["attributes"][3] = text("app.installation.id", install);
    let scope = json!({"spans": [span("tap", span_id)]});
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})
}

/// Returns whether an install may trace, as the configuration and the flag say.
async fn may_trace(server: &Server, install: &str) -> [Value; 2] {
    let config = format!("{}/v1/config?install_id={install}", server.url);
    let config = server.client.get(config).bearer_auth(KEY);
    let config: Value = config.send().await.unwrap().json().await.unwrap();
    let flag = format!("{}/ofrep/v1/evaluate/flags/tracing.enabled", server.url);
    let flag = server.client.post(flag).bearer_auth(KEY);
    let flag = flag.json(&json!({"context": {"targetingKey": install}}));
    let flag: Value = flag.send().await.unwrap().json().await.unwrap();
    [config["tracing"]["enabled"].clone(), flag["value"].clone()]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_no_uuid_is_the_same_install_everywhere() {
    let asked = Asked::of(&[]).await;
    let server = &asked.server;
    for (install, span_id) in [("phone-7", 1), ("phone-8", 2)] {
        let sent = send(server, "traces", &sent_by(install, span_id)).await;
        assert_eq!(sent, (200, json!({})));
    }
    let stored = "SELECT toString(install_id) FROM spans WHERE span_id = 1";
    let stored = server.stored(stored).await;
    let path = format!("query/spans?install_id=phone-7&measure=count&{PERIOD}");
    let found = asked.ask(&path).await;
    assert_eq!(found.body["rows"][0]["values"][0], 1.0, "{}", found.body);

    let editor = server.token("editor").await;
    let document = json!({
        "base": {"tracing": {"enabled": false}},
        "overrides": [{"id": "named", "note": "x", "when": {"install_id": ["phone-7"]}, "patch": {"tracing": {"enabled": true}}}],
    });
    let saved = save(server, &editor, document).await;
    assert_eq!(saved.status, 201, "{:?}", saved.body);
    for (install, may) in [
        ("phone-7", true),
        (stored.as_str(), true),
        ("phone-8", false),
    ] {
        assert_eq!(
            may_trace(server, install).await,
            [json!(may), json!(may)],
            "{install}"
        );
    }
    let question = json!({"attributes": {"install_id": "phone-7"}});
    let answer = server
        .call(&asked.token, Method::POST, DEVICE, Some(question))
        .await;
    assert!(answer.body["last_report"].is_object(), "{}", answer.body);

    let admin = server.token("admin").await;
    let key = json!({"algorithm": "HS256", "material": SECRET});
    let made = server.call(&admin, Method::POST, KEYS, Some(key)).await;
    let token = token(made.body["id"].as_str().unwrap(), "phone-7");
    let status = async |install: &str| {
        let body = sent_by(install, 3).to_string().into_bytes();
        post_with(&token, server, "traces", JSON, body)
            .await
            .status()
            .as_u16()
    };
    wait::until("the key takes effect", async || {
        status("phone-7").await == 200
    })
    .await;
    assert_eq!(status("phone-8").await, 403);

    let erased = server.call(&admin, Method::DELETE, DATA, None).await;
    assert_eq!(erased.status, 202, "{:?}", erased.body);
    assert_eq!(erased.body["subject"], stored.as_str());
}
