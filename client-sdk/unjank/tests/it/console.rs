//! What the console prints, read from the standard error of a process: this binary, started again to run only [`the_app`].

use std::process::{Command, Stdio};
use std::time::Duration;

use unjank::{Config, Mode};

use crate::collector::{self, Collector};

const RUNS: &str = "CONSOLE_APP";

/// Not a test of its own: the process that the test starts.
#[test]
fn the_app() {
    if std::env::var_os(RUNS).is_none() {
        return;
    }
    let config = Config::new("http://127.0.0.1:1", "key")
        .app("com.example.shop", "4.12.0")
        .mode(Mode::Development)
        .offline(true);
    let guard = unjank::init(config);
    unjank::set_page("Cart");
    let outer = unjank::span_tagged("order", &["checkout", "network"]);
    let mut inner = unjank::span("pay");
    inner.attribute("items", 3);
    inner.event("validated");
    inner.end_ok();
    drop(outer);
    tagged();
    deep(40);
    drop(guard);
}

#[unjank::traced(tag = "startup")]
fn tagged() {}

/// A stall with a deep stack.
#[inline(never)]
fn deep(level: u32) {
    if level > 0 {
        deep(level - 1);
        std::hint::black_box(level);
        return;
    }
    let main_loop = unjank::MainLoop::of_this_thread();
    std::thread::sleep(Duration::from_millis(200));
    main_loop.begin();
    // On a busy machine, the thread that takes the stack may be late.
    std::thread::sleep(Duration::from_millis(1_500));
    main_loop.end();
}

/// Runs one of the apps in this file to its end.
fn printed_by(app: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([app, "--exact", "--nocapture"])
        .env(RUNS, "1")
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_line_has_all_facts_of_a_span_and_a_stall_its_whole_stack() {
    let printed = printed_by("console::the_app");
    let line = |begin: &str| {
        let line = printed.lines().find(|line| line.starts_with(begin));
        line.unwrap_or_else(|| panic!("no line begins with {begin}: {printed}"))
    };
    let value = |line: &str, name: &str| {
        let found = line
            .split(' ')
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        found
            .unwrap_or_else(|| panic!("no {name} in {line}"))
            .to_owned()
    };
    let outer = line("unjank: span order ");
    assert!(
        outer.contains(" on console::the_app at ") && outer.contains("console.rs:"),
        "{outer}"
    );
    assert_eq!(value(outer, "parent"), "none");
    assert_eq!(value(outer, "tags"), "checkout,network");
    assert_eq!(
        (value(outer, "kind"), value(outer, "page")),
        ("manual".to_owned(), "Cart".to_owned())
    );
    let inner = line("unjank: span pay ");
    assert_eq!(value(inner, "parent"), value(outer, "id"));
    assert_eq!(value(inner, "trace"), value(outer, "trace"));
    assert_eq!(
        (value(inner, "items"), value(inner, "status")),
        ("3".to_owned(), "ok".to_owned())
    );
    assert!(inner.contains("[validated after 0."), "{inner}");
    let traced = printed
        .lines()
        .find(|line| line.contains("tagged "))
        .unwrap();
    assert_eq!(value(traced, "tags"), "startup");
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        line("unjank: jank of 1");
        let frames = printed
            .lines()
            .filter(|line| line.starts_with("    ") && line.contains("console::deep"));
        assert_eq!(frames.count(), 41, "{printed}");
    }
}

/// Not a test of its own: reports to the console, and to another reporter after it.
#[test]
#[expect(clippy::exit, reason = "an app that is built with `panic = \"abort\"`")]
fn the_app_with_a_reporter() {
    struct Last(std::sync::mpsc::SyncSender<()>);
    impl unjank::Reporter for Last {
        fn report(&self, _event: &unjank::Event) {
            self.0.send(()).unwrap();
        }
    }
    if std::env::var_os(RUNS).is_none() {
        return;
    }
    std::panic::set_hook(Box::new(|_| std::process::exit(7)));
    let (sender, reported) = std::sync::mpsc::sync_channel(8);
    let config = Config::new("http://127.0.0.1:1", "key")
        .app("com.example.shop", "4.12.0")
        .mode(Mode::Development)
        .offline(true)
        .reporter(Last(sender));
    let guard = unjank::init(config);
    for _ in 0..2 {
        unjank::span("pay").end_ok();
        reported.recv_timeout(Duration::from_secs(20)).unwrap();
    }
    drop(guard);
}

#[test]
fn an_app_whose_standard_error_nobody_reads_goes_on() {
    let mut app = Command::new(std::env::current_exe().unwrap())
        .args(["console::the_app_with_a_reporter", "--exact", "--nocapture"])
        .env(RUNS, "1")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(app.stderr.take());
    assert!(app.wait().unwrap().success());
}

/// Not a test of its own: sends to a server that accepts a batch, and then does not know the key.
#[test]
fn the_app_with_a_server() {
    const LONG: Duration = Duration::from_secs(20);
    if std::env::var_os(RUNS).is_none() {
        return;
    }
    let server = Collector::new();
    let guard = unjank::init(collector::config(&server).mode(Mode::Development));
    unjank::span("pay").end();
    assert!(unjank::flush(LONG));
    server.answer(|_| Ok(collector::status(401)));
    unjank::span("pay").end();
    assert!(!unjank::flush(LONG));
    drop(guard);
}

#[test]
fn development_says_what_was_sent_and_why_nothing_arrives() {
    let printed = printed_by("console::the_app_with_a_server");
    let is_sent = |line: &str| line.starts_with("unjank: sent ") && line.ends_with(" events");
    assert!(printed.lines().any(is_sent), "{printed}");
    assert!(printed.contains("does not know the key"), "{printed}");
}
