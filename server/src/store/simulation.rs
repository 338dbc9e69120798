//! Deterministic simulation of a server, its disk, ClickHouse and devices: each acknowledged event must be stored exactly once, whatever fails.
//!
//! Spool, ingest log, writer, folds and dead letters are the production code. The disk, ClickHouse and the devices are models. Each seed runs
//! on one thread with paused time, so a seed always replays the same history.
//!
//! In a second kind of world, two servers share ClickHouse, the devices and a model of the claims in PostgreSQL (`sharing.rs`).
//!
//! `make test` runs 2,000 seeds of the first kind and 300 of the second, `make simulate SEEDS=1000000` runs more, and `make simulate SEED=7`
//! prints the history of one. With `SERVERS=2`, the worlds have two servers.

#![expect(
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a model: its numbers are small, and its tasks end with their world"
)]

mod aimed;
mod aimed_drain;
mod backup_set;
mod backups;
mod batch;
mod chance;
mod connection;
mod control;
mod device;
mod disk;
mod drain;
mod fault_kinds;
mod faults;
mod host;
mod rows;
mod sharing;
mod sharing_faults;
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

use self::fault_kinds::Fault;
use self::faults::Pace;
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
const KEPT_OF_TWO_SERVERS: &[u64] = &[];

/// How long faults strike, in seconds. The longest period exceeds the time for which ClickHouse remembers tokens.
const TIMES: [u64; 4] = [20, 40, 40, 120];

/// After the last fault, devices and the log must finish within this simulated time.
const REST: Duration = Duration::from_secs(900);

/// `seeds_hold` reports its progress after this many seeds.
const STEP: usize = 10_000;

/// The kind of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Servers {
    One,
    Two,
}

impl Servers {
    fn faults(self) -> &'static [Fault] {
        match self {
            Self::One => &Fault::ALL,
            Self::Two => &Fault::SHARED,
        }
    }
}

/// The result of one seed.
struct Outcome {
    wrong: Vec<String>,
    history: Vec<String>,
    faults: BTreeMap<&'static str, u64>,
    events: usize,
}

fn run(
    servers: Servers,
    seed: u64,
    faults: &[Fault],
    keeps_history: bool,
    metrics: &Arc<Metrics>,
) -> Outcome {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let outcome = runtime.block_on(async {
        let world = World::new(seed, keeps_history, Arc::clone(metrics));
        match servers {
            Servers::One => live(world, faults).await,
            Servers::Two => sharing::live(&world, faults).await,
        }
    });
    runtime.shutdown_background();
    outcome
}

/// A few kinds of faults lead to deeper states than all kinds at once.
fn some_of(faults: &[Fault], world: &World) -> Vec<Fault> {
    let faults = faults.iter().copied();
    let all = faults.len() < 4;
    faults
        .filter(|_| all || world.chance.happens(350))
        .collect()
}

async fn live(world: Arc<World>, faults: &[Fault]) -> Outcome {
    let faults = some_of(faults, &world);
    // A known limit, see docs/decisions/0016-backups.md.
    let refuses = faults.contains(&Fault::Refused);
    let meant = |fault: &Fault| *fault != Fault::Restored || !refuses;
    let faults: Vec<Fault> = faults.into_iter().filter(meant).collect();
    let devices: Vec<_> = (0..1 + world.chance.below(3))
        .map(|_| {
            let servers = vec![Arc::clone(&world)];
            tokio::spawn(device::run(servers, 3 + world.chance.below(12), 4_000))
        })
        .collect();
    let pace = Pace {
        seconds: world.chance.pick(&TIMES),
        longest: 6_000,
    };
    let running = faults::run_with_faults(&world, &faults, pace).await;
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
    wrong.extend(verdict::judge(&world, &[&running]));
    world.stop(running).await;
    Outcome::of(&world, wrong)
}

impl Outcome {
    fn of(world: &World, wrong: Vec<String>) -> Self {
        let truth = world.truth();
        Self {
            wrong,
            history: world.history.lines(),
            faults: truth.faults.clone(),
            events: truth.events.len(),
        }
    }
}

/// Retries dead letters as an operator does. Returns the retries that failed, and the items that are damaged: no fault damages a synced file.
async fn retry_dead_letters(world: Arc<World>, files: DurableFiles, most: usize) -> Vec<String> {
    let Ok(letters) = world.dead_letters(&files) else {
        return Vec::new();
    };
    let connection = world.connection();
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
    servers: Servers,
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
            let outcome = run(servers, seed, faults, false, &metrics);
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
fn explain(servers: Servers, seed: u64) -> (String, bool) {
    let metrics = Arc::new(Metrics::new());
    let Outcome { wrong, history, .. } = run(servers, seed, servers.faults(), true, &metrics);
    let more = match servers {
        Servers::One => "",
        Servers::Two => " SERVERS=2",
    };
    let text = format!(
        "seed {seed}\n\n{}\n\nViolations:\n{}\n\nReplay: make simulate SEED={seed}{more}\n",
        history.join("\n"),
        wrong.join("\n")
    );
    (text, wrong.is_empty())
}

fn env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().expect("a number"))
}

#[test]
fn seeds_hold() {
    hold(Servers::One, KEPT, 2_000);
}

#[test]
fn seeds_of_two_servers_hold() {
    hold(Servers::Two, KEPT_OF_TWO_SERVERS, 300);
}

/// Runs some seeds, then as many `more` unless the environment variables `FROM`, `SEEDS` or `SEED` are set.
fn hold(servers: Servers, kept: &[u64], more: u64) {
    if let Some(seed) = env("SEED") {
        let (text, holds) = explain(servers, seed);
        println!("{text}");
        assert!(holds, "seed {seed} fails");
        return;
    }
    let (all_faults, metrics) = (servers.faults(), Arc::new(Metrics::new()));
    for seed in kept {
        let outcome = run(servers, *seed, all_faults, false, &metrics);
        assert!(outcome.wrong.is_empty(), "{}", explain(servers, *seed).0);
    }
    let (from, seeds) = (
        env("FROM").unwrap_or_default(),
        env("SEEDS").unwrap_or(more),
    );
    let began = std::time::Instant::now();
    let (mut done, mut all) = (0, BTreeMap::new());
    for first in (from..from + seeds).step_by(STEP) {
        let last = (first + STEP as u64).min(from + seeds);
        let (failed, count, faults) = run_many(servers, first..last, all_faults, None);
        done += count;
        for (name, times) in faults {
            *all.entry(name).or_insert(0) += times;
        }
        if let Some(seed) = failed {
            panic!("{}", explain(servers, seed).0);
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
        let (failed, count, _) = run_many(Servers::One, 0..2_000, faults, Some(old));
        assert!(failed.is_some(), "{old:?} is not found in {count} seeds");
        println!("{old:?} with {faults:?}: found after {count} seeds");
    }
}

/// The simulation finds servers that store batches regardless of the others.
#[test]
fn faults_of_sharing_are_found() {
    use OldFault as Old;
    for (old, faults) in [
        (Old::LeaseIgnored, &[Fault::Drained][..]),
        (Old::ClaimsIgnored, &[]),
        (Old::ReleasedWhileInserting, &[Fault::LateInserts]),
        (
            Old::DrainedLearnsNothing,
            &[Fault::CutOff, Fault::LateInserts],
        ),
    ] {
        let (failed, count, _) = run_many(Servers::Two, 0..2_000, faults, Some(old));
        assert!(failed.is_some(), "{old:?} is not found in {count} seeds");
        println!("{old:?} with {faults:?}: found after {count} seeds");
    }
}

#[test]
fn a_seed_always_replays_the_same_history() {
    for servers in [Servers::One, Servers::Two] {
        let history = |seed| {
            let metrics = Arc::new(Metrics::new());
            run(servers, seed, servers.faults(), true, &metrics).history
        };
        for seed in 0..20 {
            let (one, other) = (history(seed), history(seed));
            assert!(one.len() > 10, "{one:?}");
            for (one, other) in one.iter().zip(&other) {
                assert_eq!(one, other, "seed {seed} of {servers:?}");
            }
        }
    }
}
