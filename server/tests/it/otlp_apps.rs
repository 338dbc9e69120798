//! What the libraries of OpenTelemetry for apps send, as their documentation says. The libraries do not run here.

use serde_json::{Value, json};

use crate::asked::Asked;
use crate::otlp::{phone, send, span, text, traces};
use crate::server::Server;

fn double(key: &str, value: f64) -> Value {
    json!({"key": key, "value": {"doubleValue": value}})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_numbers_that_metric_kit_collects_are_metrics() {
    let server = Server::start().await;
    let mut payload = span("MXMetricPayload", 1);
    payload["attributes"] = json!([
        double("metrickit.cpu.cpu_time", 12.5),
        double("metrickit.app_launch.time_to_first_draw_average", 0.75),
        {"key": "metrickit.app_exit.foreground.normal_app_exit_count", "value": {"intValue": "3"}},
        {"key": "metrickit.includes_multiple_application_versions", "value": {"boolValue": false}},
        text("metrickit.latest_application_version", "4.12"),
        double("metrickit.timestamp_end", 1.5e9),
        {"key": "metrickit.metadata.pid", "value": {"intValue": "7"}},
    ]);
    let request = traces(&[payload, span("tap", 2)]);
    assert_eq!(send(&server, "traces", &request).await, (200, json!({})));
    let metrics = "SELECT name, value, time, attributes['metrickit.cpu.cpu_time'], attributes['team'] FROM metrics ORDER BY name";
    assert_eq!(
        server.stored(metrics).await,
        "metrickit.app_exit.foreground.normal_app_exit_count\t3\t2026-11-20 11:59:00.001500\t\tcheckout\n\
         metrickit.app_launch.time_to_first_draw_average\t0.75\t2026-11-20 11:59:00.001500\t\tcheckout\n\
         metrickit.cpu.cpu_time\t12.5\t2026-11-20 11:59:00.001500\t\tcheckout"
    );
    let spans = "SELECT name FROM spans ORDER BY name";
    assert_eq!(server.query(spans).await, "MXMetricPayload\ntap");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hang_of_metric_kit_has_the_stack_of_the_thread_at_fault() {
    let server = Server::start().await;
    let frame = |name: &str, offset: u64| json!({"binaryName": name, "binaryUUID": "70B89F27-1634-3580-A695-57CDB41D7743", "offsetAddress": offset});
    let stacks = json!({"callStackPerThread": true, "callStacks": [
        {"threadAttributed": false, "callStackFrames": [frame("libdyld.dylib", 1)]},
        {"threadAttributed": true, "callStackFrames": [frame("Shop", 165_304), frame("UIKitCore", 6_948)]},
    ]});
    let record = json!({"eventName": "metrickit.diagnostic.hang", "timeUnixNano": "1795175940000000000", "attributes": [
        double("metrickit.diagnostic.hang.hang_duration", 1.25),
        text("exception.stacktrace", &stacks.to_string()),
    ]});
    let request =
        json!({"resourceLogs": [{"resource": phone(), "scopeLogs": [{"logRecords": [record]}]}]});
    assert_eq!(send(&server, "logs", &request).await, (200, json!({})));
    let janks = "SELECT toString(kind), stack_missing, duration_ms FROM janks";
    assert_eq!(server.stored(janks).await, "jank\t\t1250");
    let stacks = "SELECT `frames.module`, `frames.offset`, arrayMap(id -> lower(replaceAll(id, '-', '')), `frames.build_id`) FROM stacks";
    let id = "70b89f2716343580a69557cdb41d7743";
    assert_eq!(
        server.query(stacks).await,
        format!("['Shop','UIKitCore']\t[165304,6947]\t['{id}','{id}']")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_shows_the_scope_the_attributes_of_links_and_what_the_app_dropped() {
    let asked = Asked::of(&[]).await;
    let mut one = span("tap", 1);
    one["links"] = json!([{"traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060708",
        "attributes": [text("reason", "retry"), text("tries", "2")]}]);
    one["droppedAttributesCount"] = json!(2);
    one["droppedEventsCount"] = json!(3);
    one["droppedLinksCount"] = json!(0);
    let mut request = traces(&[one]);
    request["resourceSpans"][0]["schemaUrl"] = json!("https://opentelemetry.io/schemas/1.44.0");
    let scope = &mut request["resourceSpans"][0]["scopeSpans"][0]["scope"];
    scope["attributes"] = json!([text("team", "platform"), text("version", "3")]);
    let sent = send(&asked.server, "traces", &request).await;
    assert_eq!(sent, (200, json!({})));
    asked.server.drained().await;
    let trace = asked.ask("traces/5b8aa5a2d2c872e8321cf37308d69df2").await;
    assert_eq!(
        trace.body["spans"][0]["attributes"],
        json!({
            "otel.links": "0102030405060708090a0b0c0d0e0f10-0102030405060708",
            "otel.link_attributes": "0102030405060708 reason=retry tries=2",
            "otel.dropped_attributes_count": "2",
            "otel.dropped_events_count": "3",
            "otel.scope.name": "shop.cart",
            "otel.scope.version": "2",
            "otel.scope.team": "platform",
            "otel.scope.schema_url": "https://opentelemetry.io/schemas/1.44.0",
            "team": "checkout",
        }),
        "{}",
        trace.body
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_destination_of_a_navigation_is_the_screen_of_its_event() {
    let server = Server::start().await;
    let record = |attributes: &[Value]| json!({"eventName": "app.navigation.complete", "timeUnixNano": "1795175940000000000", "attributes": attributes});
    let destination = text("app.navigation.destination.name", "Cart");
    let records = [
        record(std::slice::from_ref(&destination)),
        record(&[destination.clone(), text("app.screen.name", "Shop")]),
    ];
    let request =
        json!({"resourceLogs": [{"resource": phone(), "scopeLogs": [{"logRecords": records}]}]});
    assert_eq!(send(&server, "logs", &request).await, (200, json!({})));
    let pages =
        "SELECT name, page, attributes['app.navigation.destination.name'] FROM spans ORDER BY page";
    assert_eq!(
        server.stored(pages).await,
        "app.navigation.complete\tCart\tCart\napp.navigation.complete\tShop\tCart"
    );
}
