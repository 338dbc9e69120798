//! The clock of the main loop: what the main thread writes and the watchdog reads, without a lock.
//!
//! # How it works
//! `running` holds the start of the message that runs. At its end the main thread compares its duration with a threshold;
//! only a long message (rare) is put into a ring for the watchdog, **before** `running` is cleared. So whoever reads
//! `running` first and drains the ring second has seen the end of every message before the one that runs. The other
//! order would let an end slip between the two reads.

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Uptime;

#[cfg(all(loom, test))]
mod interleavings;

/// Long messages that may wait for the watchdog; a power of two. Loom gets fewer, so that it sees them run over.
const RING: u64 = if cfg!(all(loom, test)) { 2 } else { 16 };

/// A message of the main loop that was long enough to matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedMessage {
    /// When it began.
    pub began: Uptime,
    /// When it ended.
    pub ended: Uptime,
}

/// What the main thread says about the message it runs, shared with the watchdog (`Arc<LoopClock>` or a static).
///
/// [`begin`](Self::begin) and [`end`](Self::end) are for the main thread alone, two or three plain stores and no lock;
/// the rest is for one watchdog thread. At most 16 long messages wait for the watchdog; more are dropped and counted in
/// [`take_lost`](Self::take_lost).
///
/// **Without hooks around messages** (heartbeats): the watchdog calls `begin` when it posts an empty message to the main
/// loop and the message calls `end`. Its wait in the queue then stands for the message that blocks the loop. The next one
/// is posted only when the last has ended. Use either hooks or heartbeats, never both.
///
/// **Nested loops** (a modal dialog inside a message): a `begin` inside a message restarts the clock, so the messages of
/// the inner loop count and the outer one ends with the first `begin`.
///
/// ```
/// use unjank_monitors::{LoopClock, Uptime};
/// let clock = LoopClock::default();
/// clock.set_long(300_000);
/// clock.begin(Uptime::from_millis(10));
/// assert_eq!(clock.running(), Some(Uptime::from_millis(10)));
/// clock.end(Uptime::from_millis(400));
/// assert_eq!(clock.running(), None);
/// assert_eq!(clock.take_finished().map(|message| message.ended), Some(Uptime::from_millis(400)));
/// ```
#[derive(Debug)]
pub struct LoopClock {
    /// Start of the running message + 1, in microseconds; 0 when the loop waits.
    running: AtomicU64,
    /// From how many microseconds on a message is long.
    long_us: AtomicU64,
    ring: [Slot; RING as usize],
    /// Messages put into the ring and taken out of it, since the start.
    put: AtomicU64,
    taken: AtomicU64,
    lost: AtomicU64,
}

#[derive(Debug)]
struct Slot {
    began: AtomicU64,
    ended: AtomicU64,
}

impl Default for LoopClock {
    /// A loop that waits, for which a message is long from 300 ms on until [`set_long`](Self::set_long).
    fn default() -> Self {
        Self {
            running: AtomicU64::new(0),
            long_us: AtomicU64::new(300_000),
            ring: std::array::from_fn(|_| Slot {
                began: AtomicU64::new(0),
                ended: AtomicU64::new(0),
            }),
            put: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }
}

impl LoopClock {
    /// Main thread: a message begins.
    #[inline]
    pub fn begin(&self, at: Uptime) {
        let marked = at.as_micros().saturating_add(1);
        self.running.store(marked, Ordering::Release);
    }

    /// Main thread: the message is done. Nothing without a `begin`.
    #[inline]
    pub fn end(&self, at: Uptime) {
        // Only this thread writes `running` (with heartbeats: the one that handed it the message).
        let Some(began) = unmark(self.running.load(Ordering::Relaxed)) else {
            return;
        };
        if at.micros_since(began) >= self.long_us.load(Ordering::Relaxed) {
            self.put(began, at);
        }
        self.running.store(0, Ordering::Release);
    }

    /// Watchdog: when the running message began; nothing when the loop waits.
    #[must_use]
    pub fn running(&self) -> Option<Uptime> {
        unmark(self.running.load(Ordering::Acquire))
    }

    /// Watchdog: whether the message that began then still runs. Ask after a stack was taken: only a yes makes it a stack
    /// of that message.
    #[must_use]
    pub fn is_running(&self, began: Uptime) -> bool {
        self.running() == Some(began)
    }

    /// Watchdog: the oldest long message that ended and was not taken. Read [`running`](Self::running) **before**
    /// draining: then all messages before the running one are in here.
    #[must_use]
    pub fn take_finished(&self) -> Option<FinishedMessage> {
        let taken = self.taken.load(Ordering::Relaxed);
        if taken == self.put.load(Ordering::Acquire) {
            return None;
        }
        let slot = self.slot(taken)?;
        let message = FinishedMessage {
            began: Uptime::from_micros(slot.began.load(Ordering::Relaxed)),
            ended: Uptime::from_micros(slot.ended.load(Ordering::Relaxed)),
        };
        self.taken.store(taken.wrapping_add(1), Ordering::Release);
        Some(message)
    }

    /// Messages of at least this many microseconds are handed to the watchdog. Takes effect with the next end.
    pub fn set_long(&self, long_us: u64) {
        self.long_us.store(long_us.max(1), Ordering::Relaxed);
    }

    /// Long messages that found no room because the watchdog did not come, since the last call.
    pub fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }

    #[cold]
    fn put(&self, began: Uptime, ended: Uptime) {
        let put = self.put.load(Ordering::Relaxed);
        let waiting = put.wrapping_sub(self.taken.load(Ordering::Acquire));
        let Some(slot) = self.slot(put).filter(|_| waiting < RING) else {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        slot.began.store(began.as_micros(), Ordering::Relaxed);
        slot.ended.store(ended.as_micros(), Ordering::Relaxed);
        self.put.store(put.wrapping_add(1), Ordering::Release);
    }

    fn slot(&self, number: u64) -> Option<&Slot> {
        self.ring.get(usize::try_from(number % RING).ok()?)
    }
}

fn unmark(marked: u64) -> Option<Uptime> {
    marked.checked_sub(1).map(Uptime::from_micros)
}
