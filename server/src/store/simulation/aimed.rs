//! Histories that random faults reach too seldom, step by step.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::connection::Connection;
use super::rows::{Batch, Event};
use super::world::{Answer, Running, World};
use super::{retry_dead_letters, verdict};
use crate::metrics::Metrics;
use crate::store::drain::dead_letter::{DeadLetter, DeadLetterError};

/// ClickHouse rejects events whose ids are divisible by this number.
const POISON: u64 = 11;

/// Runs a history on a thread with paused time.
fn alone<T>(history: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let result = runtime.block_on(history);
    runtime.shutdown_background();
    result
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(600);
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

fn letters(world: &World, running: &Running) -> Vec<DeadLetter> {
    let letters = world.dead_letters(&running.files).unwrap();
    letters.list().unwrap()
}

/// Starts a server with a record of three frames: the spans of two sessions, which have become dead letters, and traffic, whose table is away. So
/// the range of the record is unfinished. ClickHouse would accept the spans now.
async fn with_unfinished_range(world: &Arc<World>) -> Running {
    world.store.tables().poison = Some(POISON);
    world.store.tables().table_away = Some("traffic");
    let running = world.start().unwrap();
    let ids = [(POISON, "spans"), (2 * POISON, "spans"), (7, "traffic")];
    let events = ids.map(|(id, table)| Event {
        id,
        table,
        at: world.now(),
    });
    let known = events.iter().map(|event| (event.id, event.table));
    world.truth().events.extend(known);
    let batch = Batch {
        // The model gives batches with such ids two sessions.
        id: Uuid::from_u128(3),
        project: "shop",
        split_from: Vec::new(),
        events: events.to_vec(),
    };
    while world.send(&batch).await != Answer::Acknowledged {
        sleep(Duration::from_millis(100)).await;
    }
    let are_letters = || letters(world, &running).len() == 2;
    until("both sessions are dead letters", are_letters).await;
    world.store.tables().poison = None;
    running
}

/// Retries some of the two dead letters while the range is unfinished. Returns the violations at the end.
async fn retried_meanwhile(seed: u64, retried: usize, is_killed: bool) -> Vec<String> {
    let world = World::new(seed, false, Arc::new(Metrics::new()));
    let mut running = with_unfinished_range(&world).await;
    let mut wrong = retry_dead_letters(Arc::clone(&world), running.files.clone(), retried).await;
    assert_eq!(letters(&world, &running).len(), 2 - retried);
    assert!(running.log.pending_records() > 0, "the range is unfinished");
    if is_killed {
        world.disk.end_now();
        world.bury(running).await;
        running = world.start().unwrap();
    }
    // The writer tries the range several times.
    sleep(Duration::from_secs(30)).await;
    world.store.tables().table_away = None;
    let is_drained = || running.log.pending_records() == 0;
    until("the range is finished", is_drained).await;
    // Every fold is rolled up after that.
    sleep(Duration::from_secs(200)).await;
    let rest = retry_dead_letters(Arc::clone(&world), running.files.clone(), usize::MAX);
    wrong.extend(rest.await);
    wrong.extend(verdict::judge(&world, &running));
    world.stop(running).await;
    wrong
}

#[test]
fn dead_letters_of_an_unfinished_range_can_be_retried() {
    for (retried, is_killed) in [(0, false), (1, false), (1, true), (2, false), (2, true)] {
        let wrong = alone(retried_meanwhile(1, retried, is_killed));
        assert!(
            wrong.is_empty(),
            "{retried} retried, killed: {is_killed}: {wrong:#?}"
        );
    }
}

/// Returns how many events have an outcome.
fn counted(world: &World, outcome: &str) -> i64 {
    let rows = world.store.rows("outcomes").into_iter();
    let counts = rows.filter(|row| row["outcome"].text() == outcome);
    counts.map(|row| row["count"].number() as u64 as i64).sum()
}

#[test]
fn a_dead_letter_is_dropped_only_after_its_range_is_finished() {
    alone(async {
        let world = World::new(1, false, Arc::new(Metrics::new()));
        let running = with_unfinished_range(&world).await;
        let connection = Connection {
            store: world.store.clone(),
            disk: world.disk.clone(),
        };
        let folder = world.dead_letters(&running.files).unwrap();
        let ledger = Path::new("/data/drain.json");
        let id = letters(&world, &running)[0].id.clone();
        let refused = folder.drop_item(&id, ledger, &connection).await;
        assert!(
            matches!(refused, Err(DeadLetterError::Unfinished)),
            "{refused:?}"
        );
        // After a restore there is no ledger until the server starts.
        let refused = folder
            .drop_item(&id, Path::new("/data/none.json"), &connection)
            .await;
        assert!(
            matches!(refused, Err(DeadLetterError::Unfinished)),
            "{refused:?}"
        );
        assert_eq!(letters(&world, &running).len(), 2);
        world.store.tables().table_away = None;
        let is_drained = || running.log.pending_records() == 0;
        until("the range is finished", is_drained).await;
        folder.drop_item(&id, ledger, &connection).await.unwrap();
        assert_eq!(letters(&world, &running).len(), 1);
        let counts = ["stored", "dead_letter", "rejected"].map(|one| counted(&world, one));
        assert_eq!(counts, [1, 1, 1]);
        world.stop(running).await;
    });
}
