//! Requests of OpenTelemetry over HTTP: what is stored of them, once.

use std::io::Write;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use reqwest::Response;
use serde_json::{Value, json};

use crate::asked::Asked;
use crate::server::Server;

/// 2026-11-20T11:59:00Z in nanoseconds.
const NANOS: u64 = 1_795_175_940_000_000_000;
const PERIOD: &str = "from=2026-11-20T10:00:00Z&to=2026-11-20T13:00:00Z";
pub(crate) const PROTOBUF: &str = "application/x-protobuf";
pub(crate) const JSON: &str = "application/json";

pub(crate) async fn post(
    server: &Server,
    signal: &str,
    content_type: &str,
    body: Vec<u8>,
) -> Response {
    post_with("any-key", server, signal, content_type, body).await
}

pub(crate) async fn post_with(
    key: &str,
    server: &Server,
    signal: &str,
    content_type: &str,
    body: Vec<u8>,
) -> Response {
    let request = server.client.post(format!("{}/v1/{signal}", server.url));
    let request = request.bearer_auth(key).body(body);
    let request = request.header("content-type", content_type);
    request.send().await.unwrap()
}

/// Sends JSON. Returns the status and the answer.
pub(crate) async fn send(server: &Server, signal: &str, body: &Value) -> (u16, Value) {
    let response = post(server, signal, JSON, body.to_string().into_bytes()).await;
    (response.status().as_u16(), response.json().await.unwrap())
}

pub(crate) fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

pub(crate) fn phone() -> Value {
    json!({"attributes": [
        text("service.name", "com.example.shop"),
        text("service.version", "4.12.0"),
        text("app.build_id", "41200"),
        text("app.installation.id", "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11"),
        text("os.name", "Android"),
        text("os.version", "16"),
        text("device.model.name", "Pixel 10"),
        text("device.manufacturer", "Google"),
        text("deployment.environment.name", "production"),
        text("telemetry.sdk.name", "opentelemetry"),
        text("telemetry.sdk.language", "kotlin"),
        text("telemetry.sdk.version", "1.6.0"),
        text("team", "checkout"),
        text("session.id", "7aa3cf63c4b2a1e0a9fbd2a4b1c0de11"),
    ]})
}

pub(crate) fn span(name: &str, id: u64) -> Value {
    json!({
        "traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": format!("{id:016x}"), "name": name, "kind": 1,
        "startTimeUnixNano": NANOS.to_string(), "endTimeUnixNano": (NANOS + 1_500_000).to_string(),
    })
}

/// A request with the spans of a phone.
pub(crate) fn traces(spans: &[Value]) -> Value {
    json!({"resourceSpans": [{"resource": phone(), "scopeSpans": [{"scope": {"name": "shop.cart", "version": "2"}, "spans": spans}]}]})
}

fn logs(records: &[Value]) -> Value {
    json!({"resourceLogs": [{"resource": phone(), "scopeLogs": [{"scope": {"name": "shop"}, "logRecords": records}]}]})
}

fn metrics(metrics: &[Value]) -> Value {
    json!({"resourceMetrics": [{"resource": phone(), "scopeMetrics": [{"metrics": metrics}]}]})
}

/// A request in every encoding that exporters use.
fn encodings(body: &[u8]) -> [(&'static str, Vec<u8>); 3] {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(body).unwrap();
    [
        ("identity", body.to_vec()),
        ("gzip", gzip.finish().unwrap()),
        ("zstd", zstd::encode_all(body, 1).unwrap()),
    ]
}

/// A span with a value in every field.
fn full_span() -> Value {
    let mut request = span("GET /cart", 0xabc);
    request["kind"] = json!(3);
    request["parentSpanId"] = json!("00000000000000aa");
    request["traceState"] = json!("other=1,ot=th:c;rv:123");
    request["status"] = json!({"code": 2, "message": "timeout"});
    request["attributes"] = json!([
        text("http.request.method", "GET"),
        text("app.screen.name", "Cart"),
        text("thread.name", "main"),
        text("network.connection.type", "cell"),
        text("network.connection.subtype", "lte"),
        text("code.function.name", "shop.Cart.load"),
        {"key": "code.line.number", "value": {"intValue": "41"}},
        {"key": "http.response.status_code", "value": {"intValue": 504}},
        {"key": "tries", "value": {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "b"}]}}},
        text("team", "own"),
    ]);
    request["events"] = json!([{"timeUnixNano": NANOS.to_string(), "name": "retry", "attributes": [text("after", "1s")]}]);
    request["links"] =
        json!([{"traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060708"}]);
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn a_span_has_its_values_and_is_stored_once_however_it_is_sent() {
    let server = Server::start().await;
    let request = traces(&[full_span()]);
    let message: ExportTraceServiceRequest = serde_json::from_value(request).unwrap();
    for (encoding, body) in encodings(&message.encode_to_vec()) {
        let request = server.client.post(format!("{}/v1/traces", server.url));
        let request = request
            .header("x-api-key", "any-key")
            .header("content-encoding", encoding);
        let response = request
            .header("content-type", PROTOBUF)
            .body(body)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200, "{encoding}");
        assert_eq!(response.headers()["content-type"], PROTOBUF);
        assert!(response.headers().contains_key("x-unjank-config-etag"));
        assert!(response.bytes().await.unwrap().is_empty());
    }
    let row = server
        .stored(
            "SELECT app_id, app_version, build, mode, os_name, os_version, device_model, device_manufacturer, toString(install_id),
             toString(session_id), name, toString(kind), page, thread, on_main_thread, toString(network), toString(status), code_function,
             code_line, duration_us, lower(hex(toUInt128(trace_id))), lower(hex(span_id)), lower(hex(parent_span_id)), sample_rate,
             `events.name`[1], start, count() OVER () FROM spans FORMAT JSONCompactEachRow",
        )
        .await;
    let row: Value = serde_json::from_str(&row).unwrap();
    assert_eq!(
        row,
        json!([
            "com.example.shop",
            "4.12.0",
            41_200,
            "production",
            "android",
            "16",
            "Pixel 10",
            "Google",
            "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11",
            "7aa3cf63-c4b2-a1e0-a9fb-d2a4b1c0de11",
            "GET /cart",
            "network",
            "Cart",
            "main",
            true,
            "cellular_4g",
            "error",
            "shop.Cart.load",
            41,
            1_500,
            "5b8aa5a2d2c872e8321cf37308d69df2",
            "0abc",
            "aa",
            0.25,
            "retry after=1s",
            "2026-11-20 11:59:00.000000",
            1
        ])
    );
    let attributes = server
        .query("SELECT attributes FROM spans FORMAT JSONCompactEachRow")
        .await;
    let attributes: Value = serde_json::from_str(&attributes).unwrap();
    assert_eq!(
        attributes[0],
        json!({"http.request.method": "GET", "http.response.status_code": "504", "tries": "[1,\"b\"]", "team": "own",
            "span.kind": "client", "otel.status_description": "timeout",
            "otel.links": "0102030405060708090a0b0c0d0e0f10-0102030405060708",
            "otel.scope.name": "shop.cart", "otel.scope.version": "2"})
    );
    let sdk = server
        .query("SELECT sdk_name, sdk_version, accepted, rejected FROM batches")
        .await;
    assert_eq!(sdk, "opentelemetry-kotlin\t1.6.0\t1\t0");
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_sessions_and_users_of_one_request_stay_apart_and_are_one_batch() {
    let server = Server::start().await;
    let mut other = phone();
    other["attributes"][3] = text("app.installation.id", "not a uuid");
    let of_user = |id, session: &str, user: &str| {
        let mut one = span("tap", id);
        one["attributes"] = json!([text("session.id", session), text("user.id", user)]);
        one
    };
    let spans = [
        of_user(1, "a", "ann"),
        of_user(2, "a", "ann"),
        of_user(3, "b", "ann"),
        of_user(4, "b", "bob"),
    ];
    let mut request = traces(&spans);
    request["resourceSpans"].as_array_mut().unwrap().push(
        json!({"resource": other, "scopeSpans": [{"spans": [span("other", 5)]}, {"spans": [span("other", 6)]}]}),
    );
    assert_eq!(send(&server, "traces", &request).await, (200, json!({})));
    assert_eq!(send(&server, "traces", &request).await, (200, json!({})));
    let counts = "SELECT count(), uniq(install_id), uniq(session_id), uniq(user_id) FROM spans";
    assert_eq!(server.stored(counts).await, "6\t2\t3\t3");
    let batches =
        "SELECT count(), uniq(batch_id), sum(accepted), countIf(wire_bytes > 0) FROM batches";
    assert_eq!(server.query(batches).await, "4\t1\t6\t1");
    // The second copy is a duplicate, and every event has one outcome.
    server.answers("SELECT outcome, sum(count) FROM outcomes WHERE project != '' GROUP BY outcome ORDER BY outcome", "stored\t6").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_span_costs_a_span_and_the_exporter_is_told_which() {
    let server = Server::start().await;
    let mut bad = span("late", 2);
    bad["startTimeUnixNano"] = json!("1000");
    let mut without_id = span("none", 3);
    without_id["spanId"] = json!("");
    // Lua writes an empty list so.
    let mut good = span("good", 1);
    good["attributes"] = json!({});
    let request = traces(&[good, bad, without_id, json!({"traceId": 7})]);
    let (status, answer) = send(&server, "traces", &request).await;
    let partial = &answer["partialSuccess"];
    assert_eq!((status, &partial["rejectedSpans"]), (200, &json!("3")));
    let reason = partial["errorMessage"].as_str().unwrap();
    assert!(reason.starts_with("invalid_event: "), "{reason}");

    let message: ExportTraceServiceRequest =
        serde_json::from_value(traces(&[span("", 9)])).unwrap();
    let response = post(&server, "traces", PROTOBUF, message.encode_to_vec()).await;
    let answer = ExportTraceServiceResponse::decode(response.bytes().await.unwrap()).unwrap();
    let partial = answer.partial_success.unwrap();
    assert_eq!(
        (partial.rejected_spans, partial.error_message.as_str()),
        (1, "name_missing: `name` is missing or empty")
    );
    assert_eq!(server.stored("SELECT name FROM spans").await, "good");
    let outcomes = "SELECT outcome, reason, sum(count) FROM outcomes WHERE project != '' GROUP BY outcome, reason ORDER BY ALL";
    server.answers(outcomes, "rejected\tinvalid_event\t2\nrejected\tname_missing\t1\nrejected\ttime_out_of_range\t1\nstored\t\t1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn log_records_become_janks_errors_and_spans() {
    let asked = Asked::of(&[]).await;
    let server = &asked.server;
    let time = NANOS.to_string();
    let stack =
        "at com.example.shop.Cart.load(Cart.kt:41)\n\tat com.example.shop.Main.onCreate(Main.kt:7)";
    let elements = stack.replace("\tat ", "").replace("at ", "");
    let records = [
        json!({"eventName": "device.anr", "timeUnixNano": time, "attributes": [
            text("exception.stacktrace", &elements), text("thread.name", "main"), text("app.screen.name", "Cart")]}),
        json!({"observedTimeUnixNano": time, "attributes": [text("event.name", "metrickit.diagnostic.hang"),
            {"key": "metrickit.diagnostic.hang.hang_duration", "value": {"doubleValue": 1.25}}, text("exception.stacktrace", "{\"tree\": 1}")]}),
        json!({"timeUnixNano": time, "severityNumber": 17, "body": {"stringValue": "no such item"}, "attributes": [
            text("exception.type", "shop.NoItem"), text("exception.message", "none"), text("exception.stacktrace", stack)]}),
        json!({"timeUnixNano": time, "severityNumber": 9, "severityText": "INFO", "body": {"stringValue": "paid"},
            "traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": "00000000000000aa"}),
        json!({"timeUnixNano": time, "eventName": "app.screen.click", "attributes": [{"key": "x", "value": {"intValue": 7.0}}]}),
    ];
    assert_eq!(
        send(server, "logs", &logs(&records)).await,
        (200, json!({}))
    );
    let janks = "SELECT toString(kind), page, thread, duration_ms, start, stack_hash > 0, stack_missing FROM janks ORDER BY duration_ms DESC";
    assert_eq!(
        server.stored(janks).await,
        "anr\tCart\tmain\t5000\t2026-11-20 11:58:55.000000\t1\t\n\
         jank\t\t\t1250\t2026-11-20 11:58:58.750000\t0\texception.stacktrace has no format that unjank reads"
    );
    let groups = asked
        .ask(&format!("query/janks?by=culprit&measure=count&{PERIOD}"))
        .await
        .body;
    assert!(
        groups["rows"]
            .to_string()
            .contains("com.example.shop.Cart.load"),
        "{groups}"
    );
    let spans = "SELECT name, toString(status), duration_us, attributes['body'], attributes['exception.message'], attributes['x'], lower(hex(parent_span_id)) FROM spans ORDER BY name";
    assert_eq!(
        server.query(spans).await,
        "app.screen.click\tunset\t0\t\t\t7\t00\n\
         log.info\tunset\t0\tpaid\t\t\taa\n\
         shop.NoItem\terror\t0\tno such item\tnone\t\t00"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn data_points_become_metrics_whose_percentiles_are_those_of_the_measurements() {
    let asked = Asked::of(&[]).await;
    let server = &asked.server;
    let time = NANOS.to_string();
    let point = |value: Value| {
        let mut point = json!({"timeUnixNano": time, "attributes": [text("screen", "cart")]});
        point
            .as_object_mut()
            .unwrap()
            .extend(value.as_object().unwrap().clone());
        point
    };
    // A hundred measurements: 90 of 0 to 10, ten of 100 to 200.
    let histogram = point(
        json!({"count": "100", "sum": 2_000.0, "bucketCounts": ["90", "0", "10"], "explicitBounds": [10.0, 100.0],
        "min": 1.0, "max": 200.0}),
    );
    let exponential = point(
        json!({"count": 3, "sum": 21.0, "scale": 0, "zeroCount": "1", "positive": {"offset": 2, "bucketCounts": ["1", 0, "1"]}}),
    );
    let all = [
        json!({"name": "battery", "unit": "%", "gauge": {"dataPoints": [point(json!({"asDouble": 81.5}))]}}),
        json!({"name": "taps", "sum": {"aggregationTemporality": 2, "isMonotonic": true, "dataPoints": [point(json!({"asInt": "7"}))]}}),
        json!({"name": "load", "unit": "ms", "histogram": {"aggregationTemporality": 1, "dataPoints": [histogram]}}),
        json!({"name": "size", "exponentialHistogram": {"aggregationTemporality": 1, "dataPoints": [exponential]}}),
        json!({"name": "old", "summary": {"dataPoints": [point(json!({"count": "5", "sum": 9.0, "quantileValues": [{"quantile": 0.5, "value": 4.0}]}))]}}),
        json!({"name": "total", "histogram": {"aggregationTemporality": 2, "dataPoints": [point(json!({"count": "1", "bucketCounts": ["1"]}))]}}),
    ];
    let message: ExportMetricsServiceRequest = serde_json::from_value(metrics(&all)).unwrap();
    let response = post(server, "metrics", PROTOBUF, message.encode_to_vec()).await;
    let answer = ExportTraceServiceResponse::decode(response.bytes().await.unwrap()).unwrap();
    let partial = answer.partial_success.unwrap();
    assert_eq!(partial.rejected_spans, 1);
    assert!(
        partial
            .error_message
            .starts_with("cumulative_histogram: the histogram `total` is cumulative: set OTEL_"),
        "{}",
        partial.error_message
    );
    server.drained().await;
    let path = format!(
        "query/metrics?by=name&measure=count&measure=mean&measure=min&measure=max&measure=p50&measure=p95&{PERIOD}"
    );
    let answer = asked.ask(&path).await.body;
    let rows = answer["rows"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    let of = |name: &str| {
        let row = rows.iter().find(|row| row["keys"][0] == name);
        let values = row.unwrap_or_else(|| panic!("{name}: {answer}"))["values"].clone();
        let values: Vec<f64> = values
            .as_array()
            .unwrap()
            .iter()
            .map(|value| value.as_f64().unwrap())
            .collect();
        values
    };
    assert_eq!(of("battery")[..4], [1., 81.5, 81.5, 81.5]);
    assert_eq!(of("taps")[1], 7.);
    assert_eq!(of("old")[1], 4.);
    let load = of("load");
    assert_eq!((load[0], load[2], load[3]), (100., 1., 200.));
    assert!((load[1] - 20.).abs() < 1e-9, "the mean is exact: {load:?}");
    assert!(
        (1. ..=10.1).contains(&load[4]) && (99. ..=202.).contains(&load[5]),
        "{load:?}"
    );
    let size = of("size");
    assert!((size[0], size[1]) == (3., 7.), "{size:?}");
    let attributes = server.query("SELECT attributes['unit'], attributes['screen'], attributes['team'] FROM metrics WHERE name = 'battery'").await;
    assert_eq!(attributes, "%\tcart\tcheckout");
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_and_whole_numbers_are_read_in_all_forms_of_json() {
    let server = Server::start().await;
    let mut base64 = span("base64", 1);
    base64["traceId"] = json!("W4qlotLIcugyHPNzCNad8g==");
    base64["spanId"] = json!("AAAAAAAAAAE=");
    base64["attributes"] = json!([{"key": "code.line.number", "value": {"doubleValue": 41.0}}]);
    let mut capitals = span("capitals", 10);
    for id in ["traceId", "spanId"] {
        capitals[id] = json!(capitals[id].as_str().unwrap().to_uppercase());
    }
    let mut request = traces(&[base64, capitals]);
    let resource = &mut request["resourceSpans"][0]["resource"]["attributes"];
    resource[2] = text("app.build_id", " 41200.0");
    resource[3] = text(
        "app.installation.id",
        " {5C0C7E0E-6C6B-4A3E-8A0E-0F6F8D3B2A11}",
    );
    let (status, answer) = send(&server, "traces", &request).await;
    assert_eq!((status, answer), (200, json!({})));
    let stored =
        "SELECT name, trace_id, span_id, code_line, build, install_id FROM spans ORDER BY name";
    let same = "41200\t5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11";
    let trace = "5b8aa5a2-d2c8-72e8-321c-f37308d69df2";
    assert_eq!(
        server.stored(stored).await,
        format!("base64\t{trace}\t1\t41\t{same}\ncapitals\t{trace}\t10\t0\t{same}")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_protobuf_says_json_says_too() {
    // The same requests as protobuf, which the tests above send as JSON.
    let server = Server::start().await;
    let record = json!({"eventName": "device.anr", "timeUnixNano": NANOS.to_string(), "attributes": [text("exception.stacktrace", "a.B.c(B.kt:4)")]});
    let message: ExportLogsServiceRequest = serde_json::from_value(logs(&[record])).unwrap();
    let response = post(&server, "logs", PROTOBUF, message.encode_to_vec()).await;
    assert_eq!(
        (
            response.status().as_u16(),
            response.bytes().await.unwrap().len()
        ),
        (200, 0)
    );
    assert_eq!(
        server
            .stored("SELECT toString(kind), stack_hash > 0 FROM janks")
            .await,
        "anr\t1"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_answer_was_lost_is_stored_once_also_after_a_restart_and_by_another_server()
{
    let mut server = Server::start().await;
    let request = traces(&[span("once", 1), span("twice", 2)]);
    assert_eq!(send(&server, "traces", &request).await.0, 200);
    server.restart().await;
    server.ready().await;
    assert_eq!(send(&server, "traces", &request).await, (200, json!({})));
    server.drained().await;
    let beside = server.beside().await;
    assert_eq!(send(&beside, "traces", &request).await, (200, json!({})));
    beside.drained().await;
    assert_eq!(
        server
            .query("SELECT count(), uniq(span_id) FROM spans")
            .await,
        "2\t2"
    );
}
