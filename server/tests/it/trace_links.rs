//! Traces and requests link to another system by the template of the project.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Server, batch, span};

const LINKS: &str = "/api/v1/projects/default/trace-links";

fn jaeger() -> Value {
    json!({"name": "Jaeger", "template": "https://jaeger.example.com/trace/{trace_id}?uiFind={span_id}&at={start_ms}-{end_ms}"})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_and_its_requests_link_to_the_other_system() {
    let server = Server::start().await;
    server.ready().await;
    let editor = server.token("editor --project default").await;
    let trace = "0AF7651916CD43DD8448EB211C80319C";
    let mut request = span();
    request["trace_id"] = json!(trace);
    request["span_id"] = json!("00F067AA0BA902B7");
    request["kind"] = json!("network");
    request["start"] = json!("2026-11-20T11:59:50.123456Z");
    request["duration_us"] = json!(100_500);
    let mut method = request.clone();
    method["span_id"] = json!("0000000000000001");
    method["parent_span_id"] = request["span_id"].clone();
    method["kind"] = json!("method");
    let mut sent = batch();
    sent["spans"] = json!([method, request]);
    server.send(&sent).await;
    server.drained().await;

    let path = format!("/api/v1/projects/default/traces/{trace}");
    let without = server.call(&editor, Method::GET, &path, None).await.body;
    assert_eq!(without["spans"].as_array().unwrap().len(), 2);
    assert_eq!(without.get("elsewhere"), None, "{without}");

    let saved = server.call(&editor, Method::PUT, LINKS, Some(jaeger()));
    assert_eq!(saved.await.status, 204);
    let url = "https://jaeger.example.com/trace/0af7651916cd43dd8448eb211c80319c\
        ?uiFind=00f067aa0ba902b7&at=1795175990123-1795175990224";
    let elsewhere = json!({"name": "Jaeger", "url": url});
    let mut answer = Value::Null;
    for _ in 0..100 {
        answer = server.call(&editor, Method::GET, &path, None).await.body;
        if answer["elsewhere"] == elsewhere {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(answer["elsewhere"], elsewhere);
    for span in answer["spans"].as_array().unwrap() {
        let expected = (span["kind"] == "network").then_some(url);
        assert_eq!(span["trace_url"].as_str(), expected);
        assert_eq!(span["app_id"], "com.example.shop");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_of_traces_must_lead_to_a_host_and_name_the_trace() {
    let server = Server::start().await;
    server.ready().await;
    let (viewer, editor) = (server.token("viewer").await, server.token("editor").await);
    let empty = server.call(&viewer, Method::GET, LINKS, None).await.body;
    assert_eq!(empty, json!({"name": "", "template": ""}));
    let put = |token, document: Value| server.call(token, Method::PUT, LINKS, Some(document));
    assert_eq!(put(&viewer, jaeger()).await.status, 403);
    let jaeger_at = |rest: &str| format!("https://jaeger.example.com/{rest}");
    for (template, reason) in [
        (
            "javascript:alert('{trace_id}')".to_owned(),
            "must start with `https://` or `http://`, a host and `/`, such as `https://jaeger.example.com/`",
        ),
        ("https://{trace_id}/".to_owned(), "must start with"),
        (
            jaeger_at("trace/{trace}"),
            "`{trace}` is not a placeholder: use {trace_id}, {span_id}, {start_ms} or {end_ms}",
        ),
        (jaeger_at("trace/"), "must contain {trace_id}"),
        (jaeger_at("trace {trace_id}"), "must not contain spaces"),
        (
            jaeger_at(&format!("{{trace_id}}{}", "x".repeat(500))),
            "at most 500 characters",
        ),
    ] {
        let answer = put(&editor, json!({"template": template})).await;
        assert_eq!(answer.status, 422, "{template}: {}", answer.body);
        let detail = answer.body["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(reason), "{template}: {}", answer.body);
    }
    let name = put(&editor, json!({"name": "x".repeat(41)})).await;
    assert_eq!(name.status, 422, "{}", name.body);
    let unknown = put(&editor, json!({"adress": "https://jaeger.example.com/"})).await;
    assert_eq!(unknown.status, 422, "{}", unknown.body);
    assert_eq!(put(&editor, jaeger()).await.status, 204);
    let read = server.call(&viewer, Method::GET, LINKS, None).await.body;
    assert_eq!(read, jaeger());
    let admin = server.token("admin").await;
    let audit = "/api/v1/projects/default/audit";
    let audit = server.call(&admin, Method::GET, audit, None).await.body;
    let mut entries = audit["entries"].as_array().unwrap().iter();
    let entry = entries.find(|entry| entry["action"] == "trace_links.set");
    assert_eq!(entry.unwrap()["detail"]["trace_links"], jaeger());
}
