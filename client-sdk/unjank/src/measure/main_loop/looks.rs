//! The registry of the watchdogs. A flush asks each one to look at its loop at once, so that stalls that are over are reported before the
//! flush. The run log asks when the message began that a loop runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use unjank_monitors::{LoggedAt, LoopClock, Uptime};
use unjank_stack_sampler::forks;

use crate::clock::{Times, wall_clock};

/// A look is short. A watchdog that takes longer than this reads a large stack.
const LONGEST: Duration = Duration::from_millis(200);

/// The watchdogs that run. Without a lock, because a fork could leave it locked in the child.
static WATCHDOGS: ArcSwapOption<Vec<Arc<Looks>>> = ArcSwapOption::const_empty();

/// The looks of one watchdog.
#[derive(Debug)]
pub(super) struct Looks {
    clock: Arc<LoopClock>,
    asked: AtomicU64,
    done: AtomicU64,
    thread: Thread,
    /// The value of [`forks`] in the process of the watchdog, which a child does not have.
    forks: u32,
}

/// Leaves out the watchdogs of the parent, which a child knows and does not have.
fn of_this_process(all: Option<&Vec<Arc<Looks>>>) -> impl Iterator<Item = &Arc<Looks>> {
    let all = all.into_iter().flatten();
    all.filter(|looks| looks.forks == forks())
}

fn change_watchdogs(change: impl Fn(&mut Vec<Arc<Looks>>)) {
    WATCHDOGS.rcu(|before| {
        let mut watchdogs = before.as_deref().cloned().unwrap_or_default();
        change(&mut watchdogs);
        Some(Arc::new(watchdogs))
    });
}

impl Looks {
    /// Registers the current thread as the watchdog of the loop of this clock, until the returned value is dropped.
    pub(super) fn begin(clock: Arc<LoopClock>) -> Watching {
        let looks = Arc::new(Self {
            clock,
            asked: AtomicU64::new(0),
            done: AtomicU64::new(0),
            thread: thread::current(),
            forks: forks(),
        });
        change_watchdogs(|watchdogs| watchdogs.push(Arc::clone(&looks)));
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
        change_watchdogs(|watchdogs| watchdogs.retain(|other| !Arc::ptr_eq(other, &self.0)));
    }
}

/// Returns the current time for a line of the run log. If several loops run a message, the earliest beginning counts.
pub(crate) fn logged_now() -> LoggedAt {
    let watchdogs = WATCHDOGS.load();
    let watchdogs = of_this_process(watchdogs.as_deref());
    let running = watchdogs.filter_map(|looks| looks.clock.running());
    LoggedAt {
        message_began: running.min(),
        uptime: Uptime::now(),
        wall: wall_clock(),
    }
}

/// Lets all watchdogs look once, and waits until they have, within limits.
pub(crate) fn look_now() {
    let watchdogs: Vec<_> = of_this_process(WATCHDOGS.load().as_deref())
        .cloned()
        .collect();
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
