//! Times in which the process did not run, because it was stopped, the system froze it, or the machine slept. They are not the app's.
//!
//! The watchdog of a [`crate::MainLoop`] never sleeps for longer than half a second. If it is late by seconds and the process has hardly
//! used the processor, then nothing ran. Any thread can find that out, so a thread that runs before the watchdog does need not wait for it.
//! Where the system does not tell the time on the processor, being late is enough.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use unjank_monitors::Uptime;

use crate::clock::{Times as _, process_cpu_time};

/// A thread that is late by less may have waited for the processor.
const LATE_US: u64 = 2_000_000;
/// The number of suspensions that are remembered.
const KNOWN: usize = 8;
/// A holder of the lock that waits for the processor has it again after this number of milliseconds.
const PATIENCE_MS: usize = 20;

static WATCHED: Mutex<Watched> = Mutex::new(Watched::new());

/// The sleep of a watchdog.
#[derive(Clone, Copy, Debug)]
struct Sleep {
    from: Uptime,
    /// When it is to end.
    until: Uptime,
    /// The processor time of the process when the sleep began.
    cpu: Option<Duration>,
}

#[derive(Debug)]
struct Watched {
    sleep: Option<Sleep>,
    /// Begin and end, oldest first.
    suspensions: VecDeque<(Uptime, Uptime)>,
}

impl Watched {
    const fn new() -> Self {
        Self {
            sleep: None,
            suspensions: VecDeque::new(),
        }
    }

    /// Notes a suspension if the sleep should have been over long ago.
    fn look(&mut self, now: Uptime, cpu: Option<Duration>) {
        let Some(sleep) = self.sleep else {
            return;
        };
        let late = now.micros_since(sleep.until);
        if late < LATE_US {
            return;
        }
        let used = cpu.zip(sleep.cpu);
        let used = used.map_or(Duration::ZERO, |(now, then)| now.saturating_sub(then));
        let used = u64::try_from(used.as_micros()).unwrap_or(u64::MAX);
        if used < late / 2 {
            // What ran before, ran at once.
            let from = sleep.from.plus(used).min(sleep.until);
            self.suspensions.push_back((from, now));
            if self.suspensions.len() > KNOWN {
                self.suspensions.pop_front();
            }
        }
        let (from, until) = (now, now);
        self.sleep = Some(Sleep { from, until, cpu });
    }
}

/// Waits a limited time for the lock, because a fork copies a held lock, which nobody releases. A suspension is then missed.
fn watched() -> Option<MutexGuard<'static, Watched>> {
    for _ in 0..PATIENCE_MS {
        if let Ok(watched) = WATCHED.try_lock() {
            return Some(watched);
        }
        thread::sleep(Duration::from_millis(1));
    }
    None
}

/// Sleeps until another thread wakes this one, at most for a time.
pub(crate) fn park(pause: Duration) {
    let from = Uptime::now();
    let pause_us = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
    let sleep = Sleep {
        from,
        until: from.plus(pause_us),
        cpu: process_cpu_time(),
    };
    if let Some(mut watched) = watched() {
        watched.sleep = Some(sleep);
    }
    thread::park_timeout(pause);
    if let Some(mut watched) = watched() {
        watched.look(Uptime::now(), process_cpu_time());
        watched.sleep = None;
    }
}

/// Returns the suspensions that overlap a time until now, oldest first.
pub(crate) fn since(from: Uptime) -> Vec<(Uptime, Uptime)> {
    let Some(mut watched) = watched() else {
        return Vec::new();
    };
    watched.look(Uptime::now(), process_cpu_time());
    let suspensions = watched.suspensions.iter().copied();
    suspensions.filter(|(_, until)| *until > from).collect()
}

/// Returns for how many microseconds the process was suspended since a time.
pub(crate) fn suspended_us_since(from: Uptime) -> u64 {
    let within = |(begin, end): (Uptime, Uptime)| end.micros_since(begin.max(from));
    since(from).into_iter().map(within).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(until_ms: u64, cpu_ms: u64) -> Watched {
        Watched {
            sleep: Some(Sleep {
                from: Uptime::from_millis(1_000),
                until: Uptime::from_millis(until_ms),
                cpu: Some(Duration::from_millis(cpu_ms)),
            }),
            ..Watched::new()
        }
    }

    fn seen(watched: &mut Watched, now_ms: u64, cpu_ms: u64) -> Vec<(u64, u64)> {
        let cpu = Some(Duration::from_millis(cpu_ms));
        watched.look(Uptime::from_millis(now_ms), cpu);
        let all = watched.suspensions.iter();
        all.map(|(from, until)| (from.as_millis(), until.as_millis()))
            .collect()
    }

    #[test]
    fn a_process_that_did_not_run_was_suspended() {
        // The main thread had run for 100 ms.
        assert_eq!(seen(&mut watched(1_500, 40), 9_500, 140), [(1_100, 9_500)]);
        // It had run for longer than the sleep.
        assert_eq!(seen(&mut watched(1_500, 40), 9_500, 990), [(1_500, 9_500)]);
    }

    #[test]
    fn a_busy_or_punctual_process_was_not() {
        assert_eq!(seen(&mut watched(1_500, 0), 9_500, 7_000), []);
        assert_eq!(seen(&mut watched(1_500, 0), 3_400, 0), []);
        assert_eq!(seen(&mut watched(1_500, 0), 1_400, 0), []);
    }

    #[test]
    fn a_suspension_counts_once_and_the_oldest_are_forgotten() {
        let mut watched = watched(1_500, 0);
        let expected = [(1_000, 9_500)];
        assert_eq!(seen(&mut watched, 9_500, 0), expected);
        assert_eq!(seen(&mut watched, 9_600, 0), expected);
        for turn in 1..=20 {
            let _all = seen(&mut watched, 9_500 + turn * 5_000, 0);
        }
        assert_eq!(watched.suspensions.len(), KNOWN);
    }
}
