//! Queries that group and filter by the attributes that the app gives to metrics and spans.

use reqwest::Method;
use serde_json::{Value, json};

use crate::alerts::{Watched, spans};
use crate::server::{Server, batch, span};

const PERIOD: &str = "from=2026-11-20T10:00:00Z&to=2026-11-20T13:00:00Z";

fn latency(value: u64, attributes: &Value) -> Value {
    json!({"name": "input_latency_ms", "time": "2026-11-20T11:59:59Z", "value": value, "attributes": attributes})
}

/// Returns the keys and values of each row.
async fn rows(server: &Server, token: &str, query: &str) -> Value {
    let path = format!("/api/v1/projects/default/query/{query}&{PERIOD}");
    let answer = server.call(token, Method::GET, &path, None).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    let rows = answer.body["rows"].as_array().unwrap().iter();
    rows.map(|row| json!([row["keys"][0], row["values"][0]]))
        .collect()
}

#[tokio::test]
async fn metrics_and_spans_are_grouped_and_filtered_by_attributes_of_the_app() {
    let server = Server::start().await;
    server.ready().await;
    let mut batch = batch();
    batch["metrics"] = json!([
        latency(20, &json!({"input": "tap", "since_last_ms": "900"})),
        latency(40, &json!({"input": "tap", "since_last_ms": "2000"})),
        latency(90, &json!({"input": "swipe", "since_last_ms": "700000"})),
        latency(7, &json!({})),
    ]);
    let mut tagged = span();
    tagged["attributes"] = json!({"items": "3"});
    batch["spans"] = json!([tagged, span()]);
    let answer = server.send(&batch).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    server.drained().await;
    let token = server.token("viewer --project default").await;
    let by_input = "metrics?by=attribute.input&measure=mean&order=mean";
    assert_eq!(
        rows(&server, &token, by_input).await,
        json!([["", 7.0], ["tap", 30.0], ["swipe", 90.0]])
    );
    let swipes = "metrics?by=since_last&measure=mean&attribute.input=swipe";
    assert_eq!(
        rows(&server, &token, swipes).await,
        json!([["over_10m", 90.0]])
    );
    let spans = "spans?by=attribute.items&measure=count&attribute.items=3";
    assert_eq!(rows(&server, &token, spans).await, json!([["3", 1.0]]));
    let path = format!("/api/v1/projects/default/query/metrics?by=attribute.a'b&{PERIOD}");
    let unknown = server.call(&token, Method::GET, &path, None).await;
    assert_eq!(unknown.status, 422, "{}", unknown.body);
}

#[tokio::test]
async fn the_attributes_of_spans_and_metrics_are_listed() {
    let server = Server::start().await;
    server.ready().await;
    let mut batch = batch();
    let mut paid = span();
    paid["name"] = "pay".into();
    paid["attributes"] = json!({"payment": "card", "a'b": "no plain name"});
    let mut checkout = span();
    checkout["attributes"] = json!({"items": "3", "payment": "card"});
    batch["spans"] = json!([paid, checkout, span()]);
    batch["metrics"] = json!([latency(20, &json!({"input": "tap"}))]);
    let answer = server.send(&batch).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    server.drained().await;
    let token = server.token("viewer --project default").await;
    let listed = async |query: &str| {
        let path = format!("/api/v1/projects/default/query/{query}{PERIOD}");
        let answer = server.call(&token, Method::GET, &path, None).await;
        (answer.status.as_u16(), answer.body["attributes"].clone())
    };
    let items = json!({"name": "items", "recorded": 1});
    let payment = |recorded: u64| json!({"name": "payment", "recorded": recorded});
    assert_eq!(
        listed("spans/attributes?").await,
        (200, json!([payment(2), items]))
    );
    assert_eq!(
        listed("spans/attributes?limit=1&").await,
        (200, json!([payment(2)]))
    );
    assert_eq!(
        listed("spans/attributes?name=pay&").await,
        (200, json!([payment(1)]))
    );
    assert_eq!(
        listed("spans/attributes?attribute.items=3&base_app_version=0.0.1&").await,
        (200, json!([items, payment(1)]))
    );
    assert_eq!(
        listed("metrics/attributes?").await,
        (200, json!([{"name": "input", "recorded": 1}]))
    );
    assert_eq!(listed("janks/attributes?").await.0, 422);
    assert_eq!(listed("nothing/attributes?").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_watches_each_value_of_an_attribute_of_the_app() {
    let watched = Watched::start().await;
    for (payment, ms) in [("card", 10), ("transfer", 900)] {
        let mut batch = spans("4.12.0", &[ms]);
        batch["spans"][0]["attributes"] = json!({"payment": payment});
        watched.send(batch).await;
    }
    watched.server.drained().await;
    watched
        .rule(json!({
            "name": "A payment is slow",
            "metric": {"signal": "spans", "measure": "max_us", "by": ["attribute.payment"]},
            "window_minutes": 30, "for_minutes": 0, "least_samples": 1,
            "condition": {"kind": "threshold", "above": 500_000},
        }))
        .await;
    let found = watched.incidents(|all| all.len() == 1).await;
    assert_eq!(found[0]["group"], json!({"attribute.payment": "transfer"}));
    let link = found[0]["link"].as_str().unwrap();
    assert!(link.contains("attribute.payment=transfer"), "{link}");
}

#[tokio::test]
async fn of_attributes_that_have_one_name_the_last_one_counts() {
    let server = Server::start().await;
    server.ready().await;
    let mut batch = batch();
    batch["metrics"] = json!([latency(20, &json!({"input": "tap"}))]);
    let mut tagged = span();
    tagged["attributes"] = json!({"items": "3"});
    batch["spans"] = json!([tagged]);
    let body = batch.to_string();
    let body = body.replace(
        r#""input":"tap""#,
        r#""input":"tap","page":"a","input":"press","input":"swipe""#,
    );
    let body = body.replace(r#""items":"3""#, r#""items":3,"items":null,"items":4.0"#);
    let answer = server.send_bytes(body).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    server.drained().await;
    let token = server.token("viewer --project default").await;
    assert_eq!(
        rows(&server, &token, "metrics?by=attribute.input&measure=mean").await,
        json!([["swipe", 20.0]])
    );
    assert_eq!(
        rows(&server, &token, "spans?by=attribute.items&measure=count").await,
        json!([["4", 1.0]])
    );
    let stored = "SELECT length(attributes) FROM metrics";
    assert_eq!(server.query(stored).await, "2");
}
