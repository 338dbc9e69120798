//! A full disk: no file of the app's process may grow, so every write fails as it would on a full disk.

use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;

use crate::app::{App, BYTES};
use crate::collecting::{Answer, Collecting};
use crate::truth::Stored;

/// Limits the size of the app's files, or removes the limit.
fn limit_files(app: &App, bytes: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(app.pid()).unwrap());
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    prlimit(pid, Resource::Fsize, limit).unwrap();
}

fn longest_file(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder.join("queue")).unwrap();
    let lengths = files.map(|file| file.unwrap().metadata().unwrap().len());
    lengths.max().unwrap()
}

/// With `full`, no file may grow from the start.
fn start(server: &Collecting, folder: &Path, full: bool) -> App {
    let limit = if full { "ulimit -S -f 0; " } else { "" };
    // A shell that ignores the signal that would otherwise kill the process, so that the write fails instead.
    let script = format!("trap '' XFSZ; {limit}exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]);
    shell.arg(std::env::current_exe().unwrap());
    App::start_by(shell, &server.url(), folder)
}

#[test]
fn a_full_disk_drops_and_counts_the_oldest_events_and_stores_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let server = Collecting::start(&json!({
        "interval_s": 1, "max_batch_events": 50, "max_queue_bytes": 4_500_000
    }));
    server.answer(|_| Answer::Status(503));
    let mut app = start(&server, folder.path(), false);
    app.does("spans 0 100 4");
    app.does("flush");
    // The next write fails in the middle, and later ones at once.
    limit_files(&app, Some(longest_file(folder.path()) + 100));
    for round in 0..10 {
        app.does(&format!("spans {} 200 4", 100 + round * 200));
        app.does("metrics 20");
        app.does("flush");
    }
    app.does("traffic 10");
    // The server comes back before the disk: batches in memory are sent from there, and so is traffic.
    server.answer(|_| Answer::Take);
    for round in 0..10 {
        app.does(&format!("spans {} 10 4", 2_100 + round * 10));
        app.does("traffic 10");
        app.does("flush");
    }
    assert_eq!(Stored::new(server.taken()).traffic("requests"), 110);
    limit_files(&app, None);
    app.does("spans 2200 100 4");
    app.does("traffic 10");
    app.does("flush");
    app.ends();
    // The next process finds nothing that was not sent.
    let mut app = start(&server, folder.path(), false);
    app.does("flush");
    app.ends();

    let stored = Stored::new(server.taken());
    let arrived = stored.numbers();
    let dropped = stored.dropped("spans");
    let lost = dropped.get("disk_full").copied().unwrap_or_default();
    assert_eq!(dropped.len(), 1, "{dropped:?}");
    assert_eq!(arrived.len() as u64 + lost, 2_300);
    let metrics_lost: u64 = stored.dropped("metrics").values().sum();
    assert_eq!(stored.events("metrics").len() as u64 + metrics_lost, 200);
    assert!((2_000..2_300).all(|number| arrived.contains(&number)));
    assert_eq!(stored.traffic("requests"), 120);
    assert_eq!(stored.traffic("tx_bytes"), 120 * BYTES);
}

#[test]
fn traffic_that_may_have_been_sent_is_not_sent_again_after_a_start_on_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let server = Collecting::start(&json!({"max_queue_bytes": 4_500_000}));
    server.answer(|_| Answer::Vanish);
    let mut app = start(&server, folder.path(), false);
    app.does("spans 0 100 1");
    app.does("flush");
    // Enough to record which rows a batch takes, but not for the batch, which is sent from memory.
    limit_files(&app, Some(10_000));
    app.does("traffic 10");
    server.answer(|batch| {
        let is_traffic = !batch["traffic"].is_null();
        if is_traffic {
            Answer::TakeAndVanish
        } else {
            Answer::Take
        }
    });
    app.does("flush");
    app.killed(0);
    assert_eq!(Stored::new(server.taken()).traffic("requests"), 10);
    let mut app = start(&server, folder.path(), true);
    app.does("traffic 10");
    app.does("flush");
    limit_files(&app, None);
    server.answer(|_| Answer::Take);
    app.does("traffic 10");
    app.does("flush");
    app.ends();
    let stored = Stored::new(server.taken());
    assert_eq!(stored.traffic("requests"), 30);
    assert_eq!(stored.traffic("tx_bytes"), 30 * BYTES);
    assert!(stored.numbers().into_iter().eq(0..100));
}

#[test]
fn a_kill_during_a_split_on_a_full_disk_loses_and_duplicates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Collecting::start(&json!({"max_queue_bytes": 4_500_000, "max_batch_events": 60}));
    server.answer(|_| Answer::Vanish);
    let mut app = start(&server, folder.path(), false);
    app.does("spans 0 60 1");
    app.does("flush");
    let is_large = |batch: &serde_json::Value| batch["spans"].as_array().map_or(0, Vec::len) > 40;
    let begins = |batch: &serde_json::Value, number: &str| {
        batch["spans"][0]["attributes"]["number"] == number
    };
    // Neither half fits on the disk; the first one arrives.
    limit_files(&app, Some(longest_file(folder.path()) + 100));
    server.answer(move |batch| match (is_large(batch), begins(batch, "0")) {
        (true, _) => Answer::Status(413),
        (false, true) => Answer::Take,
        (false, false) => Answer::Status(503),
    });
    app.does("flush");
    app.killed(0);
    let first = Stored::new(server.taken());
    assert!(first.numbers().into_iter().eq(0..30));
    server.answer(move |batch| match is_large(batch) {
        true => Answer::Status(413),
        false => Answer::Take,
    });
    let mut app = start(&server, folder.path(), false);
    app.does("flush");
    app.ends();
    let stored = Stored::new(server.taken());
    assert!(stored.numbers().into_iter().eq(0..60));
    assert!(stored.dropped("spans").is_empty());
}

#[test]
fn batches_kept_in_memory_outlive_the_app_once_the_disk_has_room() {
    let folder = tempfile::tempdir().unwrap();
    let server = Collecting::start(&json!({"max_queue_bytes": 4_500_000, "max_batch_events": 10}));
    server.answer(|_| Answer::Vanish);
    let mut app = start(&server, folder.path(), false);
    app.does("spans 0 50 1");
    app.does("flush");
    limit_files(&app, Some(longest_file(folder.path()) + 100));
    app.does("spans 50 50 1");
    app.does("traffic 10");
    app.does("flush");
    limit_files(&app, None);
    app.does("spans 100 50 1");
    app.does("traffic 10");
    app.does("flush");
    app.killed(0);
    server.answer(|_| Answer::Take);
    let mut app = start(&server, folder.path(), false);
    app.does("flush");
    app.ends();
    let stored = Stored::new(server.taken());
    assert!(stored.numbers().into_iter().eq(0..150));
    assert_eq!(stored.traffic("requests"), 20);
    assert!(stored.dropped("spans").is_empty());
}
