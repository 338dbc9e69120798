//! Lets a flush ask each watchdog to look at its loop at once, so that stalls that are over are reported before the flush.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use unjank_stack_sampler::forks;

/// A look is short. A watchdog that takes longer than this reads a large stack.
const LONGEST: Duration = Duration::from_millis(200);

/// The watchdogs that run.
static WATCHDOGS: Mutex<Vec<Arc<Looks>>> = Mutex::new(Vec::new());

/// The looks of one watchdog.
#[derive(Debug)]
pub(super) struct Looks {
    asked: AtomicU64,
    done: AtomicU64,
    thread: Thread,
    /// The value of [`forks`] in the process of the watchdog, which a child does not have.
    forks: u32,
}

fn watchdogs() -> MutexGuard<'static, Vec<Arc<Looks>>> {
    WATCHDOGS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Looks {
    /// Registers the current thread as a watchdog, until the returned value is dropped.
    pub(super) fn begin() -> Watching {
        let looks = Arc::new(Self {
            asked: AtomicU64::new(0),
            done: AtomicU64::new(0),
            thread: thread::current(),
            forks: forks(),
        });
        watchdogs().push(Arc::clone(&looks));
        Watching(looks)
    }
}

/// The looks of a watchdog that runs.
pub(super) struct Watching(Arc<Looks>);

impl Watching {
    /// Runs a look, and answers all flushes that asked before it began.
    pub(super) fn look<R>(&self, look: impl FnOnce() -> R) -> R {
        let asked = self.0.asked.load(Ordering::Acquire);
        let seen = look();
        self.0.done.store(asked, Ordering::Release);
        seen
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        watchdogs().retain(|other| !Arc::ptr_eq(other, &self.0));
    }
}

/// Lets all watchdogs look once, and waits until they have, within limits.
pub(crate) fn look_now() {
    let mut watchdogs = watchdogs().clone();
    watchdogs.retain(|looks| looks.forks == forks());
    let end = Instant::now() + LONGEST;
    let wanted: Vec<_> = watchdogs
        .iter()
        .map(|looks| {
            let wanted = looks.asked.fetch_add(1, Ordering::AcqRel) + 1;
            looks.thread.unpark();
            (looks, wanted)
        })
        .collect();
    for (looks, wanted) in wanted {
        // The registry has the other reference, until the watchdog ends.
        while looks.done.load(Ordering::Acquire) < wanted
            && Arc::strong_count(looks) > 1
            && Instant::now() < end
        {
            thread::sleep(Duration::from_micros(200));
        }
    }
}
