//! A server that reads columns gets them, and an older one gets JSON. Nothing is lost or sent twice when one replaces the other.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use unjank_columns::{Bounds, MEDIA_TYPE};

use crate::app::App;
use crate::collecting::{Answer, Collecting};
use crate::truth::Stored;

const JSON: &str = "application/json";

/// Uploads nothing by itself.
fn quiet() -> (TempDir, Collecting) {
    let upload = json!({"interval_s": 86_400, "max_queue_bytes": 50_000_000});
    (tempfile::tempdir().unwrap(), Collecting::start(&upload))
}

fn start((folder, server): &(TempDir, Collecting)) -> App {
    App::start(&server.url(), folder.path())
}

/// Records this many spans and sends them.
fn sends(app: &mut App, first: u64, spans: u64) {
    app.does(&format!("spans {first} {spans} 0"));
    app.does("flush");
}

/// An app that has sent the spans 0 to 9 to a server that reads columns, and knows that it does.
fn acquainted(world: &(TempDir, Collecting)) -> App {
    let mut app = start(world);
    sends(&mut app, 0, 5);
    sends(&mut app, 5, 5);
    let forms = world.1.forms();
    assert_eq!(forms.first().unwrap(), JSON);
    assert_eq!(forms.last().unwrap(), MEDIA_TYPE);
    app
}

/// Checks that the spans with these numbers arrived once each and none is counted as lost.
fn assert_stored(server: &Collecting, spans: u64) {
    let stored = Stored::new(server.taken());
    assert!(stored.numbers().into_iter().eq(0..spans));
    assert!(stored.dropped("spans").is_empty());
}

/// Returns how many spans the last batch so far has on disk.
fn spilled_spans(folder: &TempDir) -> usize {
    let bytes = std::fs::read(folder.path().join("pending.batch")).unwrap();
    let mut rest = bytes.as_slice();
    let mut spans = 0;
    // A record is its kind, the length and the checksum of its content, and its content.
    while let Some((head, after)) = rest.split_first_chunk::<9>() {
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        let Some((content, after)) = after.split_at_checked(length as usize) else {
            break;
        };
        if head[0] == 1 {
            let read = unjank_columns::read(content, &Bounds::default()).unwrap();
            spans = read.batch.spans.len();
        }
        rest = after;
    }
    spans
}

#[test]
fn a_server_gets_columns_after_its_first_answer_and_at_once_after_a_restart() {
    let world = quiet();
    acquainted(&world).ends();
    let before = world.1.forms().len();
    let mut app = start(&world);
    sends(&mut app, 10, 5);
    app.ends();
    let forms = world.1.forms().split_off(before);
    assert!(!forms.is_empty());
    assert!(forms.iter().all(|form| form == MEDIA_TYPE), "{forms:?}");
    assert_stored(&world.1, 15);
}

#[test]
fn an_older_server_gets_json() {
    let world = quiet();
    world.1.reads_columns(false);
    for first in [0, 10] {
        let mut app = start(&world);
        sends(&mut app, first, 5);
        sends(&mut app, first + 5, 5);
        app.ends();
    }
    let forms = world.1.forms();
    assert!(forms.iter().all(|form| form == JSON), "{forms:?}");
    assert_stored(&world.1, 20);
}

#[test]
fn after_a_roll_back_of_the_server_one_request_is_refused_and_nothing_is_lost() {
    let world = quiet();
    let mut app = acquainted(&world);
    let before = world.1.forms().len();
    world.1.reads_columns(false);
    sends(&mut app, 10, 5);
    sends(&mut app, 15, 5);
    app.ends();
    let mut app = start(&world);
    sends(&mut app, 20, 5);
    app.ends();
    let forms = world.1.forms().split_off(before);
    let (refused, others) = forms.split_first().unwrap();
    assert_eq!(refused, MEDIA_TYPE);
    assert!(others.iter().all(|form| form == JSON), "{forms:?}");
    assert_stored(&world.1, 25);
    // The server is updated again.
    world.1.reads_columns(true);
    let mut app = start(&world);
    sends(&mut app, 25, 5);
    sends(&mut app, 30, 5);
    app.ends();
    assert_eq!(world.1.forms().last().unwrap(), MEDIA_TYPE);
    assert_stored(&world.1, 35);
}

#[test]
fn what_a_killed_app_left_is_sent_once_in_columns() {
    let world = quiet();
    let mut app = acquainted(&world);
    let before = world.1.forms().len();
    app.does("spans 10 50 0");
    // The background thread hands the spans to the system within a second.
    let deadline = Instant::now() + Duration::from_secs(30);
    while spilled_spans(&world.0) < 50 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    app.killed(0);
    for _ in 0..2 {
        let mut app = start(&world);
        app.does("flush");
        app.ends();
    }
    let forms = world.1.forms().split_off(before);
    assert!(forms.iter().all(|form| form == MEDIA_TYPE), "{forms:?}");
    assert_stored(&world.1, 60);
    let sent_twice = world
        .1
        .taken()
        .iter()
        .filter(|batch| batch["spans"][0]["attributes"]["number"] == "10")
        .count();
    assert_eq!(sent_twice, 1);
}

#[test]
fn what_a_killed_app_of_an_earlier_version_left_is_sent_once() {
    let world = quiet();
    let head = json!({
        "batch_id": "0192f0c0-7b3e-7cc1-9a55-0123456789ab",
        "resource": {"app_id": "com.example.shop", "install_id": "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11"},
    });
    let metric = json!({"name": "m", "time": "2026-11-20T12:00:00Z", "value": 1});
    let lines = format!("{head}\nmetrics\t{metric}\nmetrics\t{metric}\n");
    std::fs::write(world.0.path().join("pending.jsonl"), lines).unwrap();
    for _ in 0..2 {
        let mut app = start(&world);
        app.does("flush");
        app.ends();
    }
    let taken = world.1.taken();
    let left: Vec<&Value> = taken
        .iter()
        .filter(|batch| batch["batch_id"] == head["batch_id"])
        .collect();
    assert_eq!(left.len(), 1, "{taken:?}");
    assert_eq!(left[0]["metrics"].as_array().unwrap().len(), 2);
}

#[test]
fn a_batch_in_columns_that_is_too_large_is_sent_in_halves() {
    let world = quiet();
    let mut app = acquainted(&world);
    let before = world.1.forms().len();
    world.1.answer(|batch| match batch["spans"].as_array() {
        Some(spans) if spans.len() > 2 => Answer::Status(413),
        _ => Answer::Take,
    });
    sends(&mut app, 10, 7);
    app.ends();
    let forms = world.1.forms().split_off(before);
    assert!(forms.len() > 4, "{forms:?}");
    assert!(forms.iter().all(|form| form == MEDIA_TYPE), "{forms:?}");
    assert_stored(&world.1, 17);
}
