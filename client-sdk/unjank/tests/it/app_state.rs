//! Changes between foreground and background, and the latency of inputs: what each metric measures, and when there is none.

use std::time::{Duration, Instant};

use serde_json::Value;
use unjank::MainLoop;

use crate::collector::Running;

fn metrics(running: &Running, name: &str) -> Vec<Value> {
    running.flush();
    let mut metrics = running.collector.events("metrics");
    metrics.retain(|metric| metric["name"] == name);
    metrics
}

fn values(running: &Running, name: &str) -> Vec<f64> {
    let metrics = metrics(running, name);
    let values = metrics.iter().map(|metric| metric["value"].as_f64());
    values.map(Option::unwrap).collect()
}

const STEP: Duration = Duration::from_millis(30);

#[test]
fn each_state_and_each_change_of_the_app_is_measured() {
    let begun = Instant::now();
    let running = Running::start();
    let main_loop = MainLoop::of_this_thread();
    main_loop.begin();
    unjank::set_foreground(true); // as it was: no change
    std::thread::sleep(STEP);
    unjank::set_foreground(false);
    std::thread::sleep(STEP);
    unjank::set_foreground(false);
    main_loop.end();
    std::thread::sleep(STEP);
    unjank::frame_lasting(Duration::ZERO); // no change of state is waiting for a frame
    unjank::set_foreground(true);
    unjank::set_foreground(true);
    std::thread::sleep(STEP);
    let now = Instant::now();
    unjank::frame(now.checked_sub(STEP * 3).unwrap(), now);
    unjank::frame_tick(Instant::now());
    // All of this is no longer than the test: the bounds do not depend on the speed of the machine.
    let longest = begun.elapsed().as_secs_f64() * 1_000.0;
    for (name, least_ms) in [
        ("app_foreground_ms", 30.0),
        ("app_to_background_ms", 30.0),
        ("app_background_ms", 60.0),
        ("app_to_foreground_ms", 30.0),
    ] {
        let values = values(&running, name);
        let [value] = values[..] else {
            panic!("{name}: {values:?}");
        };
        assert!((least_ms..=longest).contains(&value), "{name}: {value}");
    }
}

#[test]
fn a_change_outside_a_message_and_without_frames_has_no_duration() {
    let running = Running::start();
    let main_loop = MainLoop::of_this_thread();
    unjank::set_foreground(false);
    main_loop.begin();
    main_loop.end();
    // Hidden again before it drew.
    unjank::set_foreground(true);
    unjank::set_foreground(false);
    unjank::frame_tick(Instant::now());
    assert!(values(&running, "app_to_background_ms").is_empty());
    assert!(values(&running, "app_to_foreground_ms").is_empty());
    assert_eq!(values(&running, "app_foreground_ms").len(), 2);
}

#[test]
fn the_latency_of_an_input_ends_with_the_first_frame_after_it() {
    let running = Running::start();
    let touched = Instant::now();
    let after = |ms: u64| touched + Duration::from_millis(ms);
    unjank::frame_tick(touched);
    unjank::input("tap", after(10));
    unjank::input("tap", after(20)); // waits for the same frame
    unjank::frame_tick(after(5)); // before the input
    unjank::frame_tick(after(130));
    unjank::frame_tick(after(140));
    unjank::input("pay_button", after(200));
    unjank::frame(after(150), after(350)); // was being drawn
    unjank::input("tap", after(1_000));
    unjank::frame(after(6_500), after(6_600)); // too late to be feedback
    let metrics = metrics(&running, "input_latency_ms");
    let read: Vec<_> = metrics
        .iter()
        .map(|metric| {
            (
                metric["attributes"]["input"].as_str(),
                metric["value"].as_f64(),
            )
        })
        .collect();
    let expected = [
        (Some("tap"), Some(120.0)),
        (Some("pay_button"), Some(150.0)),
    ];
    assert_eq!(read, expected);
}
