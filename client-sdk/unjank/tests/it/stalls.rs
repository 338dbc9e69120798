//! Stalls whose stack cannot be captured say why.

use std::time::Duration;

use serde_json::{Value, json};
use unjank::protocol::Frame;
use unjank::{CaptureError, MainLoop, Mode, StackSource};

use crate::collector::Running;

/// A source that never has a stack.
struct Never(fn() -> Result<Vec<Frame<'static>>, CaptureError>);

impl StackSource for Never {
    fn capture(&self, _depth: usize) -> Result<Vec<Frame<'static>>, CaptureError> {
        (self.0)()
    }
}

/// Blocks the main loop until the watchdog has seen the stall, and returns the reported stall.
fn stall(main_loop: &MainLoop, running: &Running) -> Value {
    stall_that(|| (), main_loop, running)
}

/// The same, with work at the beginning of the stall.
fn stall_that(works: impl FnOnce(), main_loop: &MainLoop, running: &Running) -> Value {
    std::thread::sleep(Duration::from_millis(600));
    main_loop.begin();
    works();
    // Longer than the watchdog sleeps on a busy machine.
    std::thread::sleep(Duration::from_secs(1));
    main_loop.end();
    std::thread::sleep(Duration::from_millis(600));
    running.flush();
    running.collector.events("janks").pop().unwrap()
}

fn running() -> Running {
    let running = Running::with(|config| config);
    running.learns(json!({"sampling": {"janks": 1.0}, "jank": {
        "strategies": [{"threshold_ms": 40, "count": 1, "period_ms": 0}]}}));
    running
}

#[test]
fn a_stall_says_why_it_has_no_stack() {
    let running = running();
    let replaced = Never(|| Err(CaptureError::HandlerReplaced));
    let jank = stall(&MainLoop::with_stacks(replaced), &running);
    let reason = "another part of this process replaced the signal handler";
    assert_eq!(jank["stack_missing"], reason);
    let panicking = Never(|| panic!("a defect of the app"));
    let jank = stall(&MainLoop::with_stacks(panicking), &running);
    assert_eq!(jank["stack_missing"], "the source of stacks panicked");
    let jank = stall(&MainLoop::with_stacks(Never(|| Ok(Vec::new()))), &running);
    assert_eq!(jank["stack_missing"], "the captured stack was empty");
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_stall_with_a_stack_gives_no_reason() {
    let running = running();
    let jank = stall(&MainLoop::of_this_thread(), &running);
    assert!(jank.get("stack_missing").is_none(), "{jank}");
    let functions = jank["stack"].as_array().unwrap().iter();
    let mut functions = functions.filter_map(|frame| frame["function"].as_str());
    assert!(functions.any(|name| name.contains("a_stall_with_a_stack_gives_no_reason")));
}

#[test]
fn events_during_a_stall_belong_to_the_user_of_their_time() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::with(|config| config.mode(Mode::Development).data_dir(folder.path()));
    let main_loop = MainLoop::of_this_thread();
    unjank::set_user(Some("ann"));
    unjank::span("ann").end();
    std::thread::sleep(Duration::from_millis(100));
    main_loop.begin();
    // The stall is noted, and with it the span of ann.
    std::thread::sleep(Duration::from_millis(400));
    for user in ["bob", "carol", "bob"] {
        unjank::set_user(Some(user));
        unjank::span(user).end();
    }
    main_loop.end();
    running.flush();
    let mut of_users = Vec::new();
    for batch in running.collector.batches() {
        let spans = batch["spans"].as_array().cloned().unwrap_or_default();
        for span in spans {
            assert_eq!(span["name"], batch["resource"]["user_id"]);
            of_users.push(span["name"].clone());
        }
    }
    assert_eq!(of_users, ["ann", "bob", "carol", "bob"]);
}

#[test]
fn what_is_logged_during_a_stall_does_not_displace_what_was_logged_before() {
    let running = running();
    let main_loop = MainLoop::of_this_thread();
    (0..100).for_each(|number| unjank::breadcrumb(&format!("before {number}")));
    let logs = || (0..1_000).for_each(|_| unjank::breadcrumb("during"));
    let jank = stall_that(logs, &main_loop, &running);
    let log = jank["run_log"].as_array().unwrap().iter();
    let log: Vec<&str> = log.filter_map(|line| line["message"].as_str()).collect();
    let last: Vec<String> = (72..100).map(|number| format!("before {number}")).collect();
    assert_eq!(log, last);
}

#[test]
fn a_strategy_of_several_messages_reports_the_one_that_completes_its_count() {
    let running = Running::with(|config| config);
    running.learns(json!({"sampling": {"janks": 1.0}, "jank": {
        "strategies": [{"threshold_ms": 60, "count": 3, "period_ms": 60_000}]}}));
    let main_loop = MainLoop::of_this_thread();
    // The watchdog starts.
    std::thread::sleep(Duration::from_millis(600));
    let message = |millis| {
        main_loop.begin();
        std::thread::sleep(Duration::from_millis(millis));
        main_loop.end();
        running.flush();
        running.collector.events("janks")
    };
    assert!(message(300).is_empty() && message(300).is_empty());
    let janks = message(900);
    assert_eq!(janks.len(), 1, "{janks:?}");
    let strategy = json!({"threshold_ms": 60, "count": 3, "period_ms": 60_000});
    assert_eq!(janks[0]["strategy"], strategy);
    assert!(janks[0]["duration_ms"].as_u64() >= Some(900), "{janks:?}");
    assert_eq!(message(300).len(), 1, "the period is not over");
}
