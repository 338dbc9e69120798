//! The process is stopped for seconds, as by a debugger, a system that freezes apps, or a machine that sleeps.

use std::time::Duration;

use serde_json::json;

use crate::app::App;
use crate::collecting::Collecting;
use crate::truth::Stored;

/// Stops the app by a command, and lets it go on after a time. Returns what it sends.
fn stopped_for(time: Duration, order: &str) -> Stored {
    let settings = json!({"interval_s": 86_400});
    let (folder, server) = (tempfile::tempdir().unwrap(), Collecting::start(&settings));
    let mut app = App::start(&server.url(), folder.path());
    app.begins(order, "stops");
    app.wait_until_stopped();
    std::thread::sleep(time);
    app.resume();
    app.does("flush");
    app.ends();
    Stored::new(server.taken())
}

/// Checks that there are frames, and neither janks nor frames that were dropped for seconds.
fn expect_smooth(stored: &Stored) {
    let janks = stored.events("janks");
    assert!(janks.is_empty(), "{janks:?}");
    let sum = |field: &str| -> u64 {
        let windows = stored.events("frame_windows");
        windows.iter().filter_map(|one| one[field].as_u64()).sum()
    };
    assert!(sum("frames_drawn") > 0);
    // Four seconds are 240 frames.
    assert!(sum("frames_dropped") < 60, "{}", sum("frames_dropped"));
    assert_eq!(sum("frozen_frames"), 0);
}

#[test]
fn time_in_which_the_process_did_not_run_is_not_the_apps() {
    // Stops the app in the middle of a message, a frame, a start, a page load and an input.
    let stored = stopped_for(Duration::from_secs(6), "stop");
    expect_smooth(&stored);
    let count = |signal: &str| stored.events(signal).len();
    assert_eq!((count("app_starts"), count("page_loads")), (0, 0));
    for signal in ["app_starts", "page_loads"] {
        let lost = [("suspended".to_owned(), 1)];
        assert_eq!(stored.dropped(signal), lost.into());
    }
    let metrics = stored.events("metrics");
    let latency = metrics.iter().find(|one| one["name"] == "input_latency_ms");
    assert_eq!(latency, None);
}

#[test]
fn a_process_that_is_stopped_between_frames_drops_none() {
    for order in ["stop_between foreground", "stop_between background"] {
        expect_smooth(&stopped_for(Duration::from_secs(4), order));
    }
}
