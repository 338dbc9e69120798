//! Retries of batches that the server does not accept immediately.

use crate::sink::{Act, Sink};

const QUICK: [&str; 8] = [
    "--rate",
    "max",
    "--batches",
    "30",
    "--retry-first",
    "5ms",
    "--retry-after-scale",
    "0.01",
];

fn run(sink: &Sink, more: &[&str]) -> serde_json::Value {
    let arguments: Vec<&str> = QUICK.iter().chain(more).copied().collect();
    let (_, mut report) = sink.run(&arguments);
    report["phases"][0]["load"].take()
}

#[test]
fn a_busy_server_eventually_gets_every_batch_once() {
    let sink = Sink::start(|number| match number % 3 {
        0 => Act::Refuse(503),
        1 => Act::Refuse(429),
        _ => Act::Take,
    });
    let load = run(&sink, &["--batch-retries-forever"]);
    let seen = sink.finish();
    assert_eq!(seen.batches.len(), 30);
    assert!(seen.batches.values().all(|(_, times)| *times == 1));
    assert_eq!(load["acknowledged"], 30);
    assert_eq!(load["unknown"], 0);
    assert_eq!(load["statuses"]["202"], 30);
    assert!(load["retries"].as_u64().unwrap() > 30);
}

#[test]
fn a_batch_whose_response_was_lost_is_retried_with_the_same_id() {
    let sink = Sink::start(|number| {
        if number < 10 {
            Act::KeepAndFail
        } else {
            Act::Take
        }
    });
    let load = run(&sink, &[]);
    let seen = sink.finish();
    assert_eq!(seen.batches.len(), 30);
    assert_eq!(seen.requests, 40);
    let repeated = seen.batches.values().filter(|(_, times)| *times > 1);
    assert_eq!(load["duplicates"], repeated.count());
    assert_eq!(load["acknowledged"], 30);
}

#[test]
fn a_rejected_batch_is_dropped_and_a_failing_one_is_given_up() {
    let sink = Sink::start(|_| Act::Refuse(422));
    let load = run(&sink, &[]);
    assert_eq!(load["refused"], 30);
    assert_eq!(load["retries"], 0);

    let sink = Sink::start(|_| Act::Refuse(500));
    let load = run(&sink, &["--attempts", "3"]);
    assert_eq!(load["unknown"], 30);
    assert_eq!(load["attempts"], 90);
}
