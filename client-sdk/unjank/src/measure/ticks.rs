//! The clock of spans: a counter of the processor. A span reads its clock twice, and two reads of the system's clock took two fifths of
//! its time.
//!
//! The background thread converts ticks to moments. It reads both clocks about every second and assumes that the counter is even in
//! between, so nothing is calibrated when the app starts. Unlike moments, the counter may advance while the device sleeps: the
//! background thread then finds that both clocks disagree, and leaves the time asleep out. A span that is open when the device falls
//! asleep is right within about a second.
//!
//! The counter is read on x86-64 Linux if the kernel itself keeps time by it, which it does only if all cores agree. Elsewhere, ticks
//! are nanoseconds of the system's clock.

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Moment;

/// A reading of the clock of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tick(u64);

/// Whether ticks are readings of the processor's counter.
static COUNTS: AtomicBool = AtomicBool::new(false);
/// Nanoseconds per tick, as the bits of a double; 0 until it is measured.
static NANOS_PER_TICK: AtomicU64 = AtomicU64::new(0);

impl Tick {
    #[inline]
    pub(crate) fn now() -> Self {
        if COUNTS.load(Ordering::Relaxed) {
            Self(counter())
        } else {
            Self(u64::try_from(Moment::now().nanos()).unwrap_or_default())
        }
    }

    /// Returns the time since an earlier tick, as if the device had not slept.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        let measured = f64::from_bits(NANOS_PER_TICK.load(Ordering::Relaxed));
        let rate = if measured > 0.0 {
            measured
        } else {
            first().rate_until(Reading::now()).unwrap_or(1.0)
        };
        let nanos = ticks_between(earlier, self) * rate;
        Duration::from_secs_f64((nanos / 1e9).max(0.0))
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[inline]
#[expect(unsafe_code, reason = "the counter has no safe function")]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it only reads.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn counter() -> u64 {
    0
}

/// Returns whether the kernel keeps time by the counter.
fn is_trusted() -> bool {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    cfg!(all(target_os = "linux", target_arch = "x86_64"))
        && std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
}

/// Chooses the clock, once per process. Spans must not begin before.
pub(crate) fn prepare() {
    first();
}

/// The first reading of both clocks. No span began earlier.
fn first() -> Reading {
    static FIRST: OnceLock<Reading> = OnceLock::new();
    *FIRST.get_or_init(|| {
        COUNTS.store(is_trusted(), Ordering::Relaxed);
        Reading::now()
    })
}

/// Both clocks, read at once.
#[derive(Clone, Copy, Debug)]
struct Reading {
    tick: Tick,
    /// Nanoseconds of the system's clock.
    nanos: i64,
}

impl Reading {
    fn now() -> Self {
        Self {
            tick: Tick::now(),
            nanos: Moment::now().nanos(),
        }
    }

    /// Nanoseconds per tick between two readings. `None` if they are too close to tell.
    fn rate_until(self, later: Self) -> Option<f64> {
        let ticks = ticks_between(self.tick, later.tick);
        let nanos = nanos_between(self.nanos, later.nanos);
        (ticks > 0.0 && nanos > LEAST_RUN_NANOS).then(|| nanos / ticks)
    }
}

/// The rate is measured over at least a millisecond: reading both clocks takes about 50 ns.
const LEAST_RUN_NANOS: f64 = 1e6;
/// The clocks disagree if they differ by more than a millisecond and by more than a thousandth of the time since they were read.
const TOLERATED_NANOS: f64 = 1e6;
const TOLERATED_SHARE: f64 = 1e-3;
/// Number of periods that are remembered. Ticks before them are converted as if the device had not slept before.
const MOST_RUNS: usize = 64;

/// A period in which the counter was even, or one in which both clocks disagreed because the device slept.
#[derive(Debug)]
struct Run {
    from: Reading,
    to: Reading,
    is_even: bool,
}

/// Converts ticks to moments.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// Not empty. Each begins where the one before ends.
    runs: VecDeque<Run>,
    /// Nanoseconds per tick while the device is awake; `None` until it is measured.
    rate: Option<f64>,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        let mut timeline = Self::from(first());
        timeline.follow();
        timeline
    }

    fn from(first: Reading) -> Self {
        Self {
            runs: VecDeque::from([Run {
                from: first,
                to: first,
                is_even: true,
            }]),
            rate: None,
        }
    }

    /// Reads both clocks. Called about every second.
    pub(crate) fn follow(&mut self) {
        self.extend(Reading::now());
        if let Some(rate) = self.rate {
            NANOS_PER_TICK.store(rate.to_bits(), Ordering::Relaxed);
        }
    }

    fn extend(&mut self, now: Reading) {
        let Some(last) = self.runs.back_mut() else {
            return;
        };
        let continues = |rate: f64| {
            let nanos = nanos_between(last.to.nanos, now.nanos);
            let expected = ticks_between(last.to.tick, now.tick) * rate;
            (nanos - expected).abs() <= nanos.mul_add(TOLERATED_SHARE, TOLERATED_NANOS)
        };
        let fits = self.rate.is_none_or(continues);
        // A sleep is not followed by an equal one. If a disagreement repeats, the known rate is wrong: it was measured over a sleep.
        let repeats = || last.from.rate_until(last.to).is_some_and(continues);
        if (fits && last.is_even) || (!fits && !last.is_even && repeats()) {
            (last.to, last.is_even) = (now, true);
            self.rate = last.from.rate_until(now).or(self.rate);
            return;
        }
        let from = last.to;
        if self.runs.len() >= MOST_RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back(Run {
            from,
            to: now,
            is_even: fits,
        });
    }

    /// Converts a tick to what [`Moment::nanos`] returns.
    pub(crate) fn nanos(&mut self, tick: Tick) -> i64 {
        if self.runs.back().is_some_and(|last| last.to.tick < tick) {
            self.follow();
        }
        self.known_nanos(tick)
    }

    fn known_nanos(&self, tick: Tick) -> i64 {
        let run = self.runs.iter().rfind(|run| run.from.tick <= tick);
        let Some(run) = run.or(self.runs.front()) else {
            return 0;
        };
        let ticks = ticks_between(run.from.tick, run.to.tick);
        let rate = match nanos_between(run.from.nanos, run.to.nanos) / ticks {
            rate if ticks > 0.0 => rate,
            _ => self.rate.unwrap_or(1.0),
        };
        let after = ticks_between(run.from.tick, tick) * rate;
        run.from.nanos.saturating_add(whole(after))
    }
}

/// Exact for 50 days.
#[expect(clippy::cast_precision_loss, reason = "53 bits are enough")]
fn ticks_between(earlier: Tick, later: Tick) -> f64 {
    if later < earlier {
        -(earlier.0.saturating_sub(later.0) as f64)
    } else {
        later.0.saturating_sub(earlier.0) as f64
    }
}

#[expect(clippy::cast_precision_loss, reason = "53 bits are enough")]
fn nanos_between(earlier: i64, later: i64) -> f64 {
    later.saturating_sub(earlier) as f64
}

#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
fn whole(nanos: f64) -> i64 {
    nanos.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// Three ticks per nanosecond.
    fn reading(awake: i64, asleep: i64) -> Reading {
        Reading {
            tick: Tick(u64::try_from((awake + asleep) * 3).unwrap()),
            nanos: awake,
        }
    }

    #[test]
    fn ticks_lie_between_the_moments_around_them() {
        prepare();
        let mut timeline = Timeline::new();
        for _ in 0..3 {
            let (before, tick, after) = (Moment::now(), Tick::now(), Moment::now());
            let moment = timeline.nanos(tick);
            // The system's clock may be slewed, and reading the clocks takes time.
            assert!(moment >= before.nanos() - 200_000, "{moment} {before:?}");
            assert!(moment <= after.nanos() + 200_000, "{moment} {after:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn the_time_between_ticks_is_measured() {
        prepare();
        let mut timeline = Timeline::new();
        let started = Tick::now();
        std::thread::sleep(Duration::from_millis(30));
        for _ in 0..2 {
            let waited = Tick::now().since(started);
            assert!(waited >= Duration::from_millis(29), "{waited:?}");
            assert!(waited < Duration::from_secs(20), "{waited:?}");
            timeline.follow();
        }
    }

    #[test]
    fn the_time_asleep_is_left_out() {
        let mut timeline = Timeline::from(reading(0, 0));
        for second in 1..=60 {
            timeline.extend(reading(second * SECOND, 0));
        }
        let night = 8 * 3_600 * SECOND;
        for second in 61..=120 {
            timeline.extend(reading(second * SECOND, night));
        }
        assert_eq!(timeline.runs.len(), 3);
        let awake = |at, asleep| timeline.known_nanos(reading(at, asleep).tick);
        assert_eq!(awake(30 * SECOND, 0), 30 * SECOND);
        assert_eq!(awake(60 * SECOND, 0), 60 * SECOND);
        assert_eq!(awake(90 * SECOND, night), 90 * SECOND);
        assert_eq!(awake(125 * SECOND, night), 125 * SECOND);
        let asleep = timeline.known_nanos(reading(60 * SECOND + SECOND / 2, night / 2).tick);
        let falling_asleep = 60 * SECOND..=61 * SECOND;
        assert!(falling_asleep.contains(&asleep), "{asleep}");
    }

    #[test]
    fn a_rate_that_was_measured_over_a_sleep_is_measured_again() {
        let night = 8 * 3_600 * SECOND;
        let mut timeline = Timeline::from(reading(0, 0));
        for second in 1..=10 {
            timeline.extend(reading(second * SECOND, night));
        }
        assert_eq!(timeline.runs.len(), 2);
        assert!((timeline.rate.unwrap() * 3.0 - 1.0).abs() < 1e-9);
        assert_eq!(
            timeline.known_nanos(reading(9 * SECOND, night).tick),
            9 * SECOND
        );
    }

    #[test]
    fn only_some_periods_are_remembered() {
        let mut timeline = Timeline::from(reading(0, 0));
        for second in 1..1_000 {
            timeline.extend(reading(second * SECOND, second * second * SECOND));
        }
        assert!(timeline.runs.len() <= MOST_RUNS);
        let latest = reading(999 * SECOND, 999 * 999 * SECOND).tick;
        assert_eq!(timeline.known_nanos(latest), 999 * SECOND);
    }

    #[test]
    fn a_clock_that_did_not_advance_or_went_back_is_no_panic() {
        let mut timeline = Timeline::from(reading(SECOND, 0));
        timeline.extend(reading(SECOND, 0));
        assert_eq!(timeline.known_nanos(reading(SECOND, 0).tick), SECOND);
        timeline.extend(reading(2 * SECOND, 0));
        timeline.extend(reading(SECOND, 0));
        timeline.extend(reading(3 * SECOND, 0));
        let _any = timeline.known_nanos(Tick(0));
        let _any = timeline.known_nanos(Tick(u64::MAX));
    }
}
