//! What the libraries of OpenTelemetry for apps send, as their documentation says. The libraries do not run here.

use reqwest::Method;
use serde_json::{Value, json};

use crate::asked::Asked;
use crate::otlp::{phone, send, span, text, traces};
use crate::server::Server;
use crate::symbols::{CULPRITS, MAP_ID, READABLE, upload_to};
use crate::wait;

fn logs(records: &[Value]) -> Value {
    json!({"resourceLogs": [{"resource": phone(), "scopeLogs": [{"logRecords": records}]}]})
}

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
    assert_eq!(
        send(&server, "logs", &logs(&[record])).await,
        (200, json!({}))
    );
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
async fn an_anr_of_the_agent_for_android_has_a_culprit_and_the_names_of_its_mapping() {
    let server = Server::start().await;
    server.ready().await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    let mapping = format!(
        "# compiler: R8\n# pg_map_id: {MAP_ID}\ncom.example.shop.Cart -> a.b:\n    1:1:void pay():30 -> a\n"
    );
    let state = upload_to(&server, (&token, "default"), mapping.as_bytes()).await;
    assert_eq!(state["state"], "ok", "{state}");
    // The agent writes the elements of the stack one a line.
    let stack = format!(
        "android.os.BinderProxy.transactNative(Native Method)\nandroid.os.BinderProxy.transact(BinderProxy.java:584)\n\
         a.b.a(r8-map-id-{MAP_ID}:1)\njava.lang.reflect.Method.invoke(Unknown Source)\n"
    );
    let record = json!({"eventName": "device.anr", "timeUnixNano": "1795175940000000000", "attributes": [
        {"key": "thread.id", "value": {"intValue": "2"}}, text("thread.name", "main"), text("exception.stacktrace", &stack)]});
    assert_eq!(
        send(&server, "logs", &logs(&[record])).await,
        (200, json!({}))
    );
    let readable = "android.os.BinderProxy.transactNative :0 0, android.os.BinderProxy.transact BinderProxy.java:584 0, \
        com.example.shop.Cart.pay Cart.java:30 1, java.lang.reflect.Method.invoke :0 0";
    server.answers(READABLE, readable).await;
    server.answers(CULPRITS, "com.example.shop.Cart.pay").await;
    let is_missing = "SELECT toString(kind), stack_missing != '' FROM janks";
    assert_eq!(server.stored(is_missing).await, "anr\t0");
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
    let request = logs(&records);
    assert_eq!(send(&server, "logs", &request).await, (200, json!({})));
    let pages =
        "SELECT name, page, attributes['app.navigation.destination.name'] FROM spans ORDER BY page";
    assert_eq!(
        server.stored(pages).await,
        "app.navigation.complete\tCart\tCart\napp.navigation.complete\tShop\tCart"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_with_the_names_of_old_conventions_have_host_path_method_and_status() {
    let asked = Asked::of(&[]).await;
    let int = |key: &str, value: u32| json!({"key": key, "value": {"intValue": value}});
    let request = |id, kind: u32, attributes: &[Value]| {
        let mut one = span("HTTP GET", id);
        one["kind"] = json!(kind);
        one["attributes"] = json!(attributes);
        one
    };
    let of_swift = [
        text("http.method", "GET"),
        text("http.url", "https://swift.example.com/cart?of=ann"),
        text("http.target", "/cart"),
        text("http.scheme", "https"),
        text("net.peer.name", "swift.example.com"),
        int("http.status_code", 504),
    ];
    let of_browsers = [
        text("http.method", "POST"),
        text("http.url", "https://web.example.com:8443/pay"),
        text("http.host", "web.example.com:8443"),
        int("http.status_code", 200),
        int("http.response_content_length", 2048),
    ];
    // The peer of a server is its client.
    let of_server = [text("net.peer.name", "203.0.113.7")];
    let spans = [
        request(1, 3, &of_swift),
        request(2, 3, &of_browsers),
        request(3, 2, &of_server),
    ];
    let sent = send(&asked.server, "traces", &traces(&spans)).await;
    assert_eq!(sent, (200, json!({})));
    asked.server.drained().await;
    let period = "from=2026-11-20T10:00:00Z&to=2026-11-20T13:00:00Z";
    let path = "query/requests?by=host&by=path&by=http_status&measure=count&measure=failed_share&measure=rx_bytes";
    let answer = asked.ask(&format!("{path}&{period}")).await.body;
    let numbers = |values: &Value| -> Vec<f64> {
        let values = values.as_array().unwrap().iter();
        values.map(|value| value.as_f64().unwrap()).collect()
    };
    let rows = answer["rows"].as_array().unwrap().iter();
    let mut rows: Vec<_> = rows
        .map(|row| (row["keys"].to_string(), numbers(&row["values"])))
        .collect();
    rows.sort_by(|(one, _), (other, _)| one.cmp(other));
    let failed = json!(["swift.example.com", "/cart", "504"]);
    let paid = json!(["web.example.com", "/pay", "200"]);
    let expected = [
        (failed.to_string(), vec![1., 1., 0.]),
        (paid.to_string(), vec![1., 0., 2048.]),
    ];
    assert_eq!(rows, expected, "{answer}");
    let path = "query/requests?by=host&by=method&measure=count";
    let answer = asked.ask(&format!("{path}&{period}")).await.body;
    let rows = answer["rows"].as_array().unwrap().iter();
    let mut methods: Vec<_> = rows.map(|row| row["keys"].to_string()).collect();
    methods.sort_unstable();
    let expected = [
        r#"["swift.example.com","GET"]"#,
        r#"["web.example.com","POST"]"#,
    ];
    assert_eq!(methods, expected);
    let peer = "SELECT attributes['net.peer.name'] FROM spans WHERE span_id = 3";
    assert_eq!(asked.server.query(peer).await, "203.0.113.7");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_spans_that_wait_for_an_answer_are_requests() {
    const CLIENT: u64 = 3;
    let asked = Asked::of(&[]).await;
    let server = &asked.server;
    let url = |name: &str| text("url.full", &format!("https://shop.example/{name}"));
    let get = || text("http.request.method", "GET");
    let of_kind = |(id, (name, kind, attributes)): (u64, (&str, u64, Value))| {
        let mut span = span(name, id);
        span["kind"] = json!(kind);
        span["attributes"] = attributes;
        span
    };
    let spans = [
        ("GET", CLIENT, json!([get(), url("client")])),
        ("connect", CLIENT, json!([text("url.path", "/socket")])),
        ("fetch", 0, json!([get(), url("no-kind")])),
        ("GET /named", 1, json!([])),
        ("documentLoad", 1, json!([url("page")])),
        ("GET /cart", 2, json!([get(), text("url.path", "/cart")])),
        ("POST /queue", 4, json!([get()])),
        ("GET /queue", 5, json!([get()])),
    ];
    let spans: Vec<_> = (1..).zip(spans).map(of_kind).collect();
    let trace = spans[0]["traceId"].as_str().unwrap().to_owned();
    let sent = send(server, "traces", &traces(&spans)).await;
    assert_eq!(sent, (200, json!({})));
    let records = [
        ("browser.navigation", json!([url("page")])),
        ("browser.resource_timing", json!([get(), url("script.js")])),
        ("GET /logged", json!([])),
    ];
    let records = records.map(|(name, attributes)| {
        json!({"eventName": name, "timeUnixNano": "1795175940000000000", "traceId": trace, "attributes": attributes})
    });
    let request =
        json!({"resourceLogs": [{"resource": phone(), "scopeLogs": [{"logRecords": records}]}]});
    assert_eq!(send(server, "logs", &request).await, (200, json!({})));
    server.drained().await;

    let period = "from=2026-11-20T10:00:00Z&to=2026-11-20T13:00:00Z";
    let path = format!("query/requests?by=path&measure=count&{period}");
    let answer = asked.ask(&path).await.body;
    let rows = answer["rows"].as_array().unwrap().iter();
    let mut paths: Vec<_> = rows.map(|row| row["keys"][0].as_str().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/client", "/named", "/no-kind", "/socket"]);

    // The page of the trace links each request to the systems of its server.
    let editor = server.token("editor --project default").await;
    let links = json!({"name": "Jaeger", "template": "https://jaeger.example.com/{trace_id}"});
    let saved = "/api/v1/projects/default/trace-links";
    let saved = server.call(&editor, Method::PUT, saved, Some(links));
    assert_eq!(saved.await.status, 204);
    let mut linked = Vec::new();
    wait::until("the links are in force", async || {
        let found = asked.ask(&format!("traces/{trace}")).await.body;
        let all = found["spans"].as_array().unwrap();
        assert_eq!(all.len(), 11, "{found}");
        let requests = all.iter().filter(|span| span["trace_url"].is_string());
        linked = requests.map(|span| span["name"].to_string()).collect();
        !linked.is_empty()
    })
    .await;
    linked.sort_unstable();
    let names = ["GET /named", "GET", "connect", "fetch"].map(|name| format!("\"{name}\""));
    assert_eq!(linked, names);
}
