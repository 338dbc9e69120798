//! Histories that random faults reach too seldom, step by step.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::batch::{Batch, Event};
use super::world::{Answer, Running, World};
use super::{retry_dead_letters, verdict};
use crate::metrics::Metrics;
use crate::store::drain::dead_letter::DeadLetterError;
use crate::store::drain::dead_letter_header::DeadLetter;

/// ClickHouse rejects events whose ids are divisible by this number.
const POISON: u64 = 11;

/// Runs a history on a thread with paused time.
pub(super) fn alone<T>(history: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let result = runtime.block_on(history);
    runtime.shutdown_background();
    result
}

pub(super) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(600);
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

fn letters(world: &World, running: &Running) -> Vec<DeadLetter> {
    let letters = world.dead_letters(&running.files).unwrap();
    let (items, unreadable) = letters.list().unwrap();
    assert!(unreadable.is_empty(), "{unreadable:?}");
    items
}

/// Sends a batch of these events until the server acknowledges it.
pub(super) async fn send(world: &Arc<World>, batch: u128, events: &[(u64, &'static str)]) {
    world.truth().events.extend(events.iter().copied());
    let at = world.now();
    let events = events
        .iter()
        .map(|(id, table)| Event { id: *id, table, at });
    let batch = Batch {
        id: Uuid::from_u128(batch),
        project: "shop",
        split_from: Vec::new(),
        events: events.collect(),
    };
    while world.send(&batch).await != Answer::Acknowledged {
        sleep(Duration::from_millis(100)).await;
    }
}

/// Sends a record of three frames: the spans of two sessions, which become dead letters, and traffic, whose table is away. So the range of the
/// record is unfinished. ClickHouse would accept the spans afterwards.
async fn leave_a_range_unfinished(world: &Arc<World>, running: &Running) {
    world.store.tables().poison = Some(POISON);
    world.store.tables().table_away = Some("traffic");
    let events = [(POISON, "spans"), (2 * POISON, "spans"), (7, "traffic")];
    // The model gives batches with such ids two sessions.
    send(world, 3, &events).await;
    let are_letters = || letters(world, running).len() == 2;
    until("both sessions are dead letters", are_letters).await;
    world.store.tables().poison = None;
}

/// Starts a server with an unfinished range.
async fn with_unfinished_range(world: &Arc<World>) -> Running {
    let running = world.start().unwrap();
    leave_a_range_unfinished(world, &running).await;
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
    wrong.extend(verdict::judge(&world, &[&running]));
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
        let connection = world.connection();
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

#[test]
fn after_a_restore_a_dead_letter_is_dropped_only_after_the_whole_log_is_drained() {
    alone(async {
        let world = World::new(1, false, Arc::new(Metrics::new()));
        let ledger = Path::new("/data/drain.json");
        // The log keeps the record of a range that is finished, before that of the range with the dead letters.
        world.hold(true);
        let mut running = world.start().unwrap();
        send(&world, 1, &[(5, "traffic")]).await;
        let is_stored = || {
            let rows = world.store.rows("traffic");
            running.log.pending_records() == 0 && !rows.is_empty()
        };
        until("the first range is finished", is_stored).await;
        leave_a_range_unfinished(&world, &running).await;
        world.disk.end_now();
        world.bury(running).await;
        // Only `batches` was copied after the first record was stored. Backups have no ledger.
        let batches = world.store.parts("batches");
        let tables = BTreeMap::from([("batches".to_owned(), batches)]);
        world.store.replace(&tables);
        world.disk.restore(None, |path| path == ledger);
        running = world.start().unwrap();
        let is_cut = || {
            let text = running.files.read(ledger);
            text.is_ok_and(|text| String::from_utf8_lossy(&text).contains("\"range\":{"))
        };
        until("the record of the first range is sent again", is_cut).await;
        let connection = world.connection();
        let folder = world.dead_letters(&running.files).unwrap();
        let id = letters(&world, &running)[0].id.clone();
        // The range that is being sent is another one, and stays unfinished, because its traffic is missing too.
        assert!(running.log.pending_records() > 1);
        let refused = folder.drop_item(&id, ledger, &connection).await;
        assert!(
            matches!(refused, Err(DeadLetterError::Unfinished)),
            "{refused:?}"
        );
        world.store.tables().table_away = None;
        let is_drained = || running.log.pending_records() == 0;
        until("the whole log is drained", is_drained).await;
        folder.drop_item(&id, ledger, &connection).await.unwrap();
        assert_eq!(letters(&world, &running).len(), 1);
        let counts = ["stored", "dead_letter", "rejected"].map(|one| counted(&world, one));
        assert_eq!(counts, [2, 1, 1]);
        world.stop(running).await;
    });
}
