//! Measurements: which ones are on without a server, and what their numbers mean.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unjank::{MainLoop, MetricProvider, Mode};

use crate::collector::Running;

struct Battery;

impl MetricProvider for Battery {
    fn name(&self) -> &'static str {
        "battery"
    }

    fn sample(&mut self, report: &mut dyn FnMut(&'static str, f64)) {
        report("battery_percent", 80.0);
    }
}

fn metrics(running: &Running, name: &str) -> Vec<f64> {
    running.flush();
    let metrics = running.collector.events("metrics");
    let named = metrics.iter().filter(|metric| metric["name"] == name);
    named
        .filter_map(|metric| metric["value"].as_f64())
        .collect()
}

#[test]
fn the_monitors_of_the_app_are_on_in_tests_and_off_in_production_until_the_server_names_them() {
    let running = Running::with(|config| config.mode(Mode::Test).monitor(Battery));
    assert_eq!(metrics(&running, "battery_percent"), [80.0]);
    drop(running);
    let running = Running::with(|config| config.monitor(Battery));
    assert!(metrics(&running, "battery_percent").is_empty());
}

#[test]
fn frames_per_second_leave_out_the_time_in_which_no_frame_was_wanted() {
    let monitors = json!({"monitors": {"fps": {"interval_ms": 100}}});
    let running = Running::with(|config| {
        config
            .mode(Mode::Test)
            .local_settings(monitors)
            .local_wins(true)
    });
    // The app draws half a second of perfect frames, and then rests.
    let begun = Instant::now();
    for frame in 0..30 {
        let vsync = begun + Duration::from_secs(1) * frame / 60;
        unjank::frame(vsync, vsync + Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(150));
    let fps = metrics(&running, "fps");
    assert!(fps.iter().all(|fps| (59.0..61.0).contains(fps)), "{fps:?}");
    assert!(!fps.is_empty());
}

#[test]
fn a_block_between_ticks_is_dropped_frames() {
    let running = Running::start();
    let begun = Instant::now();
    for frame in [0, 1, 2, 140, 141] {
        unjank::frame_tick(begun + Duration::from_secs(1) * frame / 60);
    }
    unjank::pause_ticks();
    unjank::set_page("next");
    running.flush();
    let window = &running.collector.events("frame_windows")[0];
    assert_eq!(
        (&window["frames_drawn"], &window["frames_dropped"]),
        (&json!(4), &json!(137))
    );
    assert!(window["jank_ms"].as_u64() > Some(2_200), "{window}");
}

#[test]
fn the_log_of_a_stall_ends_where_the_stall_begins() {
    let running = Running::start();
    running.learns(
        json!({"jank": {"strategies": [{"threshold_ms": 100, "count": 1, "period_ms": 0}]}}),
    );
    let main_loop = MainLoop::of_this_thread();
    unjank::breadcrumb("before");
    std::thread::sleep(Duration::from_millis(300));
    main_loop.begin();
    std::thread::sleep(Duration::from_millis(200));
    unjank::breadcrumb("during");
    std::thread::sleep(Duration::from_millis(100));
    main_loop.end();
    unjank::breadcrumb("after");
    running.flush();
    let janks = running.collector.events("janks");
    let log: Vec<&Value> = janks[0]["run_log"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| &line["message"])
        .collect();
    assert_eq!(log, ["before"], "{janks:?}");
}

#[test]
fn a_page_without_a_server_ends_with_the_draw_after_its_last_request() {
    let pages = json!({"pages": [{"page": "MainActivity", "api": ["/home/head"]}]});
    let running = Running::with(|config| {
        config
            .mode(Mode::Test)
            .local_settings(pages)
            .local_wins(true)
    });
    let mut page = unjank::page_load("MainActivity", unjank::LaunchKind::Cold);
    let request = unjank::request("/home/head");
    page.draw();
    std::thread::sleep(Duration::from_millis(60));
    page.draw();
    request.end(200);
    page.draw();
    running.flush();
    let loads = running.collector.events("page_loads");
    assert_eq!(loads.len(), 1);
    assert!(loads[0]["total_ms"].as_u64() >= Some(60), "{loads:?}");
}
