//! The server is down for longer than the app waits between uploads, and restarts on the same port.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::app::{App, BYTES};
use crate::collecting::{Answer, Collecting};
use crate::server::Server;
use crate::truth::Stored;

const RULES: &str = "version = 2\nbuilt_in = true\n";

fn kill(server: &mut Server) {
    server.child.kill().unwrap();
    server.child.wait().unwrap();
}

fn restart(server: &mut Server) {
    server.child = Server::serve(server.folder.path(), server.listen, server.admin);
    assert!(server.becomes_ready());
}

#[test]
fn after_kills_of_both_server_and_app_their_counts_agree() {
    let mut server = Server::start(RULES);
    server.configure(&json!({"base": {"upload": {"interval_s": 10, "max_batch_events": 50}}}));
    let data = server.folder.path().join("app");
    let mut app = App::start(&server.url(), &data);
    app.does("spans 0 100 0");
    app.does("traffic 10");
    app.does("flush");
    kill(&mut server);
    for round in 0..6 {
        app.does(&format!("spans {} 50 0", 100 + round * 50));
        app.does("traffic 10");
        std::thread::sleep(Duration::from_millis(300));
        app.does("flush");
    }
    // Kill the app as well: its events are on disk.
    app.killed(0);
    let mut app = App::start(&server.url(), &data);
    app.storms(10_000);
    restart(&mut server);
    kill(&mut server);
    restart(&mut server);
    std::thread::sleep(Duration::from_millis(500));
    let life = app.killed(10_000);
    let mut app = App::start(&server.url(), &data);
    app.does("flush");
    app.ends();
    server.wait("draining the log", || server.is_drained());

    let number = "toUInt64(attributes['number'])";
    let stored = server.sql(&format!(
        "SELECT count(), uniqExact(span_id), uniqExact({number}) FROM spans WHERE {number} < 10000"
    ));
    assert_eq!(stored, "400\t400\t400");
    let stored = server.sql(&format!(
        "SELECT count(), uniqExact({number}), max({number}) + 1 FROM spans WHERE {number} >= 10000"
    ));
    let stored: Vec<u64> = stored
        .split('\t')
        .map(|count| count.parse().unwrap())
        .collect();
    assert_eq!(stored[0], stored[1], "each span should be stored once");
    assert_eq!(stored[0], stored[2] - life.first, "there should be no gap");
    assert!(
        life.kept <= stored[2] && stored[2] <= life.made,
        "{life:?} {stored:?}"
    );
    let traffic = server.sql("SELECT sum(requests), sum(tx_bytes) FROM traffic");
    let (requests, bytes) = traffic.split_once('\t').unwrap();
    let requests: u64 = requests.parse().unwrap();
    assert_eq!(bytes.parse::<u64>().unwrap(), requests * BYTES);
    let (kept, made) = (70 + life.kept_requests, 70 + life.made_requests);
    assert!(
        kept <= requests && requests <= made,
        "{kept} {requests} {made}"
    );
}

#[test]
fn without_a_flush_events_are_sent_when_the_server_is_back_and_retries_are_rare_until_then() {
    let folder = tempfile::tempdir().unwrap();
    let server = Collecting::start(&json!({"interval_s": 1, "max_batch_events": 50}));
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    server.answer(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Answer::Vanish
    });
    let mut app = App::start(&server.url(), folder.path());
    let begun = Instant::now();
    for round in 0..60 {
        app.does(&format!("spans {} 20 0", round * 20));
        app.does("traffic 1");
        std::thread::sleep(Duration::from_millis(100));
    }
    let attempts = attempts.load(Ordering::Relaxed);
    // One attempt per second, which the HTTP client may repeat once.
    let most = usize::try_from(begun.elapsed().as_secs() * 3).unwrap();
    assert!((3..=most).contains(&attempts), "{attempts}");
    server.answer(|_| Answer::Take);
    let begun = Instant::now();
    loop {
        let stored = Stored::new(server.taken());
        if stored.numbers().len() == 1_200 && stored.traffic("requests") == 60 {
            break;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "events are missing"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    app.ends();
    let stored = Stored::new(server.taken());
    assert!(stored.numbers().into_iter().eq(0..1_200));
    assert_eq!(stored.traffic("tx_bytes"), 60 * BYTES);
}
