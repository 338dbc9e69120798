//! Spans in the trace of the system, with a file as its marker.

use unjank::Mode;

use crate::collector::Running;

/// Runs `app` and returns the markers that it wrote, without the process id.
fn markers(app: impl FnOnce()) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("trace_marker");
    std::fs::write(&marker, "").unwrap();
    let running =
        Running::with(|config| config.mode(Mode::Test).offline(true).system_trace(&marker));
    app();
    running.flush();
    let pid = format!("|{}", std::process::id());
    let written = std::fs::read_to_string(marker).unwrap();
    written
        .lines()
        .map(|line| line.replacen(&pid, "", 1))
        .collect()
}

#[test]
fn sections_of_a_thread_nest_as_its_spans_do() {
    let written = markers(|| {
        let outer = unjank::span("outer");
        unjank::span("a|b\nc").end();
        let second = unjank::span("second");
        let third = unjank::span("third");
        // Out of order: what is inside ends and begins again.
        drop(second);
        third.end_ok();
        drop(outer);
    });
    let expected = [
        "B|outer", "B|a_b_c", "E", "B|second", "B|third", "E", "E", "B|third", "E", "E",
    ];
    assert_eq!(written, expected);
}

#[test]
fn a_detached_span_is_asynchronous() {
    let written = markers(|| {
        let download = unjank::span("download").detach();
        let entered = download.enter();
        unjank::span("connect").end();
        drop(entered);
        std::thread::spawn(move || download.end_ok())
            .join()
            .unwrap();
    });
    let kinds: Vec<&str> = written
        .iter()
        .map(|line| line.split('|').next().unwrap())
        .collect();
    assert_eq!(kinds, ["B", "E", "S", "B", "E", "F"], "{written:?}");
    assert!(written[2].starts_with("S|download|"));
    assert_eq!(
        written[2].replacen('S', "F", 1),
        written[5],
        "the same name and cookie"
    );
}

#[cfg(feature = "tokio")]
#[test]
fn a_future_is_asynchronous_from_its_first_poll() {
    #[unjank::traced(name = "request")]
    async fn request() {
        unjank::span("parse").end();
    }
    let written = markers(|| {
        let runtime = tokio::runtime::Builder::new_current_thread();
        { runtime }.build().unwrap().block_on(request());
    });
    let kinds: Vec<&str> = written
        .iter()
        .map(|line| line.split('|').next().unwrap())
        .collect();
    assert_eq!(kinds, ["S", "B", "E", "F"], "{written:?}");
}

#[test]
fn without_a_marker_the_app_runs_on() {
    let running = Running::with(|config| {
        config
            .mode(Mode::Test)
            .system_trace("/nowhere/trace_marker")
    });
    unjank::span("work").end();
    running.flush();
    assert_eq!(running.collector.events("spans").len(), 1);
}
