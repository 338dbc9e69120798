//! A server receives what the app did, even if the app is killed, sampled, or starts without a server.

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../../unjank/tests/hard/collecting.rs"]
mod collecting;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../../unjank/tests/hard/truth.rs"]
mod stored;

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::collecting::{Answer, Collecting};
use crate::stored::Stored;

fn server() -> Collecting {
    Collecting::start(&json!({"interval_s": 86_400}))
}

/// Starts the app with these words after the address and the folder.
fn start(url: &str, folder: &tempfile::TempDir, words: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_unjank-egui-app"))
        .arg(url)
        .arg(folder.path())
        .args(words)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs the app to its end. Returns what it says that it did.
fn run(url: &str, folder: &tempfile::TempDir, words: &[&str]) -> Value {
    let output = start(url, folder, words).wait_with_output().unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(printed.lines().last().unwrap()).unwrap()
}

fn sum(events: &[&Value], field: &str) -> u64 {
    let values = events
        .iter()
        .map(|event| event[field].as_u64().unwrap_or(0));
    values.sum()
}

/// The spans by name. Checks that the spans of a frame are its children.
fn spans(stored: &Stored) -> HashMap<String, Vec<&Value>> {
    let all = stored.events("spans");
    let by_id: HashMap<&str, &Value> = all
        .iter()
        .map(|span| (span["span_id"].as_str().unwrap(), *span))
        .collect();
    let mut named: HashMap<String, Vec<&Value>> = HashMap::new();
    for span in all {
        let name = span["name"].as_str().unwrap();
        match span["parent_span_id"].as_str() {
            Some(parent) => assert_eq!(by_id[parent]["name"], "frame", "{span}"),
            None => assert_eq!(name, "frame"),
        }
        named.entry(name.to_owned()).or_default().push(span);
    }
    named
}

fn near(value: &Value, truth: u64, tolerance: u64) {
    let value = value.as_u64().unwrap();
    assert!(
        value.abs_diff(truth) <= tolerance,
        "{value} is not {truth} ± {tolerance}"
    );
}

/// Returns whether the function that blocks is in a stack of the stall. The first stack may be that of the frame before it.
fn is_block(jank: &Value) -> bool {
    let text = jank.to_string();
    text.contains("Plan") && text.contains("block")
}

/// Checks that a stall has the function that blocked.
fn is_named(jank: &Value) {
    assert_eq!(jank["page"], "Demo");
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        assert!(is_block(jank), "{jank}");
    }
}

#[test]
fn the_instrumentation_has_at_most_fifteen_lines() {
    /// What a line has that only an app with the SDK needs.
    const OURS: [&str; 5] = ["unjank", "guard", "main_loop", "page", "overlay"];
    let main = include_str!("../src/main.rs");
    let code = main.lines().filter(|line| !line.starts_with("//!"));
    let is_ours = |line: &&str| OURS.iter().any(|word| line.contains(word));
    let lines: Vec<&str> = code.filter(is_ours).collect();
    assert!((12..=15).contains(&lines.len()), "{lines:#?}");
}

#[test]
fn a_server_receives_what_the_app_did() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let truth = run(
        &server.url(),
        &folder,
        &["everything", "90", "plain", "20:600", "40:1200"],
    );
    assert_eq!(truth["sent"], true, "{truth}");
    let stored = Stored::new(server.taken());

    let spans = spans(&stored);
    for name in ["frame", "ui", "tessellate"] {
        // egui may draw a frame twice, to size what is new.
        let count = spans[name].len();
        assert!(
            count == 90 || name == "ui" && (90..100).contains(&count),
            "{count} {name}"
        );
    }
    // Each span lies inside its frame, and fills most of it.
    let (took, truth_us) = (
        sum(&spans["frame"], "duration_us"),
        truth["took_us"].as_u64().unwrap(),
    );
    assert!(
        took <= truth_us && took > truth_us * 9 / 10,
        "{took} of {truth_us}"
    );

    let windows = stored.events("frame_windows");
    assert_eq!(sum(&windows, "frames_drawn"), 90);
    near(&truth["slow"], sum(&windows, "slow_frames"), 1);
    assert_eq!(
        sum(&windows, "frozen_frames"),
        truth["frozen"].as_u64().unwrap()
    );

    let janks = stored.events("janks");
    let long: Vec<_> = janks.iter().filter(|jank| is_block(jank)).collect();
    assert_eq!(long.len(), 2, "{janks:#?}");
    for (jank, lasted) in long.into_iter().zip([600, 1_200]) {
        near(&jank["duration_ms"], lasted + 250, 250);
        is_named(jank);
    }

    let loads = stored.events("page_loads");
    assert_eq!(loads.len(), 1);
    assert_eq!(
        (&loads[0]["page"], &loads[0]["outcome"]),
        (&json!("Demo"), &json!("completed"))
    );
    near(
        &loads[0]["total_ms"],
        truth["page_ms"].as_u64().unwrap(),
        100,
    );
}

#[test]
fn a_kill_during_a_hang_loses_neither_the_stall_nor_what_was_before_it() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    server.answer(|_| Answer::Status(503));
    let mut app = start(
        &server.url(),
        &folder,
        &["everything", "60", "plain", "30:60000"],
    );
    let mut lines = BufReader::new(app.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "blocks");
    std::thread::sleep(Duration::from_millis(4_000));
    app.kill().unwrap();
    app.wait().unwrap();
    server.answer(|_| Answer::Take);
    let truth = run(&server.url(), &folder, &["everything", "10", "plain"]);
    assert_eq!(truth["sent"], true);
    let stored = Stored::new(server.taken());
    let janks = stored.events("janks");
    let killed: Vec<_> = janks
        .iter()
        .filter(|jank| jank["ended"] == "killed")
        .collect();
    assert_eq!(killed.len(), 1, "{janks:#?}");
    near(&killed[0]["duration_ms"], 3_200, 1_300);
    is_named(killed[0]);
    // 30 whole frames before the hang and 10 of the next start; the frame that hung has no end.
    let frames = spans_of(&stored, "frame");
    assert_eq!(frames, 30 + 10);
}

fn spans_of(stored: &Stored, name: &str) -> usize {
    let spans = stored.events("spans");
    spans.iter().filter(|span| span["name"] == name).count()
}

#[test]
fn a_sample_of_a_quarter_has_whole_traces_and_stands_for_all_frames() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let truth = run(&server.url(), &folder, &["spans:0.25", "300", "plain"]);
    assert_eq!(truth["sent"], true);
    let stored = Stored::new(server.taken());
    let spans = spans(&stored);
    let frames = spans["frame"].len();
    // 75 are expected, with a standard deviation of 7.5.
    assert!((30..=120).contains(&frames), "{frames}");
    assert_eq!(spans["tessellate"].len(), frames);
    assert!(spans["ui"].len() >= frames);
    assert!(
        spans["frame"]
            .iter()
            .all(|span| span["sample_rate"] == 0.25)
    );
}

#[test]
fn a_sample_of_a_quarter_of_the_sessions_has_whole_sessions_that_stand_for_four() {
    const SESSIONS: usize = 8;
    const FRAMES: u64 = 20;
    let server = server();
    let mut stored = Vec::new();
    for _ in 0..SESSIONS {
        let folder = tempfile::tempdir().unwrap();
        let earlier = server.taken().len();
        let truth = run(&server.url(), &folder, &["sessions:0.25", "20", "plain"]);
        assert_eq!(truth["sent"], true);
        stored.push(Stored::new(server.taken().split_off(earlier)));
    }
    // Which sessions are sampled is random: each is there as a whole, or not at all.
    for session in &stored {
        let windows = session.events("frame_windows");
        let frames = spans_of(session, "frame") as u64;
        let loads = session.events("page_loads");
        let expected = if frames == 0 { 0 } else { FRAMES };
        assert_eq!(
            (frames, sum(&windows, "frames_drawn")),
            (expected, expected)
        );
        assert_eq!(loads.len() as u64, expected / FRAMES);
        let spans = session.events("spans");
        let mut sampled = spans.iter().chain(&windows).chain(&loads);
        assert!(sampled.all(|event| event["sample_rate"] == 0.25));
    }
}

#[test]
fn without_a_server_the_app_runs_on_and_a_later_start_sends_everything() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let begun = Instant::now();
    // No server listens on the discard port.
    let truth = run(
        "http://127.0.0.1:9",
        &folder,
        &["everything", "60", "overlay", "30:600"],
    );
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(
        (&truth["sent"], &truth["frames"]),
        (&json!(false), &json!(60))
    );
    let truth = run(&server.url(), &folder, &["everything", "10", "plain"]);
    assert_eq!(truth["sent"], true);
    let stored = Stored::new(server.taken());
    assert_eq!(spans_of(&stored, "frame"), 60 + 10);
    let blocked = stored
        .events("janks")
        .into_iter()
        .filter(|jank| is_block(jank));
    assert_eq!(blocked.count(), 1);
    assert_eq!(
        sum(&stored.events("frame_windows"), "frames_drawn"),
        60 + 10
    );
}
