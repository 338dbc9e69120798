//! A model of `unjank backup` and `unjank restore`: the same steps in the same order, with pauses between them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::backup_set::BackupSet;
use super::world::World;
use crate::store::old_fault::{OldFault, is_back};

/// The tables, in the order in which they are copied.
const PARTS: [&[&str]; 3] = [
    &["outcomes", "spans_daily", "spans_hourly", "traffic_daily"],
    &["spans", "traffic"],
    &["batches", "split_batches"],
];

/// Makes backups until it is aborted. The world keeps the latest complete backup.
pub(super) async fn run(world: Arc<World>) {
    loop {
        sleep(world.chance.millis(500, 20_000)).await;
        world.history.say(|| "a backup begins".to_owned());
        world.hold(!is_back(OldFault::BackupsDoNotHold));
        let made = make(&world).await;
        world.hold(false);
        let result = made.as_ref().map_or("fails", |_| "is complete");
        world.history.say(|| format!("the backup {result}"));
        if let Some(made) = made {
            world.keep(made);
        }
    }
}

async fn make(world: &World) -> Option<BackupSet> {
    let replaced = world.disk.replaced();
    let hint = world.disk.image().file(Path::new("/data/log/trimmed"));
    let letters = world.disk.image();
    let letters = letters.only(|path| path.starts_with("/data/dead-letter"));
    sleep(world.chance.millis(0, 1_000)).await;
    let starts = world.store.tables().starts;
    let mut tables = BTreeMap::new();
    let mut parts = PARTS;
    if is_back(OldFault::BackupsCopyInOrder) {
        parts.reverse();
    }
    for part in parts {
        let mut left = part.to_vec();
        while !left.is_empty() {
            let table = left.swap_remove(world.chance.below(left.len() as u64) as usize);
            tables.insert(table.to_owned(), world.store.parts(table));
            sleep(world.chance.millis(0, 300)).await;
        }
        let most = world.chance.pick(&[10, 1_000, 10_000]);
        sleep(world.chance.millis(0, most)).await;
    }
    // A restart of ClickHouse ends its copies.
    if world.store.tables().starts != starts {
        return None;
    }
    // The backup notices that its lock is in another folder.
    if world.disk.replaced() != replaced {
        return None;
    }
    let acknowledged = {
        let truth = world.truth();
        &truth.acknowledged - &truth.excused
    };
    let log = world.disk.image();
    if log.file(Path::new("/data/log/trimmed")) != hint && !is_back(OldFault::BackupsDoNotHold) {
        return None;
    }
    let log = log.only(|path| path.starts_with("/data/log"));
    Some(BackupSet {
        tables,
        files: log.with(letters),
        acknowledged,
    })
}

/// Restores a set. The server is down.
pub(super) fn restore(world: &World, set: &BackupSet) {
    world.store.restart(Duration::ZERO);
    world.store.replace(&set.tables);
    world.disk.restore(Some(&set.files), |_| true);
    let mut truth = world.truth();
    let later = &truth.acknowledged - &set.acknowledged;
    truth.excused.extend(later);
    truth.lost_a_ledger = true;
}
