//! A running server while a copy of its log is drained, step by step.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::aimed::{alone, send, until};
use super::control::Control;
use super::drain::{copy_of, drain};
use super::verdict;
use super::world::{Running, World};
use crate::metrics::Metrics;

/// Starts a server that shares its control database.
fn start() -> (Arc<World>, Running) {
    let room = World::new(1, false, Arc::new(Metrics::new()));
    let world = room.beside("the server", Some(Control::new()), 0);
    let running = world.start().unwrap();
    (world, running)
}

fn rows(world: &World, table: &str) -> usize {
    world.store.rows(table).len()
}

/// The server is cut off. A copy of its log is drained, and the server gets one more batch. Then it is connected again. Returns the violations at
/// the end.
async fn drained_meanwhile(world: &Arc<World>, running: Running) -> Vec<String> {
    world.host.cut_off_control(true);
    world.host.cut_off_store(true);
    send(world, 30, &[(31, "spans")]).await;
    let copy = copy_of(world);
    send(world, 40, &[(41, "spans")]).await;
    // The server counts as gone.
    sleep(Duration::from_secs(130)).await;
    world.store.tables().table_away = None;
    drain(&copy, &Notify::new(), None).await;
    world.host.cut_off_control(false);
    world.host.cut_off_store(false);
    let is_drained = || running.log.pending_records() == 0;
    until("the log is drained", is_drained).await;
    // Every fold is rolled up after that.
    sleep(Duration::from_secs(200)).await;
    let wrong = verdict::judge(world, &[&running]);
    world.stop(running).await;
    wrong
}

#[test]
fn the_range_after_one_that_a_command_has_finished_is_sent_whole() {
    alone(async {
        let (world, running) = start();
        world.store.tables().table_away = Some("traffic");
        send(&world, 10, &[(11, "spans"), (13, "traffic")]).await;
        until("only traffic is missing", || rows(&world, "spans") == 1).await;
        let wrong = drained_meanwhile(&world, running).await;
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
}

#[test]
fn no_range_joins_an_open_fold_that_a_command_has_rolled_up() {
    alone(async {
        let (world, running) = start();
        world.store.tables().table_away = Some("spans_hourly");
        send(&world, 10, &[(11, "spans")]).await;
        until("the first fold waits", || rows(&world, "spans") == 1).await;
        sleep(Duration::from_secs(10)).await;
        // The next fold stays open while the first one waits.
        send(&world, 20, &[(21, "spans")]).await;
        until("the second fold is open", || rows(&world, "spans") == 2).await;
        let wrong = drained_meanwhile(&world, running).await;
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
}
