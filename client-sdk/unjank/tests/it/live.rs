//! Current values, read while the app runs.

use std::time::{Duration, Instant};

use unjank::live::{Live, Warning, watch};
use unjank::{Mode, Transferred};

use crate::collector::Running;

/// Blocks the main loop.
#[inline(never)]
fn blocked_for_the_live_view(lasts: Duration) {
    std::thread::sleep(lasts);
}

fn traffic(answered: bool) {
    unjank::traffic(Transferred {
        host: "api.example.com",
        tx_bytes: 7,
        rx_bytes: 100,
        answered,
        ..Transferred::default()
    });
}

fn stall() {
    let main_loop = unjank::MainLoop::of_this_thread();
    // The watchdog starts.
    std::thread::sleep(Duration::from_millis(200));
    main_loop.begin();
    blocked_for_the_live_view(Duration::from_millis(400));
    main_loop.end();
}

fn start() -> Running {
    Running::with(|config| config.mode(Mode::Development).offline(true))
}

/// Runs an app of known actions, and reads the values at its end.
fn known_actions() -> Live {
    let running = start();
    let watch = watch();
    act(&running);
    watch.read()
}

fn act(running: &Running) {
    unjank::set_page("Cart");
    // At 60 Hz: 10 frames in time, one that is slow, and one that is frozen.
    let begun = Instant::now();
    for frame in 0..10_u32 {
        unjank::frame(
            begun + frame * Duration::from_micros(16_667),
            begun + frame * Duration::from_micros(16_667) + Duration::from_millis(5),
        );
    }
    let later = begun + Duration::from_secs(1);
    unjank::frame(later, later + Duration::from_millis(40));
    let last = begun + Duration::from_secs(2);
    unjank::frame(last, last + Duration::from_millis(800));
    {
        let _order = unjank::span("order");
        unjank::span("validate").end();
        unjank::span("pay").end();
    }
    unjank::span("pay").end();
    std::thread::Builder::new()
        .name("main".to_owned())
        .spawn(|| {
            let _slow = unjank::span("slow");
            std::thread::sleep(Duration::from_millis(20));
        })
        .unwrap()
        .join()
        .unwrap();
    traffic(true);
    traffic(false);
    stall();
    running.flush();
}

#[test]
fn current_values_are_those_of_what_the_app_did() {
    let live = known_actions();
    assert!(live.collecting);
    assert_eq!(live.page, "Cart");
    let frames = live.frames;
    assert_eq!((frames.drawn, frames.slow, frames.frozen), (12, 2, 1));
    // A frame of 40 ms takes three budgets, one of 800 ms 48.
    assert_eq!(frames.dropped, 2 + 47);
    let fps = frames.fps.unwrap();
    assert!((11.0..13.0).contains(&fps), "{fps}"); // 12 frames in 61 budgets
    if cfg!(target_os = "linux") {
        assert!(live.cpu_percent.is_some() && live.memory_bytes.unwrap() > 1 << 20);
    }
    let traffic = live.traffic;
    assert_eq!((traffic.tx_bytes, traffic.rx_bytes), (14, 200));
    assert_eq!((traffic.requests, traffic.failed_requests), (2, 1));

    let names: Vec<_> = live.spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names.len(), 4);
    assert_eq!(names[0], "slow", "the most hazardous name comes first");
    assert_eq!(live.spans[0].warning, Warning::Low);
    let pay = live.spans.iter().find(|span| span.name == "pay").unwrap();
    assert_eq!(pay.count, 2);
    assert!(pay.last_us <= pay.max_us && pay.max_us <= pay.total_us);

    let tree: Vec<_> = live
        .tree
        .iter()
        .map(|span| (span.name.as_str(), span.depth))
        .collect();
    let expected = [
        ("order", 0),
        ("validate", 1),
        ("pay", 1),
        ("pay", 0),
        ("slow", 0),
    ];
    assert_eq!(tree, expected);

    assert_eq!(live.stalls, 1);
    let stall = live.stall.as_ref().unwrap();
    assert!(
        !stall.under_way && (390..2_000).contains(&stall.duration_ms),
        "{stall:?}"
    );
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let text = live.to_string();
        assert!(text.contains("blocked_for_the_live_view"), "{text}");
        assert!(
            text.contains("  it::live::stall"),
            "the whole stack is demangled: {text}"
        );
    }
}

#[test]
fn nothing_is_kept_without_a_watch_and_memory_is_bounded_with_one() {
    let running = Running::with(|config| config.mode(Mode::Test).offline(true));
    unjank::span("before").end();
    running.flush();
    let first = watch();
    assert!(first.read().spans.is_empty());
    for number in 0..300 {
        unjank::span(format!("name {number}")).end();
    }
    running.flush();
    let live = first.read();
    assert_eq!((live.spans.len(), live.tree.len()), (256, 200));
    drop(first);
    assert!(
        watch().read().spans.is_empty(),
        "a dropped watch keeps nothing"
    );
}

#[test]
fn a_stall_is_shown_while_it_lasts() {
    let _running = Running::with(|config| config.mode(Mode::Development).offline(true));
    let watch = watch();
    let (ready, is_ready) = std::sync::mpsc::sync_channel(0);
    let (go, go_on) = std::sync::mpsc::sync_channel::<()>(0);
    let app = std::thread::spawn(move || {
        let main_loop = unjank::MainLoop::of_this_thread();
        std::thread::sleep(Duration::from_millis(200));
        main_loop.begin();
        ready.send(()).unwrap();
        go_on.recv().unwrap();
        main_loop.end();
    });
    is_ready.recv().unwrap();
    let begun = Instant::now();
    while !watch.read().stall.is_some_and(|stall| stall.under_way) {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "no stall is shown"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    go.send(()).unwrap();
    app.join().unwrap();
}

#[test]
fn withdrawn_consent_clears_the_values() {
    let running = Running::with(|config| config.mode(Mode::Test).offline(true));
    let watch = watch();
    unjank::span("private").end();
    running.flush();
    assert_eq!(watch.read().spans.len(), 1);
    unjank::set_enabled(false);
    let begun = Instant::now();
    while !watch.read().spans.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(10), "values are kept");
        std::thread::yield_now();
    }
    assert!(!watch.read().collecting);
}

#[cfg(feature = "live-terminal")]
#[test]
fn a_terminal_shows_the_values_in_a_box() {
    use ratatui_core::buffer::Buffer;
    use ratatui_core::layout::Rect;
    use ratatui_core::style::Color;
    use ratatui_core::widgets::Widget;

    let live = known_actions();
    let area = Rect::new(0, 0, 100, 60);
    let mut buffer = Buffer::empty(area);
    unjank::live::Panel::new(&live).render(area, &mut buffer);
    let row = |y: u16| -> String { (0..100).map(|x| buffer[(x, y)].symbol()).collect() };
    let rows: Vec<String> = (0..60).map(row).collect();
    assert!(rows[0].contains("unjank"), "{rows:#?}");
    assert!(
        rows[1].contains("FPS 12, dropped 49, slow 2, frozen 1"),
        "{rows:#?}"
    );
    assert_eq!(buffer[(1, 1)].fg, Color::Red, "a frozen frame is red");
    assert!(rows.iter().any(|row| row.contains("pay")), "{rows:#?}");
    // A small area cuts and does not panic.
    let small = Rect::new(0, 0, 3, 2);
    unjank::live::Panel::new(&live).render(small, &mut Buffer::empty(small));
}

#[cfg(feature = "egui")]
#[test]
fn a_window_of_egui_shows_the_values_and_the_stack_of_a_stall() {
    let live = known_actions_in_egui();
    let text = live.join("\n");
    assert!(
        text.contains("FPS 12, dropped 49, slow 2, frozen 1"),
        "{text}"
    );
    assert!(text.contains("Spans by hazard"), "{text}");
    assert!(text.contains("unjank: stall"), "{text}");
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        assert!(text.contains("blocked_for_the_live_view"), "{text}");
    }
}

/// Returns the texts that egui would draw.
#[cfg(feature = "egui")]
fn known_actions_in_egui() -> Vec<String> {
    fn texts(shape: &egui::Shape, found: &mut Vec<String>) {
        match shape {
            egui::Shape::Text(text) => found.push(text.galley.text().to_owned()),
            egui::Shape::Vec(shapes) => shapes.iter().for_each(|shape| texts(shape, found)),
            _ => {}
        }
    }
    // Declared before the context, so that the context drops its watch before the next test runs.
    let running = start();
    let context = egui::Context::default();
    let draw = || {
        let screen = egui::Rect::from_min_size(egui::Pos2::ZERO, egui::vec2(1_200.0, 1_200.0));
        let input = egui::RawInput {
            screen_rect: Some(screen),
            ..egui::RawInput::default()
        };
        let output = context.run_ui(input, |ui| unjank::live::show(ui.ctx()));
        let mut found = Vec::new();
        output
            .shapes
            .iter()
            .for_each(|clipped| texts(&clipped.shape, &mut found));
        output.drop_without_applying_deltas();
        found
    };
    let before = draw().join("\n");
    assert!(!before.contains("unjank: stall"), "{before}");
    act(&running);
    // The values of the first window are shown for half a second, and a new window is sized before it is drawn.
    std::thread::sleep(Duration::from_millis(600));
    draw();
    draw()
}
