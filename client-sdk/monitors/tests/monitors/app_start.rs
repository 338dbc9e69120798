//! Starts of the app.

use unjank_monitors::{AppStartTimer, Scene, Uptime};
use unjank_protocol::AppStartKind;

fn at(millis: u64) -> Uptime {
    Uptime::from_millis(millis)
}

#[test]
fn a_start_has_its_phases_in_order_and_open_ones_end_with_it() {
    let mut timer = AppStartTimer::default();
    timer.phase_begin("too early", at(0));
    timer.begin(AppStartKind::Cold, at(10));
    timer.phase_begin("application", at(10));
    timer.phase_begin("di", at(20));
    timer.phase_end("di", at(230));
    timer.phase_end("application", at(300));
    timer.phase_begin("first screen", at(300));
    timer.phase_end("never begun", at(400));
    let start = timer
        .finish(at(1_440), &Scene::new("MainActivity"))
        .unwrap();
    let phases: Vec<_> = start
        .phases
        .iter()
        .map(|phase| (phase.name.as_str(), phase.duration_ms))
        .collect();
    assert_eq!(
        phases,
        [("application", 290), ("di", 210), ("first screen", 1_140)]
    );
    assert_eq!((start.kind, start.duration_ms), (AppStartKind::Cold, 1_430));
    assert_eq!(
        timer.finish(at(1_500), &Scene::default()),
        None,
        "reported twice"
    );
    assert_eq!(timer.take_dropped(), 0);
}

#[test]
fn starts_and_phases_that_are_not_reported_are_counted() {
    let mut timer = AppStartTimer::default();
    timer.begin(AppStartKind::Warm, at(0));
    timer.begin(AppStartKind::Hot, at(5));
    timer.cancel();
    timer.cancel();
    assert_eq!(timer.take_dropped(), 2);
    timer.begin(AppStartKind::Warm, at(0));
    assert_eq!(
        timer.finish(at(300_001), &Scene::default()),
        None,
        "longer than five minutes"
    );
    assert_eq!(timer.take_dropped(), 1);
    timer.begin(AppStartKind::Cold, at(0));
    (0..70).for_each(|_| timer.phase_begin("part", at(1)));
    assert_eq!(
        timer.finish(at(2), &Scene::default()).unwrap().phases.len(),
        64
    );
    assert_eq!(timer.take_dropped(), 6);
}
