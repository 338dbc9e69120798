//! Exports of recordings: the exact output for a small trace, and properties of any.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::{Value, json};
use unjank::export::{Recorder, chrome_trace, csv, report_to_chrome_trace, slowest};
use unjank::{Event, Reporter};

use crate::collector::Running;

/// Events borrow from their text, so it is leaked.
fn read<T: Deserialize<'static>>(json: &Value) -> T {
    serde_json::from_str(json.to_string().leak()).unwrap()
}

/// A span of trace 7. Times are in microseconds after noon.
fn span(id: u64, parent: Option<u64>, name: &str, (start, duration): (u32, i64)) -> Value {
    json!({
        "trace_id": format!("{:032x}", 7), "span_id": format!("{id:016x}"),
        "parent_span_id": parent.map(|id| format!("{id:016x}")),
        "name": name, "kind": "method", "start": format!("2026-11-20T12:00:00.{start:06}Z"), "duration_us": duration,
        "thread": "main", "on_main_thread": true, "page": "Cart",
        "code": {"class": "shop", "function": "f(&self, u8)", "file": "src/shop.rs", "line": 3},
    })
}

fn on_thread(mut span: Value, thread: &str) -> Value {
    span["thread"] = json!(thread);
    span["on_main_thread"] = json!(false);
    span
}

/// Two calls of `pay` in `checkout`, the second of which ends after it by rounding, and two overlapping spans on a worker.
fn small() -> Vec<Event> {
    let mut first = span(2, Some(1), "pay", (100, 200));
    first["attributes"] = json!({"items": "3"});
    first["events"] = json!([{"time": "2026-11-20T12:00:00.000150Z", "name": "validated"}]);
    let spans = [
        first,
        span(3, Some(1), "pay", (500, 501)),
        span(1, None, "checkout", (0, 1_000)),
        on_thread(
            span(4, Some(1), "fetch, then \"parse\"", (200, 400)),
            "worker",
        ),
        on_thread(span(5, None, "sync", (300, 900)), "worker"),
    ];
    let mut events: Vec<_> = spans.iter().map(|span| Event::Span(read(span))).collect();
    events.push(Event::Metric(read(&json!({
        "name": "memory_used_bytes", "time": "2026-11-20T12:00:00.000010Z", "value": 5.0,
    }))));
    events.push(Event::FrameWindow(read(&json!({
        "page": "Cart", "start": "2026-11-20T12:00:00.000020Z", "duration_ms": 1_000, "frames_drawn": 58, "frames_dropped": 2,
    }))));
    events.push(Event::Jank(read(&json!({
        "kind": "jank", "start": "2026-11-20T12:00:00.000030Z", "duration_ms": 2, "thread": "main",
        "stack": [{"class": "shop.Cart", "function": "pay", "file": "Cart.java", "line": 7}],
    }))));
    events
}

fn trace(events: &[Event]) -> String {
    let mut file = Vec::new();
    chrome_trace(events, &mut file).unwrap();
    String::from_utf8(file).unwrap()
}

#[test]
fn a_small_trace_is_written_in_full() {
    insta::assert_snapshot!(trace(&small()));
}

#[test]
fn the_stack_of_a_stall_is_written_demangled() {
    let stall = json!({
        "kind": "jank", "start": "2026-11-20T12:00:00Z", "duration_ms": 2, "thread": "main",
        "stack": [
            {"module": "shop", "function": "_ZN4shop4cart3pay17h0123456789abcdefE"},
            {"module": "shop", "function": "_RNvNtC4shop4main3run", "file": "src/main.rs", "line": 7},
            {"module": "libc.so.6", "function": "__libc_start_main"},
        ],
    });
    let trace: Value = serde_json::from_str(&trace(&[Event::Jank(read(&stall))])).unwrap();
    let entries = trace["traceEvents"].as_array().unwrap();
    let stall = entries.iter().find(|entry| entry["name"] == "jank");
    assert_eq!(
        stall.unwrap()["args"]["stack"],
        json!([
            "shop::cart::pay (:0)",
            "shop::main::run (src/main.rs:7)",
            "__libc_start_main (:0)"
        ])
    );
}

#[test]
fn a_small_table_is_written_in_full() {
    let mut file = Vec::new();
    csv(&small(), &mut file).unwrap();
    insta::assert_snapshot!(String::from_utf8(file).unwrap());
}

#[test]
fn a_small_summary_is_written_in_full() {
    insta::assert_snapshot!(slowest(&small(), 3));
}

#[test]
fn a_real_recording_exports_a_well_formed_trace() {
    let recorder = Recorder::new();
    let reporter = recorder.clone();
    let running = Running::with(|config| config.mode(unjank::Mode::Test).reporter(reporter));
    let outer = unjank::span("outer");
    let context = outer.context();
    let workers = (0..3).map(|number| {
        let worker = std::thread::Builder::new().name("worker".to_owned());
        let work = move || unjank::span_in(&context, format!("part {number}")).end();
        worker.spawn(work).unwrap()
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.join().unwrap();
    }
    drop(outer);
    running.flush();
    let folder = tempfile::tempdir().unwrap();
    let (json, table) = (
        folder.path().join("trace.json"),
        folder.path().join("spans.csv"),
    );
    recorder.chrome_trace(&json).unwrap();
    recorder.csv(&table).unwrap();
    assert_eq!(std::fs::read_to_string(table).unwrap().lines().count(), 5);
    let trace: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let entries = trace["traceEvents"].as_array().unwrap();
    let of = |kind: &'static str| entries.iter().filter(move |entry| entry["ph"] == kind);
    let tracks: HashMap<u64, &str> = of("M")
        .filter(|entry| entry["name"] == "thread_name")
        .map(|entry| {
            (
                entry["tid"].as_u64().unwrap(),
                entry["args"]["name"].as_str().unwrap(),
            )
        })
        .collect();
    let manual = of("X").filter(|entry| entry["cat"] == "manual_span");
    assert!(
        manual
            .clone()
            .all(|entry| tracks[&entry["tid"].as_u64().unwrap()] == "manual spans")
    );
    assert_eq!((of("X").count(), manual.count()), (8, 4));
    for entry in of("X").filter(|entry| entry["cat"] == "manual") {
        assert!(entry["ts"].is_u64() && entry["dur"].is_u64() && entry["pid"] == 1);
        let track = tracks[&entry["tid"].as_u64().unwrap()];
        let is_outer = entry["name"] == "outer";
        assert_eq!(is_outer, !track.starts_with("worker"), "{entry} on {track}");
    }
    let kinds: HashSet<_> = entries
        .iter()
        .map(|entry| entry["ph"].as_str().unwrap())
        .collect();
    assert!(kinds.is_subset(&HashSet::from(["M", "X", "C", "i"])));
}

#[test]
fn a_recorder_drops_the_oldest_events() {
    let recorder = Recorder::with_capacity(3);
    for event in small() {
        recorder.report(&event);
    }
    assert_eq!(recorder.events(), small().split_off(5));
    assert_eq!(recorder.forgotten(), 5);
    recorder.clear();
    assert_eq!((recorder.events().len(), recorder.forgotten()), (0, 0));
}

#[test]
fn a_cycle_of_parents_does_not_hang() {
    let spans = [span(1, Some(2), "a", (0, 5)), span(2, Some(1), "b", (0, 5))];
    let events: Vec<_> = spans.iter().map(|span| Event::Span(read(span))).collect();
    assert!(trace(&events).contains("\"b\""));
}

#[test]
fn the_file_of_a_run_becomes_the_trace_of_its_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let recorder = Recorder::new();
    let (also, file) = (
        recorder.clone(),
        unjank::ReportFile::create(path("run.jsonl")).unwrap(),
    );
    let running = Running::with(|config| {
        config
            .mode(unjank::Mode::Test)
            .offline(true)
            .reporter(also)
            .reporter(file)
    });
    {
        let mut order = unjank::span("order \"7\"");
        order.attribute("items", 3);
        order.event("validated");
        unjank::init_span("Cart").end();
    }
    unjank::metric("memory_used_bytes", 5.0);
    unjank::redrawn("Cart", "items");
    unjank::page_load("Cart", unjank::LaunchKind::Warm).final_draw();
    let begun = std::time::Instant::now();
    unjank::frame(begun, begun + std::time::Duration::from_millis(200));
    running.flush();
    drop(running);
    let mut report = std::fs::read_to_string(path("run.jsonl")).unwrap();
    assert!(report.contains("resource"));
    report.push_str("{\"signal\": \"span\", \"event\": {\"trace_i");
    std::fs::write(path("run.jsonl"), report).unwrap();
    let unreadable = report_to_chrome_trace(path("run.jsonl"), path("trace.json")).unwrap();
    assert_eq!(unreadable, 1, "a killed process leaves half a line");
    recorder.chrome_trace(path("recorded.json")).unwrap();
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    assert_eq!(read("trace.json"), read("recorded.json"));
    let trace: Value = serde_json::from_str(&read("trace.json")).unwrap();
    let entries = trace["traceEvents"].as_array().unwrap();
    let dropped = entries
        .iter()
        .find(|entry| entry["cat"] == "dropped_frames")
        .unwrap();
    assert_eq!(
        (&dropped["name"], &dropped["args"]["dropped"]),
        (&json!("Cart"), &json!(11))
    );
    for kind in [
        "manual",
        "manual_span",
        "init",
        "page_load",
        "metric",
        "recomposition",
    ] {
        assert!(
            entries.iter().any(|entry| entry["cat"] == kind),
            "{kind}: {trace}"
        );
    }
}
