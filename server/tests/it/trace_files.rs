//! Traces as files for Perfetto: tracks of threads, and lanes for stalls and manual spans.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::exports::{export, run, stored, text};
use crate::server::span;

/// Checks Perfetto's rule: of two events of a track, one is inside the other, or they are beside each other.
fn assert_nested(chrome: &Value) {
    let events = chrome["traceEvents"].as_array().unwrap();
    let bars: Vec<(u64, i64, i64)> = events
        .iter()
        .filter(|event| event["ph"] == "X")
        .map(|event| {
            let number = |name: &str| event[name].as_i64().unwrap();
            let (start, end) = (number("ts"), number("ts") + number("dur"));
            (event["tid"].as_u64().unwrap(), start, end)
        })
        .collect();
    for one in &bars {
        for other in &bars {
            let across = one.1 < other.1 && other.1 < one.2 && one.2 < other.2;
            assert!(one.0 != other.0 || !across, "{one:?} and {other:?} overlap");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_spans_of_a_thread_are_exported_to_tracks_of_their_own() {
    let mut batch = run(Uuid::new_v4());
    let trace = Uuid::new_v4().simple().to_string();
    // Start and duration in milliseconds: a parent, children that overlap, one that outlives its parent, and one of no length.
    let times = [
        (0, 1_000),
        (100, 500),
        (400, 500),
        (900, 300),
        (450, 10),
        (500, 0),
        (100, 500),
    ];
    let spans = times.iter().enumerate().flat_map(|(place, (start, long))| {
        ["main", "tokio-1"].map(|thread| {
            let mut span = span();
            span["trace_id"] = json!(trace);
            span["name"] = json!(format!("{thread} {place}"));
            span["thread"] = json!(thread);
            span["start"] = json!(format!(
                "2026-11-20T11:59:{:06.3}Z",
                f64::from(*start) / 1e3
            ));
            span["duration_us"] = json!(long * 1_000);
            span
        })
    });
    batch["spans"] = spans.collect();
    // A second process, whose span begins before the first one ends.
    let mut other = run(Uuid::new_v4());
    other["resource"]["app_version"] = json!("4.13.0");
    other["resource"]["device_model"] = json!("");
    other["spans"] = json!([batch["spans"][2]]);
    other["spans"][0]["span_id"] = span()["span_id"].clone();
    let server = stored(&[batch, other]).await;
    let chrome = text(&export(&server, &["trace", &trace]).await);
    let chrome: Value = serde_json::from_str(&chrome).unwrap();
    assert_nested(&chrome);
    let events = chrome["traceEvents"].as_array().unwrap();
    let of_kind = |kind: &'static str| events.iter().filter(move |event| event["ph"] == kind);
    assert_eq!(of_kind("X").count(), 15);
    let names: Vec<_> = of_kind("M")
        .map(|event| (event["pid"].clone(), event["args"]["name"].clone()))
        .collect();
    let expected = [
        (1, "com.example.shop 4.12.0 on Pixel <8>"),
        (1, "main"),
        (1, "main (2)"),
        (1, "tokio-1"),
        (1, "tokio-1 (2)"),
        (2, "com.example.shop 4.13.0"),
        (2, "main"),
    ];
    assert_eq!(names, expected.map(|(pid, name)| (json!(pid), json!(name))));
    for event in of_kind("X") {
        let track = of_kind("M")
            .find(|name| (&name["pid"], &name["tid"]) == (&event["pid"], &event["tid"]))
            .unwrap();
        let (name, track) = (
            event["name"].as_str().unwrap(),
            track["args"]["name"].as_str().unwrap(),
        );
        assert_eq!(name.split(' ').next(), track.split(' ').next());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exported_trace_has_lanes_for_stalls_and_manual_spans() {
    let mut batch = run(Uuid::new_v4());
    let trace = Uuid::new_v4().simple().to_string();
    batch["spans"] = [("manual", 2_000_000), ("method", 1_500_000)]
        .map(|(kind, long)| {
            let mut span = span();
            (span["trace_id"], span["kind"]) = (json!(trace), json!(kind));
            span["start"] = json!("2026-11-20T11:59:52Z");
            (span["duration_us"], span["thread"]) = (json!(long), json!("main"));
            span
        })
        .into_iter()
        .collect();
    // The first began before the trace, the second ends after both, and the last began after the trace.
    let janks = [("50", 5_678), ("53", 4_000), ("58", 1_000)].map(|(second, long)| {
        let mut jank = batch["janks"][0].clone();
        jank["start"] = json!(format!("2026-11-20T11:59:{second}Z"));
        jank["duration_ms"] = json!(long);
        jank
    });
    batch["janks"] = json!(janks);
    let server = stored(&[batch]).await;
    let chrome = text(&export(&server, &["trace", &trace]).await);
    let chrome: Value = serde_json::from_str(&chrome).unwrap();
    assert_nested(&chrome);
    let events = chrome["traceEvents"].as_array().unwrap();
    let of_kind = |kind: &'static str| events.iter().filter(move |event| event["ph"] == kind);
    let lanes: Vec<_> = of_kind("M").map(|event| &event["args"]["name"]).collect();
    let expected = ["main", "manual spans", "stalls", "stalls (2)"];
    assert_eq!(lanes[1..], expected);
    let bars: Vec<_> = of_kind("X")
        .map(|event| (event["cat"].as_str().unwrap(), event["tid"].as_u64()))
        .collect();
    assert_eq!(
        bars,
        [
            ("jank", Some(3)),
            ("manual", Some(1)),
            ("manual", Some(2)),
            ("method", Some(1)),
            ("jank", Some(4)),
        ]
    );
    let stall = of_kind("X").next().unwrap();
    assert_eq!(stall["args"]["stack"][0], "com.google.gson.Gson.toJson");
    assert_eq!(stall["dur"], 5_678_000);
    let token = server.token("viewer --project default").await;
    let path = format!("/api/v1/projects/default/traces/{trace}/chrome");
    let by_api = server.call(&token, Method::GET, &path, None).await;
    assert_eq!(by_api.body, chrome);
}
