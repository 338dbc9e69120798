//! What exporters of OpenTelemetry and browsers are answered.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::otlp::{JSON, PROTOBUF, phone, post, post_with, send, span, text, traces};
use crate::server::{KEY, Server, batch};
use crate::wait;

/// Sends a span. Returns the status, the code of `google.rpc.Status`, and `Retry-After`.
async fn refused_or_stored(server: &Server, id: u64) -> (u16, u64, Option<String>) {
    let body = traces(&[span("good", id)]).to_string().into_bytes();
    refusal(post(server, "traces", JSON, body).await).await
}

async fn refusal(response: Response) -> (u16, u64, Option<String>) {
    let status = response.status().as_u16();
    let wait = response.headers().get("retry-after");
    let wait = wait.map(|wait| wait.to_str().unwrap().to_owned());
    let body: Value = response.json().await.unwrap();
    (status, body["code"].as_u64().unwrap_or_default(), wait)
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_what_exporters_understand() {
    let server = Server::start().await;
    let good = traces(&[span("good", 1)]).to_string().into_bytes();
    let refused = async |content_type: &str, body: Vec<u8>| {
        refusal(post(&server, "traces", content_type, body).await).await
    };
    assert_eq!(refused(JSON, b"{".to_vec()).await, (400, 3, None));
    assert_eq!(refused("text/plain", good.clone()).await, (415, 12, None));
    assert_eq!(
        refused(JSON, vec![b' '; (4 << 20) + 1]).await,
        (413, 3, None)
    );
    let many: Vec<_> = (1..10_002).map(|id| json!({"spanId": id})).collect();
    let many = traces(&many).to_string().into_bytes();
    let response = post(&server, "traces", JSON, many).await;
    assert_eq!(response.status(), 413);
    let answer: Value = response.json().await.unwrap();
    let message = answer["message"].as_str().unwrap();
    assert!(
        message.contains("10000") && message.contains("send_batch_max_size: 1000"),
        "{message}"
    );
    assert_eq!(answer["code"], 3);
    // An empty request is fine.
    assert_eq!(send(&server, "traces", &json!({})).await, (200, json!({})));
    assert_eq!(
        send(
            &server,
            "logs",
            &json!({"resourceLogs": [{"resource": phone()}]})
        )
        .await,
        (200, json!({}))
    );

    let response = post_with("wrong", &server, "traces", PROTOBUF, good).await;
    assert_eq!(
        (
            response.status().as_u16(),
            response.headers()["content-type"].to_str().unwrap()
        ),
        (401, PROTOBUF)
    );
    // The code 16, and the reason.
    let body = response.bytes().await.unwrap();
    assert_eq!(&body[..3], [8, 16, 18]);
    assert_eq!(&body[4..], b"this ingest key is unknown or revoked");

    let mut foreign = traces(&[span("foreign", 1)]);
    foreign["resourceSpans"][0]["resource"]["attributes"][0] =
        text("service.name", "com.example.bank");
    let foreign = foreign.to_string().into_bytes();
    let response = post_with(KEY, &server, "traces", JSON, foreign).await;
    assert_eq!(response.status(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_that_a_span_becomes_are_not_counted_as_rejected_spans() {
    let server = Server::start().await;
    let mut payload = span("MXMetricPayload", 1);
    payload["attributes"] = json!([
        text("metrickit.cpu.cpu_time", "1e300"),
        text("metrickit.gpu.time", "1"),
    ]);
    let mut wrong = span("wrong", 2);
    wrong["traceId"] = json!("");
    for (spans, expected) in [
        (vec![payload.clone()], Value::Null),
        (vec![payload, wrong], json!("1")),
    ] {
        let (status, answer) = send(&server, "traces", &traces(&spans)).await;
        assert_eq!(status, 200);
        assert_eq!(
            answer["partialSuccess"]["rejectedSpans"], expected,
            "{answer}"
        );
    }
    let names = "SELECT DISTINCT name FROM metrics";
    assert_eq!(server.stored(names).await, "metrickit.gpu.time");
}

#[tokio::test(flavor = "multi_thread")]
async fn exporters_are_asked_to_wait_for_seconds_only() {
    let server = Server::start().await;
    let token = server.token("admin").await;
    // Exporters drop what they would have to keep for long, so the server never asks for more than five seconds.
    let path = "/api/v1/projects/default";
    let little = json!({"quotas": {"bytes_per_day": 1}});
    assert_eq!(
        server
            .call(&token, Method::PATCH, path, Some(little))
            .await
            .status,
        200
    );
    // A change is in force a moment later.
    let mut over = refused_or_stored(&server, 10).await;
    wait::until("the quota is in force", async || {
        over = refused_or_stored(&server, 10).await;
        over.0 == 429
    })
    .await;
    assert_eq!((over.1, over.2.as_deref()), (8, Some("5")));
    let none = json!({"quotas": {}, "signal_quotas": {"spans": 0}});
    assert_eq!(
        server
            .call(&token, Method::PATCH, path, Some(none))
            .await
            .status,
        200
    );
    let mut answer = json!({});
    let mut id = 100;
    wait::until("the quota of spans is in force", async || {
        id += 2;
        let spans = [span("held", id), span("back", id + 1)];
        answer = send(&server, "traces", &traces(&spans)).await.1;
        answer["partialSuccess"].is_object()
    })
    .await;
    let partial = &answer["partialSuccess"];
    assert_eq!(partial["rejectedSpans"], "2", "{answer}");
    assert!(
        partial["errorMessage"]
            .as_str()
            .unwrap()
            .starts_with("rate_limited"),
        "{answer}"
    );
    assert_eq!(
        server.send(&batch()).await.status,
        202,
        "batches are as before"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn web_apps_may_report_from_the_origins_that_the_settings_name() {
    let server = Server::away(&[
        "--web-origins",
        "https://shop.example,http://localhost:3000,capacitor://localhost",
    ])
    .await;
    for path in [
        "/v1/traces",
        "/v1/ingest",
        "/v1/config",
        "/ofrep/v1/evaluate/flags",
    ] {
        let ask = async |origin: &str, method: Method| {
            let request = server
                .client
                .request(method, format!("{}{path}", server.url));
            let request = request.header("origin", origin);
            let request = request.header("access-control-request-method", "POST");
            let request = request.header(
                "access-control-request-headers",
                "authorization,content-type,traceparent",
            );
            let response = request.send().await.unwrap();
            let allowed = response.headers().get("access-control-allow-origin");
            let allowed = allowed.map(|origin| origin.to_str().unwrap().to_owned());
            (
                response.status().as_u16(),
                allowed,
                response.headers().clone(),
            )
        };
        let (status, allowed, headers) = ask("https://shop.example", Method::OPTIONS).await;
        assert_eq!(
            (status, allowed.as_deref()),
            (200, Some("https://shop.example")),
            "{path}"
        );
        let named = headers["access-control-allow-headers"].to_str().unwrap();
        for name in [
            "authorization",
            "content-type",
            "content-encoding",
            "x-api-key",
            "traceparent",
        ] {
            assert!(named.contains(name), "{path}: {named}");
        }
        assert!(!headers.contains_key("access-control-allow-credentials"));
        // The page can read why it was refused.
        let (status, allowed, _) = ask("http://localhost:3000", Method::POST).await;
        assert_eq!(allowed.as_deref(), Some("http://localhost:3000"), "{path}");
        assert!([401, 405, 415].contains(&status), "{path}: {status}");
        let (_, allowed, _) = ask("capacitor://localhost", Method::OPTIONS).await;
        assert_eq!(allowed.as_deref(), Some("capacitor://localhost"), "{path}");
        for other in ["https://other.example", "ionic://localhost"] {
            let (_, allowed, _) = ask(other, Method::OPTIONS).await;
            assert_eq!(allowed, None, "{path}");
        }
    }
    let people = server.client.get(format!("{}/api/v1/me", server.url));
    let answer = people
        .header("origin", "https://shop.example")
        .send()
        .await
        .unwrap();
    assert!(
        !answer.headers().contains_key("access-control-allow-origin"),
        "only devices' routes"
    );
}
