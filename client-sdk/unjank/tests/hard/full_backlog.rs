//! The server is down while a long backlog grows.

use std::path::Path;

use serde_json::json;

use crate::app::App;
use crate::collecting::{Answer, Collecting};
use crate::truth::Stored;

fn bytes(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder.join("queue")).unwrap();
    files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum()
}

/// Returns an app that has its configuration on disk: the log is opened with the limit of the last one.
fn configured(server: &Collecting, folder: &Path) -> App {
    let mut app = App::start(&server.url(), folder);
    app.does("flush");
    app.ends();
    App::start(&server.url(), folder)
}

#[test]
fn ten_megabytes_are_sent_once_when_the_server_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let server = Collecting::start(&json!({"max_batch_events": 50, "max_queue_bytes": 30_000_000}));
    let mut app = configured(&server, folder.path());
    server.answer(|_| Answer::Vanish);
    // Each span carries eight texts of a kibibyte.
    for round in 0..8 {
        app.does(&format!("spans {} 200 8", round * 200));
        app.does("metrics 50");
        app.does("flush");
    }
    let waiting = bytes(folder.path());
    assert!(waiting > 9_500_000, "{waiting}");
    // At first, every second accepted batch is not acknowledged.
    let mut times = 0;
    server.answer(move |_| {
        times += 1;
        if times % 2 == 1 {
            Answer::TakeAndVanish
        } else {
            Answer::Take
        }
    });
    for _ in 0..20 {
        app.does("flush");
    }
    server.answer(|_| Answer::Take);
    app.does("flush");
    app.ends();
    let stored = Stored::new(server.taken());
    assert!(stored.numbers().into_iter().eq(0..1_600));
    assert_eq!(stored.events("metrics").len(), 400);
    assert!(stored.dropped("spans").is_empty());
    assert!(
        server.taken().len() > stored.batches().count(),
        "some batches should arrive twice"
    );
}

#[test]
fn events_dropped_to_make_room_are_counted_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let server = Collecting::start(&json!({"max_batch_events": 50, "max_queue_bytes": 5_000_000}));
    let mut app = configured(&server, folder.path());
    server.answer(|_| Answer::Vanish);
    // Each flush reports the losses so far in a batch, which later makes room itself.
    for round in 0..10 {
        app.does(&format!("spans {} 200 8", round * 200));
        app.does("metrics 50");
        app.does("flush");
    }
    assert!(bytes(folder.path()) < 6_000_000);
    // These batches report the losses of the last ones: a killed process loses no counts that are on disk.
    for number in 2_000..2_003 {
        app.does(&format!("spans {number} 1 0"));
        app.does("flush");
    }
    app.killed(0);
    server.answer(|_| Answer::Take);
    let mut app = App::start(&server.url(), folder.path());
    app.does("flush");
    app.ends();
    let stored = Stored::new(server.taken());
    for (signal, made) in [("spans", 2_003), ("metrics", 500)] {
        let dropped = stored.dropped(signal);
        let lost = dropped.get("disk_full").copied().unwrap_or_default();
        assert_eq!(dropped.len(), 1, "{signal}: {dropped:?}");
        assert_eq!(stored.events(signal).len() as u64 + lost, made, "{signal}");
        assert!(lost > made / 4, "{signal}: {lost}");
    }
    let newest = stored.numbers().into_iter().next_back();
    assert_eq!(newest, Some(2_002), "the newest should be kept");
}
