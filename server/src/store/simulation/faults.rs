//! Injects faults into a server while its devices send.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::disk::Image;
use super::fault_kinds::{Fault, end_later};
use super::world::{Running, World};
use super::{backups, drain, sharing_faults};

/// How often and how long faults strike.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) seconds: u64,
    /// Longest pause between two faults, in milliseconds.
    pub(super) longest: u64,
}

/// Keeps a server running while faults strike. Returns the server that runs at the end.
pub(super) async fn run_with_faults(world: &Arc<World>, faults: &[Fault], pace: Pace) -> Running {
    let until = Instant::now() + Duration::from_secs(pace.seconds);
    let mut running = start(world).await;
    let mut image = world.disk.image();
    let backups = faults
        .contains(&Fault::Restored)
        .then(|| tokio::spawn(backups::run(Arc::clone(world))));
    while Instant::now() < until {
        if world.chance.happens(300) {
            world.history.say(|| "a backup is made".to_owned());
            image = world.disk.image();
        }
        let wait = world.chance.millis(100, pace.longest);
        tokio::select! {
            biased;
            () = world.disk.ended() => {
                world.bury(running).await;
                running = start(world).await;
                continue;
            }
            () = sleep(wait) => {}
        }
        let Some(fault) = (!faults.is_empty()).then(|| world.chance.pick(faults)) else {
            continue;
        };
        world
            .history
            .say(|| format!("fault of {}: {}", world.name, fault.name()));
        *world.truth().faults.entry(fault.name()).or_default() += 1;
        if fault == Fault::Stop {
            world.stop(running).await;
            running = start(world).await;
        } else if let Some(down) = strike(world, &running, fault) {
            tokio::select! {
                biased;
                () = world.disk.ended() => {}
                // An idle process performs no operation at which it could end.
                () = sleep(Duration::from_secs(3)) => world.disk.end_now(),
            }
            world.bury(running).await;
            while_down(world, down, &image);
            if down == Fault::Drained {
                drain::while_lost(world).await;
            }
            sleep(world.chance.millis(10, 3_000)).await;
            running = start(world).await;
        }
    }
    if let Some(backups) = backups {
        backups.abort();
        let _ended = backups.await;
        world.hold(false);
    }
    heal(world);
    if world.disk.has_ended() {
        world.bury(running).await;
        running = start(world).await;
    }
    running
}

/// Starts the server, and retries each second as a supervisor does. No fault damages a synced file, so no start fails because of one.
async fn start(world: &Arc<World>) -> Running {
    loop {
        match world.start() {
            Ok(running) => return running,
            Err(error) => {
                let text = format!("the server does not start: {error:#}");
                assert!(!text.contains("damaged"), "seed {}: {text}", world.seed);
                world.history.say(|| text);
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
}
/// Applies a fault. Returns the fault if it needs the server to be down.
fn strike(world: &Arc<World>, running: &Running, fault: Fault) -> Option<Fault> {
    let chance = &world.chance;
    let for_a_while = |end: fn(&World)| end_later(world, &[2_000, 15_000, 100_000], end);
    match fault {
        Fault::Kill
        | Fault::PowerCut
        | Fault::LostLog
        | Fault::LostLedger
        | Fault::OlderLedger
        | Fault::OlderFolder
        | Fault::Restored
        | Fault::Drained => {
            world.disk.end_after(chance.below(40));
            return Some(fault);
        }
        Fault::DiskFails => {
            world.disk.fail(chance.pick(&[10, 100, 500]));
            for_a_while(|world| world.disk.fail(0));
        }
        Fault::DiskFull => {
            world.disk.fill(true);
            for_a_while(|world| world.disk.fill(false));
        }
        Fault::StoreRestarts => world.store.restart(chance.millis(0, 5_000)),
        Fault::StoreFails => {
            world.store.fail(chance.pick(&[20, 100, 400]));
            for_a_while(|world| world.store.fail(0));
        }
        Fault::StoreSlow => {
            world.store.slow_down(true);
            for_a_while(|world| world.store.slow_down(false));
        }
        Fault::TableAway => {
            let tables = [
                "spans",
                "spans_hourly",
                "spans_daily",
                "traffic_daily",
                "outcomes",
            ];
            let is_first = world.store.tables().table_away.is_none();
            if is_first {
                world.store.tables().table_away = Some(chance.pick(&tables));
                for_a_while(|world| world.store.tables().table_away = None);
            }
        }
        Fault::Refused => {
            world.store.tables().poison = Some(chance.pick(&[2, 5, 11]) | 1);
            for_a_while(|world| world.store.tables().poison = None);
        }
        Fault::Retry => {
            let retry = super::retry_dead_letters(Arc::clone(world), running.files.clone(), 1);
            tokio::spawn(retry);
        }
        Fault::Stop => {}
        Fault::Paused
        | Fault::ControlAway
        | Fault::ControlFails
        | Fault::StoreAway
        | Fault::LateInserts
        | Fault::CutOff => sharing_faults::strike(world, fault),
        Fault::TooLarge => {
            world.allow_events(chance.below(4) as usize + 1);
            for_a_while(|world| world.allow_events(usize::MAX));
        }
    }
    None
}

fn while_down(world: &World, fault: Fault, image: &Image) {
    let (ledger, log) = (Path::new("/data/drain.json"), Path::new("/data/log"));
    match fault {
        Fault::PowerCut => {
            world.disk.cut_power();
            world.store.cut_power(Duration::from_millis(500));
        }
        Fault::LostLog => {
            world.excuse_what_is_not_stored();
            world.truth().lost_a_log = true;
            world.disk.restore(None, |path| path.starts_with(log));
        }
        Fault::LostLedger => {
            world.truth().lost_a_ledger = true;
            world.disk.restore(None, |path| path == ledger);
        }
        Fault::OlderLedger => {
            world.truth().lost_a_ledger = true;
            world.disk.restore(Some(image), |path| path == ledger);
        }
        Fault::OlderFolder => {
            world.excuse_what_is_not_stored();
            world.truth().lost_a_ledger = true;
            world.disk.restore(Some(image), |_| true);
        }
        Fault::Restored => {
            if let Some(set) = world.kept_backup() {
                backups::restore(world, &set);
            }
        }
        _ => {}
    }
}

fn heal(world: &World) {
    world.history.say(|| "the faults end".to_owned());
    world.disk.fail(0);
    world.disk.fill(false);
    world.store.fail(0);
    world.store.slow_down(false);
    let mut tables = world.store.tables();
    (tables.table_away, tables.poison) = (None, None);
    drop(tables);
    world.allow_events(usize::MAX);
    sharing_faults::heal(world);
}
