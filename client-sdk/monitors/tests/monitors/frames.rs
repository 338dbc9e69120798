//! Frames: worked examples from the sources, then the model compared with a display that is drawn refresh by refresh.

use proptest::prelude::*;
use unjank_monitors::{FrameMeter, Scene, Uptime, WallClock};
use unjank_protocol::config::Frames;
use unjank_protocol::{FrameWindow, Network, Timestamp};

fn micros(micros: u64) -> Uptime {
    Uptime::from_micros(micros)
}

fn millis(millis: u64) -> Uptime {
    Uptime::from_millis(millis)
}

fn config(enter_dropped: u32, leave_drawn: u32) -> Frames {
    Frames {
        window_ms: 60_000,
        enter_dropped,
        leave_drawn,
    }
}

fn meter(hz: u16) -> FrameMeter {
    FrameMeter::new(&config(3, 10), hz, Scene::new("Feed"))
}

/// Returns the window of frames given as (refresh, duration), in microseconds.
fn window(meter: &mut FrameMeter, frames: &[(u64, u64)]) -> FrameWindow<'static> {
    for (vsync, took) in frames {
        assert_eq!(
            meter.frame(micros(*vsync), micros(vsync + took)),
            None,
            "more than one window"
        );
    }
    meter.flush(millis(59_000)).unwrap()
}

#[test]
fn a_window_reports_all_measurements() {
    let scene = Scene {
        network: Network::Wifi,
        wall: WallClock::new(millis(0), Timestamp::parse("2026-11-20T12:00:00Z").unwrap()),
        ..Scene::new("FeedActivity")
    };
    let mut meter = FrameMeter::new(&config(3, 10), 60, scene);
    for (vsync, took) in [
        (1_000_000, 9_000),
        (1_016_667, 60_000),
        (1_083_333, 720_000),
    ] {
        drop(meter.frame(micros(vsync), micros(vsync + took)));
    }
    let window = meter.flush(millis(2_000)).unwrap();
    let text = serde_json::to_value(&window).unwrap();
    // 60 ms: 4 budgets, 3 dropped. 720 ms: 44 budgets, 43 dropped. The dropping state begins after the third dropped budget of
    // the first frame: one budget of that frame is left, then 44 follow. Over budget: 60 − 16.67 + 720 − 16.67.
    let expected = serde_json::json!({
        "page": "FeedActivity", "start": "2026-11-20T12:00:01Z", "duration_ms": 1000, "refresh_hz": 60,
        "frames_drawn": 3, "frames_dropped": 46, "slow_frames": 2, "frozen_frames": 1, "longest_drop": 43,
        "jank_ms": 750, "delay_ms": 746, "uptime_ms": 1000, "network": "wifi",
        "frame_time_hist": {"8": 1, "47": 1, "700": 1},
    });
    assert_eq!(text, expected);
}

#[test]
fn a_frame_is_slow_over_its_budget_and_frozen_over_700_ms() {
    for (hz, took, slow, frozen) in [
        (60, 16_000, 0, 0),
        (60, 16_660, 0, 0),
        (60, 16_700, 1, 0),
        (90, 11_000, 0, 0),
        (90, 11_200, 1, 0),
        (120, 8_300, 0, 0),
        (120, 8_400, 1, 0),
        (60, 700_000, 1, 0),
        (60, 700_001, 1, 1),
    ] {
        let window = window(&mut meter(hz), &[(5_000_000, took)]);
        let seen = (window.slow_frames, window.frozen_frames);
        assert_eq!(seen, (slow, frozen), "{took} us at {hz} Hz");
    }
}

#[test]
fn whole_budgets_are_dropped() {
    for (hz, took, dropped) in [
        (60, 16_667, 0),
        (60, 17_000, 1),
        (60, 33_333, 1),
        (60, 34_000, 2),
        (90, 34_000, 3),
        (120, 34_000, 4),
        (60, 700_000, 41),
    ] {
        let window = window(&mut meter(hz), &[(5_000_000, took)]);
        assert_eq!(window.frames_dropped, dropped, "{took} us at {hz} Hz");
        assert_eq!(window.longest_drop, dropped);
    }
}

#[test]
fn a_still_screen_drops_nothing() {
    let window = window(
        &mut meter(60),
        &[(0, 5_000), (20_000_000, 5_000), (20_500_000, 5_000)],
    );
    assert_eq!((window.frames_drawn, window.frames_dropped), (3, 0));
    assert_eq!(window.jank_ms, 0);
}

#[test]
fn a_pipelined_renderer_at_full_rate_drops_only_the_first_frame() {
    // 30 ms per frame, one begun at every refresh: all are late, yet every refresh but the first shows one.
    let frames: Vec<_> = (0..100).map(|frame| (frame * 16_667, 30_000)).collect();
    let window = window(&mut meter(60), &frames);
    assert_eq!((window.frames_drawn, window.frames_dropped), (100, 1));
    assert_eq!(window.slow_frames, 100);
}

#[test]
fn the_dropping_state_is_entered_after_e_and_left_after_r() {
    let budget = 16_666;
    // Two dropped frames are not enough, three are. After one more drop, three drawn in a row end the state (R = 3).
    let takes = [3, 1, 4, 1, 2, 1, 1, 1];
    let mut at = 0;
    let mut frames = Vec::new();
    for budgets in takes {
        frames.push((at, budgets * budget));
        at += budgets * budget;
    }
    let mut meter = FrameMeter::new(&config(3, 3), 60, Scene::new("Feed"));
    let window = window(&mut meter, &frames);
    // From the end of the third dropped budget: 1 in which the frame was shown, then 1, 2, 1, 1. The frame that ends a drop is
    // the first of those drawn in a row.
    let expected = 6 * budget / 1_000;
    assert_eq!(u64::from(window.jank_ms), expected);
    assert_eq!(window.longest_drop, 3);
}

#[test]
fn idle_time_ends_the_dropping_state() {
    let mut meter = FrameMeter::new(&config(3, 10), 60, Scene::new("Feed"));
    let frames = [(0, 66_600), (5_000_000, 5_000), (5_016_667, 5_000)];
    let window = window(&mut meter, &frames);
    assert_eq!(window.jank_ms, 16, "only the last budget of the drop");
}

#[test]
fn the_budget_follows_the_display() {
    let mut meter = meter(120);
    for frame in 0..5 {
        drop(meter.frame(micros(frame * 8_333), micros(frame * 8_333 + 8_000)));
    }
    meter.set_refresh_hz(60);
    for frame in 10..40 {
        drop(meter.frame(micros(frame * 16_667), micros(frame * 16_667 + 12_000)));
    }
    let window = meter.flush(millis(700)).unwrap();
    assert_eq!((window.frames_drawn, window.frames_dropped), (35, 0));
    assert_eq!((window.slow_frames, window.refresh_hz), (0, 60));
}

#[test]
fn windows_end_by_time_page_and_settings() {
    let mut meter = FrameMeter::new(&Frames::default(), 60, Scene::new("Feed"));
    assert_eq!(meter.flush(millis(1)), None, "a window without a frame");
    drop(meter.frame(millis(1_000), millis(1_010)));
    assert_eq!(meter.poll(millis(10_999)), None);
    let by_time = meter.poll(millis(40_000)).unwrap();
    assert_eq!((by_time.duration_ms, by_time.frames_drawn), (10_000, 1));

    drop(meter.frame(millis(50_000), millis(50_010)));
    let by_page = meter.set_scene(millis(50_500), Scene::new("Cart")).unwrap();
    assert_eq!((by_page.page.as_str(), by_page.duration_ms), ("Feed", 500));
    assert_eq!(meter.set_scene(millis(50_500), Scene::new("Cart")), None);

    drop(meter.frame(millis(51_000), millis(51_010)));
    meter.set_config(&Frames {
        window_ms: 1_000,
        ..Frames::default()
    });
    let by_settings = meter.frame(millis(52_000), millis(52_010)).unwrap();
    assert_eq!(
        (by_settings.page.as_str(), by_settings.duration_ms),
        ("Cart", 1_000)
    );
}

#[test]
fn neither_jitter_nor_pauses_of_ticks_drop_frames() {
    let mut meter = meter(60);
    let mut at = 0;
    for jitter in [16_300, 17_100, 16_000, 17_400, 16_900] {
        drop(meter.tick(micros(at)));
        at += jitter;
    }
    meter.pause_ticks();
    drop(meter.tick(millis(5_000)));
    drop(meter.tick(micros(5_050_000)));
    let window = meter.flush(millis(5_100)).unwrap();
    assert_eq!((window.frames_drawn, window.frames_dropped), (5, 2));
    assert_eq!(window.slow_frames, 1);
}

#[test]
fn extreme_times_and_settings_are_harmless() {
    let nothing = Frames {
        window_ms: 0,
        enter_dropped: 0,
        leave_drawn: 0,
    };
    for hz in [0, 1, u16::MAX] {
        let mut meter = FrameMeter::new(&nothing, hz, Scene::default());
        let end = micros(u64::MAX);
        drop(meter.frame(end, micros(0)));
        drop(meter.frame(micros(0), end));
        drop(meter.frame_lasting(u64::MAX, millis(1)));
        drop(meter.tick(end));
        drop(meter.tick(micros(0)));
        let window = meter.flush(end).unwrap();
        assert!(window.duration_ms <= 24 * 3_600_000);
    }
}

/// Returns what a user sees as (drawn, dropped): each refresh shows a new frame, or the old one although another is wanted, or a
/// still screen.
fn refresh_by_refresh(frames: &[(u64, u64)]) -> (u64, u64) {
    let end = frames.iter().map(|(at, took)| at + took).max().unwrap_or(0);
    let (mut drawn, mut dropped) = (0, 0);
    for pulse in 1..=end {
        let wanted = |(at, took): &&(u64, u64)| *at < pulse && pulse <= at + took;
        let shown = frames
            .iter()
            .filter(|(at, took)| at + took == pulse)
            .count() as u64;
        drawn += shown;
        dropped += u64::from(shown == 0 && frames.iter().any(|frame| wanted(&frame)));
    }
    (drawn, dropped)
}

/// Frames in the order of their ends, each begun at a refresh, with gaps: (refresh, budgets).
fn some_frames() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let frame = (0_u64..6, prop_oneof![4 => Just(1_u64), 1 => 2_u64..60]);
    prop::collection::vec(frame, 1..60).prop_map(|frames| {
        let mut at = 0;
        let mut ended = 0;
        let in_order = frames.into_iter().map(|(gap, budgets)| {
            at += gap;
            ended = (at + budgets).max(ended);
            (at, ended - at)
        });
        in_order.filter(|(_, budgets)| *budgets > 0).collect()
    })
}

proptest! {
    #[test]
    fn drawn_and_dropped_match_a_display_drawn_refresh_by_refresh(frames in some_frames(), hz in prop_oneof![Just(60), Just(90), Just(120)]) {
        prop_assume!(!frames.is_empty());
        let budget = 1_000_000 / u64::from(hz);
        let mut meter = meter(hz);
        let real: Vec<_> = frames.iter().map(|(at, budgets)| (at * budget, budgets * budget)).collect();
        let window = window(&mut meter, &real);
        let expected = refresh_by_refresh(&frames);
        prop_assert_eq!((u64::from(window.frames_drawn), u64::from(window.frames_dropped)), expected);
    }

    #[test]
    fn the_fields_of_a_window_are_consistent(
        frames in prop::collection::vec((0_u64..400_000, 0_u64..2_000_000), 1..200),
        enter in 1_u32..6, leave in 1_u32..12, window_ms in 1_000_u32..4_000, hz in 24_u16..240,
    ) {
        let config = Frames { window_ms, enter_dropped: enter, leave_drawn: leave };
        let mut meter = FrameMeter::new(&config, hz, Scene::new("Feed"));
        let mut at = 0;
        let mut windows = Vec::new();
        for (gap, took) in &frames {
            at += gap;
            windows.extend(meter.frame(micros(at), micros(at + took)));
        }
        windows.extend(meter.flush(micros(at)));
        let drawn: u32 = windows.iter().map(|window| window.frames_drawn).sum();
        prop_assert_eq!(drawn as usize, frames.len(), "a frame is lost");
        for window in &windows {
            prop_assert!(i64::from(window.jank_ms) <= window.duration_ms, "{:?}", window);
            prop_assert!(window.longest_drop <= window.frames_dropped);
            prop_assert!(window.frozen_frames <= window.slow_frames && window.slow_frames <= window.frames_drawn);
            prop_assert_eq!(window.delay_ms > 0 || window.slow_frames < 60, true);
            let counted: u32 = window.frame_time_hist.0.iter().map(|(_, count)| count).sum();
            prop_assert_eq!(counted, window.frames_drawn);
            if window.longest_drop < enter {
                // The state may have been entered in the previous window.
                prop_assert!(window.jank_ms == 0 || windows.len() > 1);
            }
        }
        for pair in windows.windows(2) {
            prop_assert!(pair[0].start.as_micros() / 1_000 + pair[0].duration_ms <= pair[1].start.as_micros() / 1_000 + 1);
        }
    }
}
