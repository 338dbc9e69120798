//! The wall clock is changed.

use serde_json::{Value, json};
use unjank::protocol::Timestamp;

use crate::app::{App, BYTES};
use crate::collecting::{Answer, Collecting};
use crate::truth::{Stored, number};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

fn time(text: &Value) -> Timestamp {
    Timestamp::parse(text.as_str().unwrap()).unwrap()
}

#[test]
fn changing_the_clock_loses_nothing_and_every_event_keeps_its_age() {
    let folder = tempfile::tempdir().unwrap();
    let server = Collecting::start(&json!({"interval_s": 1}));
    server.answer(|_| Answer::Vanish);
    let mut app = App::start(&server.url(), folder.path());
    // When the clock goes back, the first spans are on disk, and the next ones may still be in memory.
    app.does("spans 0 5 0");
    app.does("keep");
    app.does("spans 5 5 0");
    app.does("traffic 10");
    app.does(&format!("span_over 10 {}", -3 * DAY));
    app.does("spans 11 9 0");
    app.does("traffic 10");
    app.does("flush");
    app.does(&format!("span_over 20 {}", 5 * DAY));
    app.does("spans 21 9 0");
    app.does("traffic 10");
    app.does("flush");
    // So far ahead that everything would be too old.
    app.does(&format!("span_over 30 {}", 30 * DAY));
    app.does("spans 31 9 0");
    app.does("traffic 10");
    app.does("flush");
    server.answer(|_| Answer::Take);
    app.does("flush");
    app.ends();

    let stored = Stored::new(server.taken());
    assert!(
        stored.numbers().into_iter().eq(0..40),
        "no event should be lost"
    );
    assert!(stored.dropped("spans").is_empty());
    assert_eq!(stored.traffic("requests"), 40);
    assert_eq!(stored.traffic("tx_bytes"), 40 * BYTES);
    let days: std::collections::BTreeSet<&str> = stored
        .events("traffic")
        .iter()
        .map(|row| row["day"].as_str().unwrap())
        .collect();
    assert_eq!(days.len(), 4, "each on the day that the device showed");
    let mut clocks = std::collections::BTreeSet::new();
    for batch in stored.batches() {
        let sent_at = time(&batch["sent_at"]);
        for span in batch["spans"].as_array().into_iter().flatten() {
            // The server corrects times by `sent_at`, so it has to fit every event of the batch.
            let age = sent_at.micros_since(time(&span["start"]));
            let number = number(span);
            assert!((0..60_000_000).contains(&age), "{number} is {age} µs old");
            clocks.insert(sent_at.as_micros() / (HOUR * 1_000_000));
            let duration = span["duration_us"].as_i64().unwrap();
            let longest = if span["name"] == "over" {
                60_000_000
            } else {
                1_000_000
            };
            assert!(
                (0..longest).contains(&duration),
                "{number} took {duration} µs"
            );
            assert!(span["name"] != "over" || duration >= 100_000);
        }
    }
    assert!(clocks.len() >= 4, "{clocks:?}");
}

#[test]
fn events_belong_to_the_user_at_the_time_they_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let server = Collecting::start(&json!({}));
    let mut app = App::start(&server.url(), folder.path());
    app.does("spans 0 10 0");
    app.does("user ann");
    app.does("spans 10 10 0");
    app.does("user bob");
    app.does("spans 20 10 0");
    app.does("user ann");
    app.does("user bob");
    app.does("flush");
    app.ends();
    let stored = Stored::new(server.taken());
    assert_eq!(stored.numbers().len(), 30);
    for batch in stored.batches() {
        let user = batch["resource"]["user_id"].as_str().unwrap();
        for span in batch["spans"].as_array().into_iter().flatten() {
            let expected = ["", "ann", "bob"][usize::try_from(number(span) / 10).unwrap()];
            assert_eq!(user, expected, "{span}");
        }
    }
}
