//! Threads that build and compress parcels ahead of time and deliver them in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Result;
use unjank_protocol::Timestamp;

use crate::clock;
use crate::parcel::{Packer, Parcel};
use crate::plan::{Plan, Planner};

/// Stops generators, pacing and the waits before retries.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Maximum number of finished parcels that wait to be sent.
const AHEAD: usize = 512;

/// Starts `threads` generators. `started` is the start of the run; scheduled starts, and with them `sent_at`, are relative to it.
pub(crate) fn start(
    planner: Planner,
    packer: Packer,
    threads: usize,
    started: Timestamp,
    stop: &Stop,
) -> InOrder<Box<dyn Iterator<Item = Result<Parcel>> + Send>> {
    let (sender, receiver) = sync_channel(AHEAD);
    let shared = Arc::new(Shared {
        planner: Mutex::new(planner),
        packer,
        started,
        stop: stop.clone(),
    });
    for _ in 0..threads.max(1) {
        let shared = Arc::clone(&shared);
        let sender = sender.clone();
        thread::spawn(move || shared.generate(&sender));
    }
    InOrder::new(Box::new(into_iter(receiver)))
}

fn into_iter(receiver: Receiver<Result<Parcel>>) -> impl Iterator<Item = Result<Parcel>> + Send {
    receiver.into_iter()
}

struct Shared {
    planner: Mutex<Planner>,
    packer: Packer,
    started: Timestamp,
    stop: Stop,
}

impl Shared {
    fn generate(&self, sender: &SyncSender<Result<Parcel>>) {
        while let Some(plan) = self.next_plan() {
            let parcel = self.packer.pack(&plan, self.time_of(&plan));
            if self.stop.asked() || sender.send(parcel).is_err() {
                return;
            }
        }
    }

    fn next_plan(&self) -> Option<Plan> {
        self.planner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next()
    }

    fn time_of(&self, plan: &Plan) -> Timestamp {
        plan.at.map_or_else(clock::now, |at| {
            self.started
                .shifted(i64::try_from(at.as_micros()).unwrap_or(i64::MAX))
        })
    }
}

/// Restores the planned order of parcels, which several threads finish in any order.
pub(crate) struct InOrder<I> {
    source: I,
    next: u64,
    early: BTreeMap<u64, Parcel>,
}

impl<I> InOrder<I> {
    fn new(source: I) -> Self {
        Self {
            source,
            next: 0,
            early: BTreeMap::new(),
        }
    }
}

impl<I: Iterator<Item = Result<Parcel>>> Iterator for InOrder<I> {
    type Item = Result<Parcel>;

    fn next(&mut self) -> Option<Result<Parcel>> {
        loop {
            if let Some(parcel) = self.early.remove(&self.next) {
                self.next += 1;
                return Some(Ok(parcel));
            }
            match self.source.next() {
                Some(Ok(parcel)) => {
                    self.early.insert(parcel.seq, parcel);
                }
                Some(Err(error)) => return Some(Err(error)),
                // Stopped early: parcels that wait for a missing predecessor are not sent.
                None => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::events::Mix;
    use crate::fingerprint::Times;
    use crate::format::Format;
    use crate::parcel::{Encoding, ParcelSettings};
    use crate::plan::{Arrivals, PlanSettings, Rate};
    use crate::run_tag::RunTag;

    fn load(threads: usize) -> Vec<Parcel> {
        let planner = Planner::new(PlanSettings {
            seed: 3,
            rate: Rate::PerSecond(100.0),
            arrivals: Arrivals::Poisson,
            devices: 40,
            duration: Some(Duration::from_secs(2)),
            batches: None,
        });
        let packer = Packer::new(ParcelSettings {
            seed: 3,
            tag: RunTag(1),
            mix: Mix::Realistic,
            events: 20,
            encoding: Encoding::Zstd,
            format: Format::Batch,
            late: 0.1,
            invalid: 0.1,
            verify: true,
            times: Times::OfRightClocks,
        });
        let started = Timestamp::from_micros(1_790_000_000_000_000);
        start(planner, packer, threads, started, &Stop::default())
            .map(|parcel| parcel.unwrap())
            .collect()
    }

    #[test]
    fn the_load_does_not_depend_on_the_number_of_threads() {
        let one = load(1);
        assert!(one.len() > 100);
        assert!(
            one.iter()
                .enumerate()
                .all(|(at, parcel)| parcel.seq == at as u64)
        );
        assert_eq!(one, load(3));
    }
}
