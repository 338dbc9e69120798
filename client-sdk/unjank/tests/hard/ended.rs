//! The app ends without a chance to send: what it recorded is reported after the next start.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::app::{App, SHUTDOWN_TIMEOUT};
use crate::collecting::{Answer, Collecting};
use crate::truth::Stored;

/// Uploads nothing by itself.
fn quiet() -> Collecting {
    Collecting::start(&json!({"interval_s": 86_400, "max_queue_bytes": 50_000_000}))
}

/// What is stored after another start of the app.
fn after_next_start(server: &Collecting, folder: &tempfile::TempDir) -> Stored {
    server.answer(|_| Answer::Take);
    let mut app = App::start(&server.url(), folder.path());
    app.does("flush");
    app.ends();
    Stored::new(server.taken())
}

#[test]
fn a_hang_that_ends_in_a_kill_is_reported_with_its_stack() {
    let (folder, server) = (tempfile::tempdir().unwrap(), quiet());
    server.answer(|_| Answer::Status(503));
    let mut app = App::start(&server.url(), folder.path());
    app.does("user ann");
    app.does("metrics 3");
    app.does("keep");
    app.does("user bob");
    app.begins("hang 60000", "hangs");
    std::thread::sleep(Duration::from_millis(4_500));
    app.killed(0);
    let stored = after_next_start(&server, &folder);
    let janks = stored.events("janks");
    assert_eq!(janks.len(), 1, "{janks:?}");
    assert_eq!(janks[0]["ended"], "killed");
    let lasted = janks[0]["duration_ms"].as_u64().unwrap();
    assert!((2_000..=4_600).contains(&lasted), "{lasted}");
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let stack = janks[0]["stack"].to_string();
        assert!(stack.contains("hang"), "{stack}");
    }
    assert!(stored.events("metrics").len() >= 3);
    // The stall is filtered like any event, and belongs to the user whom it hit.
    assert_eq!(janks[0].get("run_log"), None);
    let of_stall = stored.batches().find(|batch| batch["janks"].is_array());
    assert_eq!(of_stall.unwrap()["resource"]["user_id"], "bob");
    assert_eq!(Stored::new(server.taken()).events("janks").len(), 1);
}

#[test]
fn a_stall_that_is_over_is_reported_once_if_the_app_is_killed_after_it() {
    let (folder, server) = (tempfile::tempdir().unwrap(), quiet());
    let mut app = App::start(&server.url(), folder.path());
    app.does("hang 2600");
    std::thread::sleep(Duration::from_millis(1_500));
    app.killed(0);
    let stored = after_next_start(&server, &folder);
    let janks = stored.events("janks");
    assert_eq!(janks.len(), 1, "{janks:?}");
    assert_eq!(janks[0].get("ended"), None);
}

#[test]
fn a_killed_app_loses_its_last_second_at_most() {
    let (folder, server) = (tempfile::tempdir().unwrap(), quiet());
    let mut app = App::start(&server.url(), folder.path());
    app.does("spans 0 50 0");
    std::thread::sleep(Duration::from_millis(1_600));
    app.killed(0);
    let stored = after_next_start(&server, &folder);
    assert_eq!(stored.numbers().len(), 50);
}

#[test]
fn an_app_that_exits_or_is_terminated_loses_nothing() {
    let (folder, server) = (tempfile::tempdir().unwrap(), quiet());
    let app = App::start(&server.url(), folder.path());
    assert!(app.ends_in("exit 0 40"));
    let mut app = App::start(&server.url(), folder.path());
    app.does("spans 100 40 0");
    app.terminate();
    let stored = after_next_start(&server, &folder);
    assert_eq!(stored.numbers().len(), 80);
}

/// An app whose first batch, with spans 0 to 9, is on its way to a server that does not respond.
fn app_with_request_under_way(folder: &tempfile::TempDir) -> (App, Collecting) {
    let server = Collecting::start(&json!({"interval_s": 1, "max_queue_bytes": 50_000_000}));
    let (asked, is_asked) = std::sync::mpsc::sync_channel(64);
    server.answer(move |_| {
        asked.try_send(()).unwrap_or_default();
        Answer::Hang
    });
    let mut app = App::start(&server.url(), folder.path());
    app.does("spans 0 10 0");
    is_asked.recv_timeout(Duration::from_secs(30)).unwrap();
    (app, server)
}

#[test]
fn an_app_that_is_killed_during_a_request_loses_its_last_second_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let (mut app, server) = app_with_request_under_way(&folder);
    app.does("spans 10 50 0");
    app.begins("hang 60000", "hangs");
    std::thread::sleep(Duration::from_millis(4_500));
    app.killed(0);
    let stored = after_next_start(&server, &folder);
    assert_eq!(stored.numbers().len(), 60);
    assert_eq!(stored.events("janks").len(), 1);
}

#[test]
fn an_app_that_ends_during_a_request_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (app, server) = app_with_request_under_way(&folder);
    assert!(app.ends_in("exit 10 40"));
    assert_eq!(after_next_start(&server, &folder).numbers().len(), 50);

    let folder = tempfile::tempdir().unwrap();
    let (mut app, server) = app_with_request_under_way(&folder);
    app.does("spans 10 40 0");
    app.terminate();
    assert_eq!(after_next_start(&server, &folder).numbers().len(), 50);
}

#[test]
fn dropping_the_guard_takes_no_longer_than_the_app_allows_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut app, server) = app_with_request_under_way(&folder);
    app.does("spans 10 40 0");
    let begun = Instant::now();
    app.ends();
    // The time is not granted again to each step of the end.
    assert!(
        begun.elapsed() < SHUTDOWN_TIMEOUT * 2,
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(after_next_start(&server, &folder).numbers().len(), 50);
}

#[test]
fn nothing_is_left_if_consent_is_withdrawn_just_before_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let (mut app, server) = app_with_request_under_way(&folder);
    app.does("spans 10 40 0");
    app.does("traffic 10");
    app.does("keep");
    assert!(app.ends_in("withdraw"));
    let stored = after_next_start(&server, &folder);
    assert_eq!(stored.numbers().len(), 0);
    assert_eq!(stored.traffic("requests"), 0);
}

#[test]
fn a_panic_that_aborts_the_app_is_reported_at_the_next_start() {
    let (folder, server) = (tempfile::tempdir().unwrap(), quiet());
    let app = App::start(&server.url(), folder.path());
    assert!(!app.ends_in("abort"), "the app survived");
    let stored = after_next_start(&server, &folder);
    let spans = stored.events("spans");
    let panics: Vec<_> = spans
        .iter()
        .filter(|span| span["name"] == "panic")
        .collect();
    assert_eq!(panics.len(), 1, "{spans:?}");
    assert_eq!(panics[0]["attributes"]["error"], "the last words");
    let stack = panics[0]["events"].to_string();
    assert!(stack.contains("aborts"), "{stack}");
    assert!(spans.iter().any(|span| span["name"] == "last"));
}
