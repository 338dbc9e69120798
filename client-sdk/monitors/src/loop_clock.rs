//! The clock of the main loop: written by the main thread and read by the watchdog, without a lock.
//!
//! # How it works
//! `running` holds the start of the running message. When the message ends, the main thread compares its duration with a
//! threshold. It puts only a long message (which is rare) into a ring for the watchdog, **before** it clears `running`. So a
//! reader that reads `running` first and drains the ring second has seen the end of every message before the running one. In the
//! other order, an end could slip in between the two reads.

#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Uptime;

#[cfg(all(loom, test))]
mod interleavings;

/// Maximum number of long messages that wait for the watchdog; a power of two. Loom uses fewer, to cover the overflow.
const RING: u64 = if cfg!(all(loom, test)) { 2 } else { 16 };

/// A message of the main loop that was long enough to matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedMessage {
    /// When it began.
    pub began: Uptime,
    /// When it ended.
    pub ended: Uptime,
}

/// The state of the message that the main thread runs, shared with the watchdog (`Arc<LoopClock>` or a static).
///
/// Only the main thread may call [`begin`](Self::begin) and [`end`](Self::end), which take two or three plain stores and no lock.
/// Any thread may call [`running`](Self::running), and one watchdog thread calls the rest. At most 16 long messages wait for the
/// watchdog; further ones are dropped and counted in [`take_lost`](Self::take_lost).
///
/// **Without hooks around messages** (heartbeats): the watchdog calls `begin` when it posts an empty message to the main loop,
/// and that message calls `end`. Its wait in the queue then represents the message that blocks the loop. Post the next one only
/// after the last has ended. Use either hooks or heartbeats, never both.
///
/// **Nested loops** (a modal dialog inside a message): a `begin` inside a message restarts the clock, so the messages of the
/// inner loop count, and the outer message ends at the first inner `begin`.
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
    /// Start of the running message + 1, in microseconds; 0 while the loop is idle.
    running: AtomicU64,
    /// Minimum duration of a long message, in microseconds.
    long_us: AtomicU64,
    ring: [Slot; RING as usize],
    /// Number of messages put into the ring and taken from it since the start.
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
    /// An idle loop, for which a message of at least 300 ms is long until [`set_long`](Self::set_long).
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
    /// Main thread: marks the beginning of a message.
    #[inline]
    pub fn begin(&self, at: Uptime) {
        let marked = at.as_micros().saturating_add(1);
        self.running.store(marked, Ordering::Release);
    }

    /// Main thread: marks the end of the message. Does nothing without a `begin`.
    #[inline]
    pub fn end(&self, at: Uptime) {
        // Only this thread writes `running` (with heartbeats: the thread that posted the message wrote it before).
        let Some(began) = unmark(self.running.load(Ordering::Relaxed)) else {
            return;
        };
        if at.micros_since(began) >= self.long_us.load(Ordering::Relaxed) {
            self.put(began, at);
        }
        self.running.store(0, Ordering::Release);
    }

    /// Watchdog: returns when the running message began, or `None` if the loop is idle.
    #[must_use]
    pub fn running(&self) -> Option<Uptime> {
        unmark(self.running.load(Ordering::Acquire))
    }

    /// Watchdog: returns whether the message that began then is still running. Check this after capturing a stack: only if it
    /// returns `true` does the stack belong to that message.
    #[must_use]
    pub fn is_running(&self, began: Uptime) -> bool {
        self.running() == Some(began)
    }

    /// Watchdog: takes the oldest long message that has ended. Read [`running`](Self::running) **before** you drain: then this
    /// has returned all messages before the running one.
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

    /// Sets the minimum duration of a long message in microseconds; at least 1. Takes effect with the next end.
    pub fn set_long(&self, long_us: u64) {
        self.long_us.store(long_us.max(1), Ordering::Relaxed);
    }

    /// Returns the number of long messages dropped since the last call, because the watchdog was too slow.
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
