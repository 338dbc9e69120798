//! `unjank::set_monitor`: the app switches monitors at run time, against the settings of the server and its own.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unjank::{AppStartKind, LaunchKind, MainLoop, Mode, Monitor, set_monitor};

use crate::collector::Running;

fn count(running: &Running, signal: &str) -> usize {
    running.flush();
    running.collector.events(signal).len()
}

fn everything() -> Value {
    json!({"sampling": {"session_rate": 1.0, "metrics": 1.0, "spans": {"default": 1.0}}})
}

#[test]
fn each_signal_is_switched_off_and_on() {
    let running = Running::start();
    let cases: [(Monitor<'_>, &str, fn()); 7] = [
        (Monitor::Spans, "spans", || unjank::span("checkout").end()),
        (Monitor::Frames, "frame_windows", || {
            unjank::frame_lasting(Duration::from_millis(9));
        }),
        (Monitor::PageLoads, "page_loads", || {
            unjank::page_load("Cart", LaunchKind::Warm).final_draw();
        }),
        (Monitor::Traffic, "traffic", || {
            unjank::traffic(unjank::Transferred::default());
        }),
        (Monitor::AppStarts, "app_starts", || {
            unjank::app_start(AppStartKind::Cold).finish();
        }),
        (Monitor::Recompositions, "recompositions", || {
            unjank::redrawn("CartList", "");
        }),
        (Monitor::Metrics, "metrics", || unjank::metric("m", 1.0)),
    ];
    for (monitor, signal, record) in cases {
        set_monitor(monitor, false);
        record();
        assert_eq!(count(&running, signal), 0, "{signal} is off");
        set_monitor(monitor, true);
        record();
        assert_eq!(count(&running, signal), 1, "{signal} is on");
    }
}

#[test]
fn a_switch_survives_new_settings_of_the_server() {
    let running = Running::with(|config| config);
    set_monitor(Monitor::Spans, false);
    running.learns(everything());
    unjank::span("off").end();
    assert_eq!(count(&running, "spans"), 0);
    set_monitor(Monitor::Spans, true);
    unjank::span("on").end();
    assert_eq!(count(&running, "spans"), 1);
    // `true` only undoes `false`: the server decides how much is kept.
    running.learns(json!({"sampling": {"session_rate": 1.0, "spans": {"default": 0.0}}}));
    set_monitor(Monitor::Spans, true);
    unjank::span("not sampled").end();
    assert_eq!(count(&running, "spans"), 1);
}

#[test]
fn a_named_monitor_is_switched_whatever_the_settings_name() {
    let running = Running::with(|config| config);
    running.learns(everything());
    let sample = || {
        unjank::sample("thermal", "thermal_headroom", 0.7);
        count(&running, "metrics")
    };
    assert_eq!(sample(), 0, "the settings do not name it");
    set_monitor(Monitor::Named("thermal"), true);
    assert_eq!(sample(), 1);
    running.learns(everything());
    assert_eq!(sample(), 2, "the switch survives new settings");
    set_monitor(Monitor::Named("thermal"), false);
    let mut named = everything();
    named["monitors"] = json!({"thermal": {"interval_ms": 1_000}});
    running.learns(named);
    assert_eq!(sample(), 2, "the switch wins over the settings");
    set_monitor(Monitor::Named("thermal"), true);
    assert_eq!(sample(), 3);
}

#[test]
fn a_switch_wins_over_local_settings() {
    let running = Running::with(|config| {
        let local = json!({"monitors": {"thermal": {"interval_ms": 1_000}}});
        config
            .mode(Mode::Test)
            .local_settings(local)
            .local_wins(true)
    });
    set_monitor(Monitor::Named("thermal"), false);
    unjank::sample("thermal", "thermal_headroom", 0.7);
    assert_eq!(count(&running, "metrics"), 0);
}

#[test]
fn stalls_that_are_switched_off_take_no_stack() {
    let running = Running::with(|config| {
        let strategy = json!([{"threshold_ms": 200, "count": 1, "period_ms": 0}]);
        config
            .mode(Mode::Test)
            .local_settings(json!({"jank": {"strategies": strategy}, "monitors": {}}))
            .local_wins(true)
    });
    let main_loop = MainLoop::of_this_thread();
    let stall = || {
        main_loop.begin();
        std::thread::sleep(Duration::from_millis(400));
        main_loop.end();
    };
    set_monitor(Monitor::Stalls, false);
    running.flush();
    stall();
    assert_eq!(count(&running, "janks"), 0);
    set_monitor(Monitor::Stalls, true);
    let begun = Instant::now();
    // The watchdog looks rarely while stalls are off.
    while count(&running, "janks") == 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "no stall");
        stall();
    }
}

#[test]
fn nothing_is_switched_before_the_start() {
    let mut running = Running::start();
    drop(running.guard.take());
    set_monitor(Monitor::Spans, false);
    running.restart(|config| config.mode(Mode::Test));
    unjank::span("checkout").end();
    assert_eq!(count(&running, "spans"), 1);
}
