//! Exports of rows, traces, stacks and reports, by the command and by the API, and the content of a report on a known run.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::engine::UNJANK;
use crate::server::{Server, batch, span};

const PERIOD: [&str; 4] = [
    "--from",
    "2026-11-20T10:00:00Z",
    "--to",
    "2026-11-20T13:00:00Z",
];
const EVIL: &str = "<script>alert(1)</script>";

pub(crate) async fn stored(batches: &[Value]) -> Server {
    let server = Server::start().await;
    server.ready().await;
    for batch in batches {
        let answer = server.send(batch).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body["rejected"]),
            (202, &json!([]))
        );
    }
    server.drained().await;
    server
}

/// Runs `unjank export …` on the store of a server.
pub(crate) async fn export(server: &Server, arguments: &[&str]) -> Output {
    let mut command = tokio::process::Command::new(UNJANK);
    command.arg("export").args(arguments);
    command.args(server.flags());
    command.output().await.unwrap()
}

pub(crate) fn text(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Events of every signal in one session, with numbers that are easy to find in a report.
pub(crate) fn run(session: Uuid) -> Value {
    let mut batch = batch();
    batch["session_id"] = json!(session);
    batch["resource"]["os_name"] = json!("android");
    batch["resource"]["device_model"] = json!("Pixel <8>");
    batch["resource"]["sdk_name"] = json!("unjank");
    let window = |second: u32, drawn: u32| {
        json!({
            "page": EVIL, "start": format!("2026-11-20T11:59:{second}Z"), "duration_ms": 1_000, "frames_drawn": drawn,
            "frames_dropped": 60 - drawn, "slow_frames": 3, "frozen_frames": 1, "longest_drop": 17, "jank_ms": 120,
        })
    };
    batch["frame_windows"] = json!([window(10, 60), window(11, 40)]);
    let mut slow = span();
    slow["name"] = json!("a&b");
    slow["on_main_thread"] = json!(true);
    batch["spans"] = json!([slow]);
    batch["janks"] = json!([{
        "kind": "anr", "start": "2026-11-20T11:59:50Z", "duration_ms": 5_678, "thread": "main", "page": EVIL, "foreground": true,
        "stack": [
            {"class": "com.google.gson.Gson", "function": "toJson"},
            {"class": "com.example.Cart", "function": "pay", "file": "Cart.kt", "line": 25},
        ],
        "samples": [{"offset_ms": 300, "stack": [{"class": "com.example.Cart", "function": "later"}]}],
        "run_log": [{"time": "2026-11-20T11:59:49.125Z", "message": "order <sent>"}],
    }]);
    batch["traffic"] = json!([{"day": "2026-11-20", "source": "api", "network": "wifi", "tx_bytes": 2_048, "rx_bytes": 5_242_880, "requests": 4_321, "failed_requests": 7}]);
    batch["page_loads"] = json!([{"page": EVIL, "start": "2026-11-20T11:59:20Z", "t1_ms": 111, "t2_ms": 222, "total_ms": 444, "outcome": "failed"}]);
    batch["metrics"] = json!([
        {"name": "memory_used_bytes", "time": "2026-11-20T11:59:21Z", "value": 104_857_600, "page": EVIL},
        {"name": "memory_used_bytes", "time": "2026-11-20T11:59:22Z", "value": 157_286_400, "page": EVIL},
        {"name": "battery_percent", "time": "2026-11-20T11:59:22Z", "value": 81},
    ]);
    batch["app_starts"] = json!([{"kind": "cold", "start": "2026-11-20T11:59:00Z", "duration_ms": 1_840, "phases": [{"name": "first_frame", "duration_ms": 987}]}]);
    batch["recompositions"] = json!([{"function": "CartRow", "start": "2026-11-20T11:59:30Z", "window_ms": 1_000, "count": 419, "cause": "price"}]);
    batch["sdk_health"] = json!({"dropped": [{"signal": "spans", "reason": "queue_full", "count": 13}], "overhead_us": 91_000});
    batch
}

/// Asserts that a report on `run` contains its events, escaped.
fn assert_contains_run(html: &str) {
    for expected in [
        "com.example.shop 4.12.0",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "Pixel &lt;8&gt;",
        "android",
        // 100 frames in two seconds: 6 are slow, and 2 are frozen.
        "<dd>50.0</dd>",
        "<dd>6.0 %</dd>",
        "<dd>2.0 %</dd>",
        "17 frames",
        "240 ms",
        "<dd>12 %</dd>",
        "<svg viewBox",
        "125 MiB",
        "+50.0 MiB",
        "1 load: 1 failed",
        "111 ms",
        "222 ms",
        "444 ms",
        "1.84 s",
        "first_frame 987 ms",
        "5.68 s",
        "JSON on main thread in Cart.pay",
        "com.google.gson.Gson.toJson",
        "Cart.kt:25",
        "After 300 ms",
        "com.example.Cart.later",
        "11:59:49.125",
        "order &lt;sent&gt;",
        "a&amp;b",
        "41 ms",
        "2.0 KiB",
        "5.0 MiB",
        "4\u{202f}321",
        "battery_percent",
        "419",
        "queue_full",
        "91 ms",
    ] {
        assert!(html.contains(expected), "{expected} is not in {html}");
    }
    for unsafe_text in [
        "<script",
        "Pixel <8>",
        "<sent>",
        "http://",
        "https://",
        "style=",
    ] {
        assert!(
            !html.contains(unsafe_text),
            "{unsafe_text} is in the report"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_on_a_session_is_the_same_by_command_and_by_api() {
    let session = Uuid::new_v4();
    let mut other = run(Uuid::new_v4());
    other["resource"]["app_version"] = json!("4.13.0");
    let server = stored(&[run(session), other]).await;
    let filter = format!("session_id={session}");
    let by_command = ["report", "--filter", &filter];
    let html = text(&export(&server, &[&by_command[..], &PERIOD[..]].concat()).await);
    assert_contains_run(&html);
    assert!(!html.contains("4.13.0"));

    let token = server.token("viewer --project default").await;
    let url = format!(
        "{}/api/v1/projects/default/report?session_id={session}",
        server.url
    );
    let answer = server
        .client
        .get(url)
        .bearer_auth(&token)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    assert_eq!(
        header("content-disposition"),
        "attachment; filename=\"report.html\""
    );
    assert!(
        header("content-security-policy").starts_with("default-src 'none'; style-src 'sha256-")
    );
    assert_eq!(answer.text().await.unwrap(), html);

    let both = "/api/v1/projects/default/report";
    let both = server.call(&token, Method::GET, both, None).await;
    let both = both.body.as_str().unwrap();
    assert!(both.contains("4.13.0") && both.contains("of 2 sessions"));
    let unfit = "/api/v1/projects/default/report?page=Cart";
    let unfit = server.call(&token, Method::GET, unfit, None).await;
    assert_eq!(unfit.outcome(), (422, "question_unfit".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_applies_the_rules_of_the_project() {
    let session = Uuid::new_v4();
    let server = stored(&[run(session)]).await;
    let token = server.token("editor --project default").await;
    let rules = json!({"expected_revision": 0, "rules": "built_in = true\n[[rule]]\nmatch = \"com.example.\"\nmeans = \"in_app\"\nowner = \"team-cart\"\n"});
    let saved = server
        .call(
            &token,
            Method::PUT,
            "/api/v1/projects/default/rules",
            Some(rules),
        )
        .await;
    assert_eq!(saved.status, 201, "{}", saved.body);
    let filter = format!("session_id={session}");
    let html = text(
        &export(
            &server,
            &[&["report", "--filter", &filter][..], &PERIOD[..]].concat(),
        )
        .await,
    );
    assert!(html.contains("team-cart"));
}

/// Returns the events of a batch in the line format of `unjank::ReportFile`.
fn report_file(batch: &Value) -> String {
    let lists = [
        ("span", "spans"),
        ("frame_window", "frame_windows"),
        ("jank", "janks"),
        ("traffic", "traffic"),
        ("page_load", "page_loads"),
        ("metric", "metrics"),
        ("app_start", "app_starts"),
        ("recomposition", "recompositions"),
    ];
    let mut lines: Vec<Value> = [("resource", "resource"), ("sdk_health", "sdk_health")]
        .iter()
        .map(|(signal, name)| json!({"signal": signal, "event": batch[name]}))
        .collect();
    for (signal, list) in lists {
        let events = batch[list].as_array().unwrap().iter();
        lines.extend(events.map(|event| json!({"signal": signal, "event": event})));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

async fn export_of_file(file: &Path, more: &[&str]) -> Output {
    let mut command = tokio::process::Command::new(UNJANK);
    command.args(["export", "report", "--file"]).arg(file);
    command.args(more).output().await.unwrap()
}

#[tokio::test]
async fn a_report_of_a_file_needs_no_server_and_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.jsonl");
    std::fs::write(
        &file,
        report_file(&run(Uuid::nil())) + "{\"signal\":\"span\",\"ev",
    )
    .unwrap();
    let html = text(&export_of_file(&file, &[]).await);
    assert_contains_run(&html);
    assert!(html.contains("1 line could not be read"));

    let rules = folder.path().join("rules.toml");
    std::fs::write(
        &rules,
        "[[rule]]\nmatch = \"com.google.\"\nmeans = \"in_app\"\nowner = \"team-json\"\n",
    )
    .unwrap();
    let by_rules = export_of_file(&file, &["--rules", rules.to_str().unwrap()]).await;
    assert!(text(&by_rules).contains("team-json"));

    let page = folder.path().join("run.html");
    let page = ["--output", page.to_str().unwrap()];
    assert_eq!(text(&export_of_file(&file, &page).await), "");
    assert!(refusal(&export_of_file(&file, &page).await).contains("--force"));
    let forced = [&page[..], &["--force"]].concat();
    assert_eq!(text(&export_of_file(&file, &forced).await), "");
    assert_eq!(std::fs::read_to_string(page[1]).unwrap(), html);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);

    std::fs::write(&file, "no report\n").unwrap();
    assert!(refusal(&export_of_file(&file, &[]).await).contains("holds no event (1 lines"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_of_several_blocks_contains_all_rows() {
    let mut batches: Vec<Value> = (0..20).map(|_| crate::server::spans(3_500)).collect();
    batches[0]["spans"][0]["name"] = json!("=1+1");
    let server = stored(&batches).await;
    let csv = text(&export(&server, &[&["csv", "spans"][..], &PERIOD[..]].concat()).await);
    assert_eq!(csv.lines().count(), 70_001);
    let different: BTreeSet<_> = csv.lines().collect();
    assert_eq!(different.len(), 70_001);
    assert!(csv.starts_with("\"project\",\"app_id\""));
    let formula = ["csv", "spans", "--filter", "name==1+1"];
    let formula = text(&export(&server, &[&formula[..], &PERIOD[..]].concat()).await);
    assert_eq!(formula.lines().count(), 2);
    assert!(formula.contains("\"'=1+1\""));
    let few = ["csv", "spans", "--limit", "5"];
    let few = text(&export(&server, &[&few[..], &PERIOD[..]].concat()).await);
    assert_eq!(few.lines().count(), 6);

    let file = server.data_dir().join("none.csv");
    let none = [
        "csv",
        "spans",
        "--filter",
        "name=none",
        "--output",
        file.to_str().unwrap(),
    ];
    let none = refusal(&export(&server, &[&none[..], &PERIOD[..]].concat()).await);
    assert!(none.contains("no spans match") && !file.exists());
    let unknown = refusal(&export(&server, &["csv", "crashes"]).await);
    assert!(unknown.contains("use one of spans, frame_windows"));
    let dimension = refusal(&export(&server, &["csv", "spans", "--filter", "colour=red"]).await);
    assert!(dimension.contains("they have name, kind"), "{dimension}");
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_and_stacks_are_exported_in_the_formats_of_viewers() {
    let mut batch = run(Uuid::new_v4());
    let trace = Uuid::new_v4().simple().to_string();
    let spans = (0..50_u32).rev().map(|number| {
        let mut span = span();
        span["trace_id"] = json!(trace);
        span["start"] = json!(format!("2026-11-20T11:59:{number:02}Z"));
        span["thread"] = json!(if number % 2 == 0 { "main" } else { "io" });
        span
    });
    batch["spans"] = spans.collect();
    batch["janks"][0]["stack"][1]["function"] = json!("pay\r\u{2028}now");
    let server = stored(&[batch]).await;
    let chrome = text(&export(&server, &["trace", &trace]).await);
    let chrome: Value = serde_json::from_str(&chrome).unwrap();
    let events = chrome["traceEvents"].as_array().unwrap();
    let of_kind = |kind: &'static str| events.iter().filter(move |event| event["ph"] == kind);
    let names: Vec<_> = of_kind("M")
        .map(|event| event["args"]["name"].clone())
        .collect();
    assert_eq!(names[1..], [json!("io"), json!("main")]);
    let times: Vec<i64> = of_kind("X")
        .map(|event| event["ts"].as_i64().unwrap())
        .collect();
    assert!(times.len() == 50 && times.is_sorted());
    assert!(
        of_kind("X")
            .all(|event| event["dur"].is_u64() && event["pid"] == 1 && event["tid"].is_u64())
    );
    let none = refusal(&export(&server, &["trace", &Uuid::nil().simple().to_string()]).await);
    assert!(none.contains("has no trace 0000"));

    let folded = text(&export(&server, &[&["stacks"][..], &PERIOD[..]].concat()).await);
    assert_eq!(
        folded,
        "com.example.Cart.pay  now;com.google.gson.Gson.toJson 5678\n"
    );
    let speedscope = ["stacks", "--format", "speedscope"];
    let speedscope = text(&export(&server, &[&speedscope[..], &PERIOD[..]].concat()).await);
    let speedscope: Value = serde_json::from_str(&speedscope).unwrap();
    assert_eq!(speedscope["profiles"][0]["weights"], json!([5_678.0]));
    let none = ["stacks", "--filter", "page=None"];
    assert!(
        refusal(&export(&server, &[&none[..], &PERIOD[..]].concat()).await)
            .contains("no janks match")
    );
    assert!(refusal(&export(&server, &["report"]).await).contains("select a run"));
}
