//! Every key of the remote configuration, from the server's response to its effect in the running app. The app learns of a change
//! from a receipt.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unjank::{LaunchKind, MainLoop, Network, Transferred};

use crate::collector::Running;

/// Starts in production mode, where the server decides, with a default configuration.
fn running() -> Running {
    let running = Running::with(|config| config);
    running.learns(json!({}));
    running
}

fn arrived(running: &Running, signal: &str) -> Vec<Value> {
    running.flush();
    running.collector.events(signal)
}

fn request(host: &str, mime_type: &str) {
    unjank::traffic(Transferred {
        host,
        mime_type,
        tx_bytes: 1,
        rx_bytes: 1,
        answered: true,
    });
}

fn sources(running: &Running) -> Vec<String> {
    let rows = arrived(running, "traffic").into_iter();
    rows.map(|row| row["source"].as_str().unwrap().to_owned())
        .collect()
}

/// Blocks the main loop for one message.
fn stall(main_loop: &MainLoop, millis: u64) {
    main_loop.begin();
    std::thread::sleep(Duration::from_millis(millis));
    main_loop.end();
    std::thread::sleep(Duration::from_millis(600));
}

/// Returns as many frames as requested.
struct Deep;

impl unjank::StackSource for Deep {
    fn capture(
        &self,
        depth: usize,
    ) -> Result<Vec<unjank::protocol::Frame<'static>>, unjank::CaptureError> {
        Ok(vec![unjank::protocol::Frame::default(); depth])
    }
}

fn janks(running: &Running) -> Vec<Value> {
    arrived(running, "janks")
}

/// Draws frames that each take this many budgets of 60 Hz.
fn frames(budgets: &[u32]) {
    let budget = Duration::from_nanos(16_666_667);
    let mut vsync = Instant::now();
    for count in budgets {
        unjank::frame(vsync, vsync + budget * *count - Duration::from_millis(1));
        vsync += budget * *count;
    }
}

#[test]
fn enabled() {
    let running = running();
    running.learns(json!({"enabled": false}));
    assert!(!unjank::span("a").is_recorded());
    unjank::metric("m", 1.0);
    assert!(arrived(&running, "metrics").is_empty());
}

#[test]
fn revision() {
    let running = running();
    running.learns(json!({"sampling": {"metrics": 1.0}}));
    unjank::metric("m", 1.0);
    running.flush();
    let batches = running.collector.batches();
    assert_eq!(batches.last().unwrap()["config_revision"], 3);
}

#[test]
fn poll_interval_s() {
    let running = running();
    // The minimum; the previous poll returned 900.
    running.learns(json!({"poll_interval_s": 30}));
    let polls = running.collector.polls();
    std::thread::sleep(Duration::from_millis(50));
    running.flush();
    assert_eq!(running.collector.polls(), polls, "polled too early");
}

#[test]
fn sampling_session_rate() {
    let running = running();
    running.learns(json!({"sampling": {"session_rate": 0.0, "spans": {"default": 1.0}}}));
    assert!(!unjank::span("a").is_recorded());
    // A session that sends nothing gets no receipts, so it learns of the next change from its next poll.
}

#[test]
fn sampling_spans_default() {
    let running = running();
    running.learns(json!({"sampling": {"spans": {"default": 1.0}}}));
    assert!(unjank::span("a").is_recorded());
    running.learns(json!({"sampling": {"spans": {"default": 0.0}}}));
    assert!(!unjank::span("a").is_recorded());
}

#[test]
fn sampling_spans_overrides() {
    let running = running();
    running.learns(json!({"sampling": {"spans": {"default": 0.0, "overrides": [{"name": "check*", "rate": 1.0}]}}}));
    assert!(unjank::span("checkout").is_recorded());
    assert!(!unjank::span("search").is_recorded());
}

#[test]
fn sampling_frame_windows() {
    let running = running();
    running.learns(json!({"sampling": {"frame_windows": 0.0}}));
    frames(&[1, 6, 1]);
    assert!(arrived(&running, "frame_windows").is_empty());
    running.learns(json!({"sampling": {"frame_windows": 1.0}}));
    frames(&[1, 6, 1]);
    assert_eq!(arrived(&running, "frame_windows").len(), 1);
}

#[test]
fn sampling_janks() {
    let running = running();
    let strategies = json!([{"threshold_ms": 30, "count": 1, "period_ms": 0}]);
    running.learns(json!({"jank": {"strategies": strategies}, "sampling": {"janks": 0.0}}));
    let main_loop = MainLoop::with_stacks(Deep);
    std::thread::sleep(Duration::from_millis(600));
    stall(&main_loop, 100);
    assert!(janks(&running).is_empty());
    running.learns(json!({"jank": {"strategies": strategies}, "sampling": {"janks": 1.0}}));
    std::thread::sleep(Duration::from_millis(600));
    stall(&main_loop, 100);
    assert_eq!(janks(&running).len(), 1);
}

#[test]
fn sampling_page_loads() {
    let running = running();
    for (rate, expected) in [(0.0, 0), (1.0, 1)] {
        running.learns(json!({"sampling": {"page_loads": rate}}));
        unjank::page_load("Main", LaunchKind::Cold).final_draw();
        assert_eq!(arrived(&running, "page_loads").len(), expected);
    }
}

#[test]
fn sampling_metrics() {
    let running = running();
    for (rate, expected) in [(0.0, 0), (1.0, 1)] {
        running.learns(json!({"sampling": {"metrics": rate}}));
        unjank::metric("m", 1.0);
        assert_eq!(arrived(&running, "metrics").len(), expected);
    }
}

#[test]
fn sampling_recompositions() {
    let running = running();
    for (rate, expected) in [(0.0, 0), (1.0, 1)] {
        running.learns(json!({"sampling": {"recompositions": rate}}));
        unjank::redrawn("CartList", "items");
        assert_eq!(arrived(&running, "recompositions").len(), expected);
    }
}

#[test]
fn tracing() {
    let running = running();
    let all = json!({"spans": {"default": 1.0}});
    running.learns(json!({"sampling": all, "tracing": {"enabled": false}}));
    assert!(!unjank::span("com.example.pay").is_recorded());
    running.learns(json!({"sampling": all, "tracing": {"allow": ["com\\.example\\..*"]}}));
    assert!(unjank::span("com.example.pay").is_recorded());
    assert!(!unjank::span("org.example.pay").is_recorded());
    running.learns(json!({"sampling": all, "tracing": {"deny": [".*pay"]}}));
    assert!(!unjank::span("com.example.pay").is_recorded());
    assert!(unjank::span("com.example.search").is_recorded());
}

#[unjank::traced(tag = "startup")]
fn boot() {}

#[unjank::traced]
fn untagged() {}

#[test]
fn tracing_tags() {
    let running = running();
    running
        .learns(json!({"sampling": {"spans": {"default": 1.0}}, "tracing": {"tags": ["startup"]}}));
    boot();
    untagged();
    let names: Vec<Value> = arrived(&running, "spans")
        .into_iter()
        .map(|span| span["code"]["function"].clone())
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(names[0].as_str().unwrap().starts_with("boot"));
}

#[test]
fn jank_strategies_and_anr_ms_and_stack_depth() {
    let running = running();
    running.learns(json!({"sampling": {"janks": 1.0}, "jank": {
        "strategies": [{"threshold_ms": 40, "count": 1, "period_ms": 0}], "anr_ms": 1000, "stack_depth": 7}}));
    let main_loop = MainLoop::with_stacks(Deep);
    std::thread::sleep(Duration::from_millis(600));
    stall(&main_loop, 10);
    assert!(janks(&running).is_empty());
    stall(&main_loop, 120);
    stall(&main_loop, 1_100);
    let janks = janks(&running);
    let kinds: Vec<&Value> = janks.iter().map(|jank| &jank["kind"]).collect();
    assert_eq!(kinds, ["jank", "anr"]);
    assert_eq!(janks[0]["strategy"]["threshold_ms"], 40);
    assert_eq!(janks[0]["stack"].as_array().unwrap().len(), 7);
}

#[test]
fn jank_start_ms_and_overrides() {
    let running = running();
    let strategies = |ms: u32| json!([{"threshold_ms": ms, "count": 1, "period_ms": 0}]);
    running.learns(
        json!({"sampling": {"janks": 1.0}, "jank": {"start_ms": 0, "strategies": [], "overrides": [
        {"phase": "start", "strategies": strategies(16)},
        {"page": "Check*", "phase": "later", "strategies": strategies(40)}]}}),
    );
    let main_loop = MainLoop::with_stacks(Deep);
    std::thread::sleep(Duration::from_millis(600));
    unjank::set_page("Feed");
    stall(&main_loop, 120);
    unjank::set_page("Checkout");
    stall(&main_loop, 120);
    let found = janks(&running);
    let thresholds: Vec<&Value> = found
        .iter()
        .map(|jank| &jank["strategy"]["threshold_ms"])
        .collect();
    assert_eq!(thresholds, [40]);
    assert_eq!(found[0]["page"], "Checkout");
    // This process is younger than ten minutes.
    running.learns(json!({"sampling": {"janks": 1.0}, "jank": {"start_ms": 600_000, "strategies": [], "overrides": [
        {"page": "Check*", "phase": "later", "strategies": strategies(40)},
        {"phase": "start", "strategies": strategies(50)}]}}));
    std::thread::sleep(Duration::from_millis(600));
    stall(&main_loop, 120);
    assert_eq!(janks(&running)[1]["strategy"]["threshold_ms"], 50);
}

#[test]
fn jank_max_stacks_per_session() {
    let running = running();
    running.learns(json!({"sampling": {"janks": 1.0}, "jank": {
        "strategies": [{"threshold_ms": 40, "count": 1, "period_ms": 0}], "max_stacks_per_session": 0}}));
    let main_loop = MainLoop::with_stacks(Deep);
    std::thread::sleep(Duration::from_millis(600));
    stall(&main_loop, 120);
    let janks = janks(&running);
    assert_eq!(janks.len(), 1);
    assert!(janks[0]["stack"].as_array().is_none_or(Vec::is_empty));
    let off = "stacks are switched off: jank.max_stacks_per_session is 0";
    assert_eq!(janks[0]["stack_missing"], off);
}

#[test]
fn frames_window_ms() {
    let running = running();
    running.learns(json!({"sampling": {"frame_windows": 1.0}, "frames": {"window_ms": 1000}}));
    frames(&[1; 150]);
    assert_eq!(arrived(&running, "frame_windows").len(), 3);
}

#[test]
fn frames_enter_dropped_and_leave_drawn() {
    let running = running();
    let jank_ms = |enter: u32, leave: u32| {
        running.learns(json!({"sampling": {"frame_windows": 1.0}, "frames": {"enter_dropped": enter, "leave_drawn": leave}}));
        frames(&[1, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        // Let these frames end before the next ones.
        std::thread::sleep(Duration::from_millis(400));
        let windows = arrived(&running, "frame_windows");
        windows.last().unwrap()["jank_ms"].as_u64().unwrap()
    };
    let (early, late, never) = (jank_ms(1, 1), jank_ms(1, 8), jank_ms(900, 1));
    assert!(early > 0 && late > early, "{early} {late}");
    assert_eq!(never, 0);
}

#[test]
fn monitors() {
    let running = running();
    unjank::sample("thermal", "thermal_headroom", 80.0);
    running.learns(json!({"sampling": {"metrics": 1.0}, "monitors": {"memory": {"interval_ms": 100}, "thermal": {"interval_ms": 100}}}));
    unjank::sample("thermal", "thermal_headroom", 81.0);
    std::thread::sleep(Duration::from_millis(250));
    let metrics = arrived(&running, "metrics");
    let count = |name: &str| {
        metrics
            .iter()
            .filter(|metric| metric["name"] == name)
            .count()
    };
    assert!(count("memory_used_bytes") >= 2, "{metrics:?}");
    assert_eq!(count("thermal_headroom"), 1);
    assert_eq!(count("cpu_percent"), 0);
}

#[test]
fn pages() {
    let running = running();
    running.learns(
        json!({"sampling": {"page_loads": 1.0}, "pages": [{"page": "Main", "api": ["/home"]}]}),
    );
    let page = unjank::page_load("Main", LaunchKind::Cold);
    unjank::request("/other").end(200);
    unjank::request("/home").end(200);
    page.final_draw();
    let loads = arrived(&running, "page_loads");
    let requests = loads[0]["requests"].as_array().unwrap();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0]["path"], "/home");
    assert!(loads[0]["t2_ms"].is_i64());
}

#[test]
fn traffic_sources() {
    let running = running();
    running.learns(
        json!({"traffic": {"sources": [{"source": "cdn", "hosts": ["*.examplecdn.net"]}]}}),
    );
    request("img.examplecdn.net", "image/png");
    assert!(sources(&running).contains(&"cdn".to_owned()));
}

#[test]
fn traffic_web_mime_types() {
    let running = running();
    running.learns(json!({"traffic": {"web_mime_types": ["text/x-page"]}}));
    request("example.com", "text/html");
    request("example.com", "text/x-page");
    let sources = sources(&running);
    assert_eq!(sources.iter().filter(|source| *source == "web").count(), 1);
}

#[test]
fn budget() {
    let running = running();
    running.learns(json!({"sampling": {"metrics": 1.0}, "budget": {"metrics": 50}}));
    (0..1_000).for_each(|_| unjank::metric("m", 1.0));
    let metrics = arrived(&running, "metrics");
    // The weights of the events that pass add up to the number of all.
    let weight: f64 = metrics
        .iter()
        .map(|metric| 1.0 / metric["sample_rate"].as_f64().unwrap_or(1.0))
        .sum();
    assert!((60..400).contains(&metrics.len()), "{}", metrics.len());
    assert!((300.0..3_000.0).contains(&weight), "{weight}");
}

#[test]
fn upload_max_batch_events() {
    let running = running();
    running.learns(json!({"sampling": {"metrics": 1.0}, "upload": {"max_batch_events": 10}}));
    for _ in 0..25 {
        unjank::metric("m", 1.0);
    }
    running.flush();
    let batches = running.collector.batches();
    let sizes = batches
        .iter()
        .filter_map(|batch| Some(batch["metrics"].as_array()?.len()));
    assert_eq!(sizes.collect::<Vec<_>>(), [10, 10, 5]);
}

#[test]
fn upload_interval_s() {
    let running = running();
    running.learns(json!({"sampling": {"metrics": 1.0}, "upload": {"interval_s": 1}}));
    // The flush in `learns` was the previous upload.
    unjank::metric("m", 1.0);
    let begun = Instant::now();
    while running.collector.events("metrics").is_empty() {
        assert!(
            begun.elapsed() < Duration::from_secs(15),
            "no upload without a flush"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn upload_max_queue_bytes() {
    let running = running();
    running.learns(json!({"sampling": {"metrics": 1.0}, "upload": {"max_queue_bytes": 1}}));
    running
        .collector
        .answer(|_| Err(unjank::TransportError("no way".to_owned())));
    unjank::metric("m", 1.0);
    running.flush();
    running
        .collector
        .answer(|batch| Ok(crate::collector::receipt(batch)));
    running.flush();
    assert!(running.collector.events("metrics").is_empty());
}

#[test]
fn upload_wifi_only() {
    let running = running();
    running.learns(json!({"sampling": {"metrics": 1.0}, "upload": {"wifi_only": true}}));
    unjank::set_network(Network::Cellular4g);
    unjank::metric("m", 1.0);
    assert!(arrived(&running, "metrics").is_empty());
    unjank::set_network(Network::Wifi);
    assert_eq!(arrived(&running, "metrics").len(), 1);
}

#[test]
fn toggles() {
    let running = running();
    running.learns(json!({"toggles": {"new_cart": {"color": "green"}}}));
    assert_eq!(unjank::toggle("new_cart"), Some(json!({"color": "green"})));
    assert_eq!(unjank::toggle("old_cart"), None);
}
