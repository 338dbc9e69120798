//! Deterministic simulation of a server, its disk, ClickHouse and devices: each acknowledged event must be stored exactly once, whatever fails.
//!
//! Spool, ingest log, writer, folds and dead letters are the production code. The disk, ClickHouse and the devices are models. Each seed runs
//! on one thread with paused time, so a seed always replays the same history.
//!
//! `make test` runs 2,000 seeds, `make simulate SEEDS=1000000` runs more, and `make simulate SEED=7` prints the history of one.

#![expect(
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a model: its numbers are small, and its tasks end with their world"
)]

mod aimed;
mod backups;
mod batch;
mod chance;
mod connection;
mod device;
mod disk;
mod faults;
mod rows;
mod store;
mod verdict;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

use self::faults::Fault;
use self::world::World;
use super::drain::dead_letter::DeadLetterError;
use super::durable_file::DurableFiles;
use super::old_fault::{self, OldFault};
use crate::metrics::Metrics;

/// Seeds that failed once. They run first. Changes to the models change the histories of seeds.
const KEPT: &[u64] = &[
    2, 3, 13, 29, 46, 69, 83, 103, 147, 172, 193, 247, 253, 287, 305, 317, 336, 339, 347, 355, 384,
    388, 438, 446, 481, 488, 538, 565, 650, 1042, 1160, 1306, 3172, 3571, 6456, 6467, 13108, 20888,
    22216, 33418, 57848, 106_447, 131_428, 193_892, 5095, 10431, 12578, 16036, 16242, 17340, 47923,
    53329, 61880, 2467, 151_803, 122_910,
];

/// After the last fault, devices and the log must finish within this simulated time.
const REST: Duration = Duration::from_secs(900);

/// `seeds_hold` reports its progress after this many seeds.
const STEP: usize = 10_000;

/// The result of one seed.
struct Outcome {
    wrong: Vec<String>,
    history: Vec<String>,
    faults: BTreeMap<&'static str, u64>,
    events: usize,
}

fn run(seed: u64, faults: &[Fault], keeps_history: bool, metrics: &Arc<Metrics>) -> Outcome {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let outcome = runtime.block_on(live(seed, faults, keeps_history, metrics));
    runtime.shutdown_background();
    outcome
}

async fn live(seed: u64, faults: &[Fault], keeps_history: bool, metrics: &Arc<Metrics>) -> Outcome {
    let world = World::new(seed, keeps_history, Arc::clone(metrics));
    // A few kinds of faults lead to deeper states than all kinds at once.
    let faults: Vec<Fault> = faults
        .iter()
        .copied()
        .filter(|_| faults.len() < 4 || world.chance.happens(350))
        .collect();
    // A known limit, see docs/decisions/0016-backups.md.
    let refuses = faults.contains(&Fault::Refused);
    let meant = |fault: &Fault| *fault != Fault::Restored || !refuses;
    let faults: Vec<Fault> = faults.into_iter().filter(meant).collect();
    let devices: Vec<_> = (0..1 + world.chance.below(3))
        .map(|_| tokio::spawn(device::run(Arc::clone(&world), 3 + world.chance.below(12))))
        .collect();
    let running = faults::run_with_faults(&world, &faults).await;
    let deadline = Instant::now() + REST;
    while !devices.iter().all(tokio::task::JoinHandle::is_finished) && Instant::now() < deadline {
        sleep(Duration::from_secs(1)).await;
    }
    let mut wrong = Vec::new();
    if !devices.iter().all(tokio::task::JoinHandle::is_finished) {
        wrong.push("devices still wait for an answer".to_owned());
    }
    let log = running.log.clone();
    while log.pending_records() > 0 && Instant::now() < deadline {
        sleep(Duration::from_secs(1)).await;
    }
    // Longer than any attempt takes, so nothing is in flight and every fold is rolled up.
    sleep(Duration::from_secs(200)).await;
    let retried = retry_dead_letters(Arc::clone(&world), running.files.clone(), usize::MAX);
    wrong.extend(retried.await);
    wrong.extend(verdict::judge(&world, &running));
    world.stop(running).await;
    let truth = world.truth();
    Outcome {
        wrong,
        history: world.history.lines(),
        faults: truth.faults.clone(),
        events: truth.events.len(),
    }
}

/// Retries dead letters as an operator does. Returns the retries that failed, and the items that are damaged: no fault damages a synced file.
async fn retry_dead_letters(world: Arc<World>, files: DurableFiles, most: usize) -> Vec<String> {
    let Ok(letters) = world.dead_letters(&files) else {
        return Vec::new();
    };
    let connection = connection::Connection {
        store: world.store.clone(),
        disk: world.disk.clone(),
    };
    // A disk that fails hides some items.
    let (items, unreadable) = letters.list().unwrap_or_default();
    let is_damaged = |error: &&DeadLetterError| matches!(error, DeadLetterError::Damaged(..));
    let damaged = unreadable.iter().filter(is_damaged);
    let mut wrong: Vec<String> = damaged.map(ToString::to_string).collect();
    for item in items.into_iter().take(most) {
        world
            .history
            .say(|| format!("dead letter {} is retried", item.id));
        if let Err(error) = letters.retry(&item.id, &connection).await {
            wrong.push(format!(
                "dead letter {} cannot be retried: {error}",
                item.id
            ));
        }
    }
    wrong
}

/// Runs seeds on all cores until one fails. Returns the failed seed, the number of seeds run, and how often each fault struck.
fn run_many(
    seeds: std::ops::Range<u64>,
    faults: &[Fault],
    old_fault: Option<OldFault>,
) -> (Option<u64>, u64, BTreeMap<&'static str, u64>) {
    let next = AtomicU64::new(seeds.start);
    let failed = AtomicU64::new(u64::MAX);
    let work = || {
        old_fault::put_back(old_fault);
        let metrics = Arc::new(Metrics::new());
        let mut all: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut count = 0;
        while failed.load(Ordering::Relaxed) == u64::MAX {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            let outcome = run(seed, faults, false, &metrics);
            count += 1;
            for (name, times) in outcome.faults {
                *all.entry(name).or_default() += times;
            }
            *all.entry("events").or_default() += outcome.events as u64;
            if !outcome.wrong.is_empty() {
                failed.fetch_min(seed, Ordering::Relaxed);
            }
        }
        (count, all)
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (mut count, mut all) = (0, BTreeMap::new());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            let (of_thread, faults) = thread.join().unwrap();
            count += of_thread;
            for (name, times) in faults {
                *all.entry(name).or_default() += times;
            }
        }
    });
    let failed = failed.into_inner();
    ((failed != u64::MAX).then_some(failed), count, all)
}

/// Replays a seed. Returns its history, and whether the seed passes.
fn explain(seed: u64) -> (String, bool) {
    let Outcome { wrong, history, .. } = run(seed, &Fault::ALL, true, &Arc::new(Metrics::new()));
    let text = format!(
        "seed {seed}\n\n{}\n\nViolations:\n{}\n\nReplay: make simulate SEED={seed}\n",
        history.join("\n"),
        wrong.join("\n")
    );
    (text, wrong.is_empty())
}

fn env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().expect("a number"))
}

/// Runs 2,000 seeds unless the environment variables `FROM`, `SEEDS` or `SEED` are set.
#[test]
fn seeds_hold() {
    if let Some(seed) = env("SEED") {
        let (text, holds) = explain(seed);
        println!("{text}");
        assert!(holds, "seed {seed} fails");
        return;
    }
    for seed in KEPT {
        let outcome = run(*seed, &Fault::ALL, false, &Arc::new(Metrics::new()));
        assert!(outcome.wrong.is_empty(), "{}", explain(*seed).0);
    }
    let (from, seeds) = (
        env("FROM").unwrap_or_default(),
        env("SEEDS").unwrap_or(2_000),
    );
    let began = std::time::Instant::now();
    let (mut done, mut all) = (0, BTreeMap::new());
    for first in (from..from + seeds).step_by(STEP) {
        let last = (first + STEP as u64).min(from + seeds);
        let (failed, count, faults) = run_many(first..last, &Fault::ALL, None);
        done += count;
        for (name, times) in faults {
            *all.entry(name).or_insert(0) += times;
        }
        if let Some(seed) = failed {
            panic!("{}", explain(seed).0);
        }
        println!("{done} of {seeds} seeds pass, after {:?}", began.elapsed());
    }
    println!("{all:#?}");
}

/// The simulation finds each bug of an earlier version if it injects the faults that trigger it.
#[test]
fn old_faults_are_found() {
    use OldFault as Old;
    for (old, faults) in [
        (
            Old::TokensAreProof,
            &[Fault::Kill, Fault::StoreRestarts][..],
        ),
        (Old::TokensAreProof, &[Fault::PowerCut]),
        (Old::NumbersRepeat, &[Fault::OlderFolder]),
        (Old::BackupsDoNotHold, &[Fault::Restored]),
        (Old::BackupsCopyInOrder, &[Fault::Restored]),
        (Old::LedgerOfAnotherLog, &[Fault::LostLog]),
        (Old::RefusedIsNotStored, &[Fault::StoreFails]),
        (Old::FoldsBeginAgain, &[Fault::TableAway]),
        (Old::StateBeforeSave, &[Fault::DiskFails]),
        (
            Old::FramesShareNumbers,
            &[Fault::Refused, Fault::StoreFails, Fault::Restored],
        ),
        (
            Old::LayoutsShareNumbers,
            &[Fault::Stop, Fault::Kill, Fault::StoreFails],
        ),
    ] {
        let (failed, count, _) = run_many(0..2_000, faults, Some(old));
        assert!(failed.is_some(), "{old:?} is not found in {count} seeds");
        println!("{old:?} with {faults:?}: found after {count} seeds");
    }
}

#[test]
fn a_seed_always_replays_the_same_history() {
    let history = |seed| run(seed, &Fault::ALL, true, &Arc::new(Metrics::new())).history;
    for seed in 0..20 {
        let (one, other) = (history(seed), history(seed));
        assert!(one.len() > 10, "{one:?}");
        for (one, other) in one.iter().zip(&other) {
            assert_eq!(one, other, "seed {seed}");
        }
    }
}
