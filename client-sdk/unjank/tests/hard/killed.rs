//! The app is killed while it writes and sends.

use std::time::Duration;

use serde_json::json;

use crate::app::{App, BYTES, next};
use crate::collecting::{Answer, Collecting};
use crate::truth::Stored;

const LIVES: usize = 15;
/// A busy machine needs more lives.
const MOST_LIVES: usize = 60;
/// Enough spans that were on disk or sent before a kill.
const ENOUGH: u64 = 1_000;
/// Distance between the first numbers of two lives.
const APART: u64 = 1_000_000;

#[test]
fn repeated_kills_duplicate_nothing_and_lose_only_what_was_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let upload = json!({"interval_s": 1, "max_batch_events": 20, "max_queue_bytes": 50_000_000});
    let server = Collecting::start(&upload);
    let mut state = 1;
    server.answer(move |_| {
        state = next(state);
        match state % 10 {
            0 => Answer::TakeAndVanish,
            1 => Answer::Vanish,
            2 => Answer::Status(503),
            _ => Answer::Take,
        }
    });
    let (mut lives, mut kept_spans) = (Vec::new(), 0);
    while lives.len() < LIVES || kept_spans <= ENOUGH && lives.len() < MOST_LIVES {
        let life = lives.len() as u64;
        let mut app = App::start(&server.url(), folder.path());
        app.storms(life * APART);
        // Some are killed before the first batch, some after many.
        std::thread::sleep(Duration::from_millis(5 + next(life) % (500 + 20 * life)));
        let life = app.killed(life * APART);
        kept_spans += life.kept - life.first;
        lives.push(life);
    }
    server.answer(|_| Answer::Take);
    let mut app = App::start(&server.url(), folder.path());
    app.does("flush");
    app.ends();

    let stored = Stored::new(server.taken());
    let numbers = stored.numbers();
    for life in &lives {
        // Events reach the disk in order: everything up to some number is stored, and the rest was in memory.
        let arrived: Vec<u64> = numbers
            .range(life.first..life.first + APART)
            .copied()
            .collect();
        let end = arrived.last().map_or(life.first, |last| last + 1);
        assert!((life.first..end).eq(arrived), "gaps: {life:?} {end}");
        assert!(end >= life.kept && end <= life.made, "{life:?} {end}");
    }
    let made: u64 = lives.iter().map(|life| life.made_requests).sum();
    let kept: u64 = lives.iter().map(|life| life.kept_requests).sum();
    let requests = stored.traffic("requests");
    assert!(
        kept <= requests && requests <= made,
        "{kept} {requests} {made}"
    );
    assert_eq!(stored.traffic("tx_bytes"), requests * BYTES);
    assert!(stored.dropped("spans").is_empty() && stored.dropped("traffic").is_empty());
    assert!(
        kept_spans > ENOUGH,
        "the apps had too little time: {lives:?}"
    );
}
