//! Spans and incidents that a project forwards to another collector: a second unjank, and scripted ones.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use reqwest::Method;
use serde_json::{Value, json};

use super::incidents::Database;
use super::receiver::Receiver;
use super::sending;
use crate::server::{NOW, Server, batch, span};
use crate::wait;

pub(super) const FORWARD: &str = "/api/v1/projects/default/forward";

/// Sets what a server forwards, and waits until it does.
pub(super) async fn forward(server: &Server, token: &str, setting: Value) {
    let saved = server.call(token, Method::PUT, FORWARD, Some(setting.clone()));
    let saved = saved.await;
    assert_eq!(saved.status, 204, "{}", saved.body);
    let is_known = async || {
        let known = server.app().access.forward("default");
        known.is_some_and(|forward| forward.document().endpoint == setting["endpoint"])
    };
    wait::until("the setting is in force", is_known).await;
}

pub(super) async fn state(server: &Server, token: &str) -> Value {
    let answer = server.call(token, Method::GET, FORWARD, None).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body["state"].clone()
}

/// Waits until the numbers of a server are these.
pub(super) async fn counted(server: &Server, token: &str, numbers: &[(&str, u64)]) {
    wait::until("the events are counted", async || {
        let state = state(server, token).await;
        numbers.iter().all(|(name, number)| state[name] == *number)
    })
    .await;
}

pub(super) fn to(url: &str) -> Value {
    json!({
        "endpoint": url, "headers": {"authorization": "Bearer any-key"},
        "spans": [
            {"name": "checkout*"},
            {"name": "*", "min_duration_ms": 1_000},
            {"name": "*", "only_errors": true},
        ],
    })
}

pub(super) fn named(name: &str) -> Value {
    let mut span = span();
    span["name"] = json!(name);
    span
}

/// A span with a value in every field.
fn full_span() -> Value {
    let mut span = named("checkout.pay");
    span["kind"] = json!("network");
    span["parent_span_id"] = json!("00000000000000aa");
    span["thread"] = json!("main");
    span["on_main_thread"] = json!(true);
    span["status"] = json!("error");
    span["page"] = json!("Cart");
    span["network"] = json!("cellular_4g");
    span["code"] = json!({"class": "shop.Cart", "function": "pay", "file": "Cart.kt", "line": 41});
    span["sample_rate"] = json!(0.25);
    span["events"] = json!([{"time": "2026-11-20T11:59:58.010Z", "name": "response"}]);
    span["attributes"] = json!({
        "http.request.method": "POST", "http.response.status_code": "504", "team": "own",
        "otel.scope.name": "okhttp", "otel.scope.version": "5.1", "otel.scope.tier": "gold", "otel.status_description": "timeout",
        "otel.links": "0102030405060708090a0b0c0d0e0f10-0102030405060708",
    });
    span
}

const COLUMNS: &str = "app_id, app_version, build, mode, os_name, os_version, device_model, device_manufacturer, locale,
    toString(install_id), toString(session_id), user_id, name, toString(kind), page, thread, on_main_thread, toString(network),
    toString(status), code_class, code_function, code_file, code_line, start, duration_us, hex(trace_id), hex(span_id),
    hex(parent_span_id), sample_rate, `events.name`, `events.time`";

async fn rows(server: &Server, columns: &str) -> Vec<Value> {
    let sql = format!("SELECT {columns} FROM spans ORDER BY name FORMAT JSONCompactEachRow");
    let text = server.query(&sql).await;
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn matching_spans_arrive_at_another_server_once_with_all_values() {
    let (server, other) = (sending().await, sending().await);
    let token = server.token("admin").await;
    forward(&server, &token, to(&other.url)).await;
    // What is forwarded back ends there.
    let token_of_other = other.token("admin").await;
    forward(&other, &token_of_other, to(&server.url)).await;

    let mut sent = batch();
    let resource = json!({
        "build": 41_200, "mode": "production", "os_name": "android", "os_version": "16", "device_model": "Pixel 10",
        "device_manufacturer": "Google", "locale": "de-DE", "user_id": "u-7", "channel": "play", "device_class": "high",
    });
    let own = sent["resource"].as_object_mut().unwrap();
    own.extend(resource.as_object().unwrap().clone());
    let mut slow = named("slow");
    slow["duration_us"] = json!(1_000_000);
    sent["spans"] = json!([full_span(), slow, named("short")]);
    for _ in 0..2 {
        assert_eq!(server.send(&sent).await.status, 202);
    }
    let mut later = batch();
    later["spans"] = json!([named("checkout"), named("other")]);
    server.send(&later).await;
    counted(
        &server,
        &token,
        &[("delivered", 3), ("waiting", 0), ("waiting_bytes", 0)],
    )
    .await;
    server.drained().await;
    other.drained().await;

    let mut expected = rows(&server, COLUMNS).await;
    assert_eq!(expected.len(), 5, "{expected:?}");
    expected.retain(|row| row[12] != "short" && row[12] != "other");
    assert_eq!(rows(&other, COLUMNS).await, expected);
    let attributes = rows(&other, "attributes").await;
    let attributes = &attributes[1][0];
    for (name, value) in full_span()["attributes"].as_object().unwrap() {
        assert_eq!(attributes[name], *value, "{attributes}");
    }
    assert_eq!(attributes["unjank.project"], "default");
    assert_eq!(attributes["unjank.channel"], "play");
    assert_eq!(attributes["span.kind"], "client");
    assert_eq!(
        other
            .metric("unjank_forward_events_total{kind=\"spans\",outcome=\"delivered\"}")
            .await,
        0.0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_the_headers_and_numbers_are_numbers() {
    let server = sending().await;
    let receiver = Receiver::start().await;
    let token = server.token("admin").await;
    forward(&server, &token, to(&format!("{}/otlp/", receiver.url))).await;
    let mut sent = batch();
    sent["spans"] = json!([full_span()]);
    server.send(&sent).await;
    let request = receiver.has(1).await.remove(0);
    assert_eq!(request.path, "/otlp/v1/traces");
    assert_eq!(request.header("authorization"), "Bearer any-key");
    assert_eq!(request.header("content-type"), "application/x-protobuf");
    let message = ExportTraceServiceRequest::decode(&*request.inflated()).unwrap();
    let resource = &message.resource_spans[0];
    let scope = &resource.scope_spans[0];
    let library = scope.scope.as_ref().unwrap();
    let names = library.attributes.iter().map(|one| one.key.as_str());
    assert_eq!(library.name, "okhttp");
    assert_eq!(names.collect::<Vec<_>>(), ["tier"]);
    let span = serde_json::to_value(&scope.spans[0]).unwrap();
    assert_eq!(span["kind"], 3);
    assert_eq!(span["status"], json!({"code": 2, "message": "timeout"}));
    assert_eq!(span["links"][0]["spanId"], "0102030405060708");
    let attributes = span["attributes"].as_array().unwrap();
    let status = attributes
        .iter()
        .find(|one| one["key"] == "http.response.status_code");
    assert_eq!(status.unwrap()["value"], json!({"intValue": "504"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_drops_what_arrives_and_ingest_goes_on() {
    let server = sending().await;
    let token = server.token("admin").await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    forward(&server, &token, to(&url)).await;
    let attributes: serde_json::Map<_, _> = (0..50)
        .map(|number| (format!("a{number}"), json!("x".repeat(1_000))))
        .collect();
    let mut large = named("checkout");
    large["attributes"] = Value::Object(attributes);
    // Each batch has about 0.8 MB, and 8 MiB may wait.
    for _ in 0..14 {
        let mut sent = batch();
        sent["spans"] = (0..16)
            .map(|_| {
                let mut large = large.clone();
                large["span_id"] = named("")["span_id"].clone();
                large
            })
            .collect();
        let answer = server.send(&sent).await;
        assert_eq!(answer.status, 202);
        assert_eq!(answer.body["accepted"], 16);
    }
    counted(
        &server,
        &token,
        &[("waiting", 160), ("dropped", 64), ("delivered", 0)],
    )
    .await;
    wait::until("an attempt failed", async || {
        state(&server, &token).await["error"].is_string()
    })
    .await;
    let state = state(&server, &token).await;
    let error = state["error"].as_str().unwrap();
    assert!(error.contains("cannot be reached"), "{error}");
    assert!(
        state["waiting_bytes"].as_u64().unwrap() <= 8 << 20,
        "{state}"
    );
    let metric = async |name: &str| server.metric(name).await;
    assert_eq!(
        metric("unjank_forward_events_total{kind=\"spans\",outcome=\"queue_full\"}").await,
        64.0
    );
    assert!(metric("unjank_forward_waiting_bytes").await > 6e6);
    server.drained().await;
    assert_eq!(server.query("SELECT count() FROM spans").await, "224");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_collector_is_asked_again_when_it_says_and_a_refusal_is_final() {
    let server = sending().await;
    let token = server.token("admin").await;
    let receiver = Receiver::answering(|_, before| match before {
        0 => (429, Some("30"), Duration::ZERO),
        1 => (503, None, Duration::ZERO),
        3 => (400, None, Duration::ZERO),
        _ => (200, None, Duration::ZERO),
    })
    .await;
    forward(&server, &token, to(&receiver.url)).await;
    let mut sent = batch();
    sent["spans"] = json!([named("checkout")]);
    server.send(&sent).await;
    wait::until("the first attempt failed", async || {
        let error = state(&server, &token).await["error"].clone();
        error.as_str().is_some_and(|error| error.contains("429"))
    })
    .await;
    server.pass(Duration::from_secs(28));
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(receiver.received().len(), 1, "it asked for 30 seconds");
    server.pass(Duration::from_secs(3));
    receiver.has(2).await;
    wait::until("the second attempt failed", async || {
        let error = state(&server, &token).await["error"].clone();
        error.as_str().is_some_and(|error| error.contains("503"))
    })
    .await;
    server.pass(Duration::from_secs(5));
    counted(&server, &token, &[("delivered", 1), ("waiting", 0)]).await;
    let bodies: Vec<_> = receiver
        .received()
        .into_iter()
        .map(|one| one.body)
        .collect();
    assert!(
        bodies.iter().all(|body| *body == bodies[0]),
        "the same request"
    );
    assert_eq!(state(&server, &token).await["error"], Value::Null);

    let mut sent = batch();
    sent["spans"] = json!([named("checkout"), named("checkout")]);
    server.send(&sent).await;
    counted(
        &server,
        &token,
        &[("delivered", 1), ("refused", 2), ("waiting", 0)],
    )
    .await;
    server.pass(Duration::from_secs(600));
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(receiver.received().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn incidents_arrive_with_their_evidence_when_they_begin_and_end() {
    let (server, other) = (sending().await, Server::start().await);
    let token = server.token("admin").await;
    let mut setting = to(&other.url);
    setting["incidents"] = json!(true);
    forward(&server, &token, setting).await;
    let rule = Database::of(&server).rule().await;
    // The mute gives time to add the evidence.
    rule.mute(NOW - 1, NOW + 10_000_000).await;
    let fired = rule.fire(&["critical"], NOW - 90_000_000).await;
    let evidence = json!({
        "metric": {"signal": "spans", "measure": "p75_duration_us"}, "unit": "us", "window_minutes": 60,
        "numbers": {"value": 480_000.5, "base": 320_000.25, "samples": 900.0},
        "sides": {"version": "4.12.0", "base_version": "4.11.0"}, "question": "/api/v1/projects/default/query/spans",
    });
    let sql = format!("UPDATE incidents SET evidence = '{evidence}'");
    Database::of(&server).execute(&sql).await;
    server.pass(Duration::from_secs(20));
    counted(&server, &token, &[("delivered", 1)]).await;
    rule.resolve(&fired, NOW + 15_000_000).await;
    counted(&server, &token, &[("delivered", 2)]).await;
    other.drained().await;

    let rows = rows(&other, "name, app_id, toString(status), attributes").await;
    let names: Vec<_> = rows.iter().map(|row| row[0].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["unjank.incident.opened", "unjank.incident.resolved"]
    );
    assert_eq!(
        (&rows[0][1], &rows[0][2]),
        (&json!("unjank"), &json!("error"))
    );
    let attributes = &rows[0][3];
    let id = fired[0].to_string();
    for (name, value) in [
        ("body", "p75 of <checkout> is 480 ms, was 320 ms"),
        ("unjank.incident.id", &id),
        ("unjank.incident.rule.id", &rule.id.to_string()),
        ("unjank.incident.title", "Checkout is slow"),
        ("unjank.incident.severity", "critical"),
        ("unjank.incident.owner", "checkout team"),
        ("unjank.incident.group.page", &id),
        ("unjank.incident.metric.measure", "p75_duration_us"),
        ("unjank.incident.evidence.value", "480000.5"),
        ("unjank.incident.evidence.base", "320000.25"),
        ("unjank.incident.evidence.version", "4.12.0"),
        ("unjank.incident.evidence.unit", "us"),
        // The receiver scrubs the query.
        (
            "unjank.incident.url",
            &format!("https://unjank.example.com/incidents/{id}?[query]"),
        ),
    ] {
        assert_eq!(attributes[name], value, "{name} of {attributes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_stay_secret_and_follow_no_other_endpoint() {
    let server = Server::away(&[]).await;
    let (admin, editor) = (server.token("admin").await, server.token("editor").await);
    let put = |setting: Value| server.call(&admin, Method::PUT, FORWARD, Some(setting));
    let collector = "https://collector.example.com/otlp";
    let secret = json!({"authorization": "Bearer top-secret", "x-scope": "shop"});
    let full = json!({
        "endpoint": collector, "incidents": true, "headers": secret,
        "spans": [{"name": "checkout*", "min_duration_ms": 500, "only_errors": false}],
    });
    let refused = server.call(&editor, Method::PUT, FORWARD, Some(full.clone()));
    assert_eq!(refused.await.status, 403);
    assert_eq!(put(full.clone()).await.status, 204);
    let read = server.call(&admin, Method::GET, FORWARD, None).await.body;
    assert_eq!(read["spans"], full["spans"]);
    assert_eq!(read["header_names"], json!(["authorization", "x-scope"]));
    assert_eq!(
        (&read["endpoint"], &read["incidents"]),
        (&full["endpoint"], &json!(true))
    );
    let audit = "/api/v1/projects/default/audit";
    let audit = server.call(&admin, Method::GET, audit, None).await.body;
    assert!(audit.to_string().contains("forward.set"));
    let of_database = ["control.sqlite", "control.sqlite-wal"].map(|name| {
        let bytes = std::fs::read(server.data_dir().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    assert!(of_database.concat().contains("collector.example.com"));
    for text in [read.to_string(), audit.to_string(), of_database.concat()] {
        assert!(!text.contains("top-secret"));
    }
    // The headers stay with the collector that they are for.
    let other_path = json!({"endpoint": "https://collector.example.com/other"});
    assert_eq!(put(other_path).await.status, 204);
    let other = put(json!({"endpoint": "https://elsewhere.example.com"})).await;
    assert_eq!(other.status, 422, "{}", other.body);
    let without = json!({"endpoint": "https://elsewhere.example.com", "headers": {}});
    assert_eq!(put(without).await.status, 204);
    let read = server.call(&admin, Method::GET, FORWARD, None).await.body;
    assert_eq!(read["header_names"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_cannot_work_is_refused_with_the_reason() {
    let server = Server::away(&[]).await;
    let admin = server.token("admin").await;
    let with = |name: &str, value: Value| {
        let mut setting = json!({"endpoint": "https://collector.example.com"});
        setting[name] = value;
        setting
    };
    for (setting, reason) in [
        (
            with("endpoint", json!("collector")),
            "the endpoint must be an address",
        ),
        (
            with("endpoint", json!("ftp://collector.example.com")),
            "must begin with https:// or http://",
        ),
        (
            with("endpoint", json!("https://a:b@collector.example.com")),
            "user name",
        ),
        (
            with("endpoint", json!("http://127.0.0.1:4318")),
            "not a public address",
        ),
        (
            with("endpoint", json!("http://169.254.169.254")),
            "not a public address",
        ),
        (
            with("endpoint", json!("http://collector:4318")),
            "no public address",
        ),
        (with("spans", json!([{"name": ""}])), "the name of rule 1"),
        (
            with("spans", json!(vec![json!({"name": "a"}); 21])),
            "at most 20 rules",
        ),
        (
            with(
                "spans",
                json!([{"name": "a", "min_duration_ms": 86_400_001}]),
            ),
            "`min_duration_ms` of rule 1",
        ),
        (
            with("headers", json!({"content-type": "text/plain"})),
            "`content-type`",
        ),
        (with("headers", json!({"x-key": "a\r\nb: c"})), "`x-key`"),
        (with("adress", json!("")), "adress"),
    ] {
        let answer = server
            .call(&admin, Method::PUT, FORWARD, Some(setting.clone()))
            .await;
        assert_eq!(answer.status, 422, "{setting}: {}", answer.body);
        let detail = answer.body["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(reason), "{setting}: {}", answer.body);
    }
}
