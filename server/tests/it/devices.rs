//! Queries about single devices and users: requests by host and path, uptime, mode, and flame graphs of spans.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::alerts::{Watched, spans};
use crate::asked::Asked;
use crate::engine::UNJANK;
use crate::server::{Server, batch, span};

const PERIOD: &str = "from=2026-11-20T10:00:00Z&to=2026-11-20T13:00:00Z";

impl Asked {
    async fn get(&self, path: &str) -> Value {
        let answer = self.ask(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }

    /// Keys and values of each row.
    async fn found(&self, question: &str) -> Vec<(Value, Value)> {
        let body = self.get(&format!("query/{question}&{PERIOD}")).await;
        let rows = body["rows"].as_array().unwrap().iter();
        rows.map(|row| (row["keys"].clone(), row["values"].clone()))
            .collect()
    }
}

fn of_device(install: Uuid, spans: Value) -> Value {
    let mut batch = batch();
    batch["resource"]["install_id"] = json!(install);
    batch["spans"] = spans;
    batch
}

fn named(name: &str, attributes: Value) -> Value {
    let mut span = span();
    span["name"] = json!(name);
    span["attributes"] = attributes;
    span
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_an_install_are_found_by_host_and_path_with_their_traces() {
    let (heavy, other) = (Uuid::new_v4(), Uuid::new_v4());
    let download = json!({
        "server.address": "cdn.example.com", "url.path": "/video/1", "http.request.method": "GET",
        "http.response.status_code": "200", "http.request.size": "100", "http.response.body.size": "5000000",
    });
    let mut sampled = named("GET /video/1", download.clone());
    sampled["sample_rate"] = json!(0.5);
    let trace = sampled["trace_id"].clone();
    let whole = json!({"url.full": "https://api.example.com/cart/7?token=1", "http.response.status_code": "503"});
    let mut by_kind = named("an upload", json!({}));
    by_kind["kind"] = json!("network");
    let asked = Asked::of(&[
        of_device(
            heavy,
            json!([
                sampled,
                named("fetch", whole),
                named("POST /checkout/pay?x=1", json!({})),
                named("render", json!({"host": "db-1"})),
                by_kind,
            ]),
        ),
        of_device(other, json!([named("GET /video/1", download)])),
    ])
    .await;
    let question = format!(
        "requests?by=host&by=path&measure=bytes&measure=count&measure=failed_share&order=-bytes&install_id={heavy}"
    );
    let mut rows = asked.found(&question).await;
    assert_eq!(
        rows.remove(0),
        (
            json!(["cdn.example.com", "/video/{id}"]),
            json!([10_000_200.0, 2.0, 0.0])
        )
    );
    rows.sort_by_key(|(keys, _)| keys.to_string());
    assert_eq!(
        rows,
        [
            (json!(["", ""]), json!([0.0, 1.0, 0.0])),
            (json!(["", "/checkout/pay"]), json!([0.0, 1.0, 0.0])),
            (
                json!(["api.example.com", "/cart/{id}"]),
                json!([0.0, 1.0, 1.0])
            ),
        ]
    );
    let all = asked
        .found("requests?by=path&measure=installs&order=-installs")
        .await;
    assert_eq!(all[0], (json!(["/video/{id}"]), json!([2.0])));
    let traces = asked
        .get(&format!(
            "traces?host=cdn.example.com&path=/video/%7Bid%7D&install_id={heavy}&{PERIOD}"
        ))
        .await;
    let found = traces["spans"].as_array().unwrap();
    assert_eq!((found.len(), &found[0]["trace_id"]), (1, &trace));
    assert_eq!(found[0]["install_id"], json!(heavy));
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_have_the_time_since_the_launch_and_a_maximum() {
    let spans = [(30_000, 10), (30_000, 90), (4_000_000, 700)].map(|(uptime_ms, ms)| {
        let mut span = span();
        span["uptime_ms"] = json!(uptime_ms);
        span["duration_us"] = json!(ms * 1_000);
        span
    });
    let trace = spans[2]["trace_id"].as_str().unwrap().to_owned();
    let asked = Asked::of(&[of_device(Uuid::new_v4(), json!(spans))]).await;
    // Not below the longest span, which lists of spans show as well.
    let covers = |value: &Value, longest: f64| {
        let value = value.as_f64().unwrap();
        assert!((1.0..1.02).contains(&(value / longest)), "{value}");
    };
    let by_uptime = asked
        .found("spans?by=uptime&measure=count&measure=max_us&order=-count")
        .await;
    assert_eq!(by_uptime[0].0, json!(["under_1m"]));
    assert_eq!(by_uptime[1].0, json!(["over_1h"]));
    covers(&by_uptime[0].1[1], 90_000.0);
    covers(&by_uptime[1].1[1], 700_000.0);
    // The roll-up has the maximum, too.
    let body = asked
        .get(&format!("query/spans?by=name&measure=max_us&{PERIOD}"))
        .await;
    assert_eq!(body["source"], "hourly");
    covers(&body["rows"][0]["values"][0], 700_000.0);
    for signal in ["frame_windows", "janks", "page_loads"] {
        asked.found(&format!("{signal}?by=uptime")).await;
    }
    let chrome = asked.get(&format!("traces/{trace}/chrome")).await;
    let events = chrome["traceEvents"].as_array().unwrap();
    let event = events.iter().find(|event| event["ph"] == "X").unwrap();
    assert_eq!(event["args"]["uptime_ms"], 4_000_000);
    let spans = asked.get(&format!("traces/{trace}")).await;
    assert_eq!(spans["spans"][0]["uptime_ms"], 4_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_tests_are_told_from_those_of_production() {
    let of_mode = |mode: Value| {
        let mut batch = of_device(Uuid::new_v4(), json!([span()]));
        batch["resource"]["mode"] = mode;
        batch["resource"]["device_class"] = json!("HIGH");
        batch["traffic"] = json!([{
            "day": "2026-11-20", "source": "api", "network": "wifi", "tx_bytes": 10, "rx_bytes": 0, "requests": 1, "failed_requests": 0,
        }]);
        batch
    };
    let asked = Asked::of(&[
        of_mode(json!("test")),
        of_mode(json!("production")),
        of_mode(json!("PRODUCTION")),
        of_mode(Value::Null),
    ])
    .await;
    for signal in ["spans", "traffic"] {
        let rows = asked
            .found(&format!(
                "{signal}?by=mode&by=device_class&measure=installs&order=-installs"
            ))
            .await;
        assert_eq!(rows[0], (json!(["production", "high"]), json!([2.0])));
        assert_eq!(rows.len(), 3);
        let tests = asked
            .found(&format!("{signal}?mode=test&measure=installs"))
            .await;
        assert_eq!((tests.len(), &tests[0].1[0]), (1, &json!(1.0)));
    }
    let usage = asked
        .get("query/usage?by=mode&measure=installs&mode=test&received=true&from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z")
        .await;
    assert_eq!(usage["rows"][0]["keys"], json!(["test"]));
}

/// Runs `unjank export spans` with a format on the store of a server.
async fn flame(server: &Server, arguments: &[&str]) -> std::process::Output {
    let mut command = tokio::process::Command::new(UNJANK);
    command.args(["export", "spans"]).args(arguments);
    command.args(["--from", "2026-11-20T10:00:00Z"]);
    command.args(["--to", "2026-11-20T13:00:00Z"]);
    command.args(server.flags());
    command.output().await.unwrap()
}

/// A trace of 100 ms: a checkout with a payment of 60 ms, in which one of ten writes of 2 ms was recorded.
fn checkout() -> Value {
    let mut root = span();
    root["duration_us"] = json!(100_000);
    let child_of = |parent: &Value, name: &str, ms: u64, offset_ms: u64| {
        let mut child = span();
        child["trace_id"] = parent["trace_id"].clone();
        child["parent_span_id"] = parent["span_id"].clone();
        child["name"] = json!(name);
        child["start"] = json!(format!("2026-11-20T11:59:55.{offset_ms:03}Z"));
        child["duration_us"] = json!(ms * 1_000);
        child
    };
    root["start"] = json!("2026-11-20T11:59:55.000Z");
    let pay = child_of(&root, "pay", 60, 10);
    let mut write = child_of(&pay, "write", 2, 20);
    write["sample_rate"] = json!(0.1);
    json!([root, pay, write])
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_are_exported_as_flame_graphs_of_their_own_time() {
    let asked = Asked::of(&[
        of_device(Uuid::new_v4(), checkout()),
        of_device(Uuid::new_v4(), checkout()),
    ])
    .await;
    let text = |output: std::process::Output| {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{error}");
        String::from_utf8(output.stdout).unwrap()
    };
    // One of ten writes of 2 ms was recorded, so the writes took 20 of the payment's 60 ms.
    let whole = "checkout 80000\ncheckout;pay 80000\ncheckout;pay;write 40000\n";
    assert_eq!(text(flame(&asked.server, &[]).await), whole);
    assert_eq!(
        text(flame(&asked.server, &["--filter", "name=checkout"]).await),
        whole
    );
    assert_eq!(
        text(flame(&asked.server, &["--filter", "name=pay"]).await),
        "pay 80000\npay;write 40000\n"
    );
    assert_eq!(
        text(
            flame(
                &asked.server,
                &["--filter", "name=checkout", "--limit", "1"]
            )
            .await
        ),
        "checkout 40000\ncheckout;pay 40000\ncheckout;pay;write 20000\n"
    );
    let file = text(flame(&asked.server, &["--format", "speedscope"]).await);
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["profiles"][0]["weights"], json!([80.0, 80.0, 40.0]));
    assert_eq!(file["shared"]["frames"].as_array().unwrap().len(), 3);
    let none = flame(&asked.server, &["--filter", "name=none"]).await;
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no spans match"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_has_the_flame_graphs_of_spans_and_compares_versions() {
    let of_version = |version: &str| {
        let mut batch = of_device(Uuid::new_v4(), checkout());
        batch["resource"]["app_version"] = json!(version);
        batch
    };
    let asked = Asked::of(&["4.11.0", "4.12.0", "4.12.0"].map(of_version)).await;
    let of_latest = format!("app_version=4.12.0&{PERIOD}");
    // Without a name, the outermost spans of the traces are the roots.
    for (filters, lines) in [
        (
            "",
            "checkout 80000\ncheckout;pay 80000\ncheckout;pay;write 40000\n",
        ),
        ("name=pay&limit=1&", "pay 40000\npay;write 20000\n"),
        ("root=false&", "pay 80000\npay;write 40000\n"),
        ("name=none&", ""),
    ] {
        let path = format!("spans/folded?{filters}{of_latest}");
        assert_eq!(asked.get(&path).await, json!(lines), "{filters}");
    }
    let path = format!("spans/speedscope?name=pay&{of_latest}");
    let file = asked.get(&path).await;
    assert_eq!(file["profiles"][0]["weights"], json!([80.0, 40.0]));
    let path = format!("spans/flame?name=pay&{of_latest}");
    let write = json!({"name": "write", "value": 40_000.0, "base": 20_000.0});
    let pay = json!({"name": "pay", "value": 120_000.0, "base": 60_000.0, "children": [write]});
    assert_eq!(
        asked.get(&format!("{path}&base_app_version=4.11.0")).await,
        json!({
            "unit": "us", "stacks": 2, "spans": 2, "represented": 2.0, "base_spans": 1, "base_represented": 1.0,
            "root": {"name": "all", "value": 120_000.0, "base": 60_000.0, "children": [pay]},
        })
    );
    let alone = asked.get(&path).await;
    assert_eq!(alone["root"]["base"], Value::Null);
    assert_eq!(alone["base_spans"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_whose_traces_are_too_large_to_read_are_left_out() {
    let at = |second: u32| json!(format!("2026-11-20T11:59:{second}Z"));
    let mut small = checkout();
    for span in small.as_array_mut().unwrap() {
        span["start"] = at(40);
    }
    let mut large = span();
    (large["start"], large["duration_us"]) = (at(50), json!(8_000_000));
    let inside = |_| {
        let mut batch = crate::server::spans(3_500);
        for span in batch["spans"].as_array_mut().unwrap() {
            span["trace_id"] = large["trace_id"].clone();
            (span["start"], span["name"]) = (at(52), json!("step"));
        }
        batch
    };
    let mut batches: Vec<Value> = (0..29).map(inside).collect();
    batches.push(of_device(Uuid::new_v4(), small));
    let mut later = of_device(Uuid::new_v4(), json!([large]));
    later["resource"]["app_version"] = json!("4.13.0");
    batches.push(later);
    let asked = Asked::of(&batches).await;
    let of_checkout = format!("name=checkout&{PERIOD}");
    for path in ["spans/flame", "spans/inside"] {
        let found = asked.get(&format!("{path}?{of_checkout}")).await;
        assert_eq!(found["spans"], 1, "{path}: {found}");
        let of_large = format!("{path}?{of_checkout}&app_version=4.13.0");
        let refused = asked.ask(&of_large).await;
        assert_eq!(refused.outcome(), (422, "question_unfit".to_owned()));
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains("more than 100000 spans"), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_by_install_watches_the_worst_installs_of_many() {
    let watched = Watched::start().await;
    for _ in 0..200 {
        watched.send(spans("4.12.0", &[10, 10])).await;
    }
    let slow = spans("4.12.0", &[900]);
    let install = slow["resource"]["install_id"].clone();
    watched.send(slow).await;
    watched.server.drained().await;
    watched
        .rule(json!({
            "name": "An install is slow",
            "metric": {"signal": "spans", "measure": "max_us", "by": ["install_id"]},
            "window_minutes": 30, "for_minutes": 0, "least_samples": 1,
            "condition": {"kind": "threshold", "above": 500_000},
        }))
        .await;
    let found = watched.incidents(|all| all.len() == 1).await;
    assert_eq!(found[0]["group"], json!({"install_id": install}));
    let link = found[0]["link"].as_str().unwrap();
    let page = format!("/installs/{}?project=default&", install.as_str().unwrap());
    assert!(link.starts_with(&page), "{link}");
}
