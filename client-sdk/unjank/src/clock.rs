//! Time: monotonic moments, and the wall clock that they are converted to.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use unjank_monitors::Uptime;
use unjank_protocol::Timestamp;

/// A monotonic point in time. It does not advance while the device sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Instant);

impl Moment {
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0.checked_add(duration).unwrap_or(self.0))
    }

    /// Whole milliseconds since the process began, as far as it is known.
    pub(crate) fn millis(self) -> u64 {
        whole_millis(self.nanos())
    }

    /// Microseconds since the first call in this process.
    pub(crate) fn micros(self) -> i64 {
        self.nanos() / 1_000
    }

    /// Nanoseconds since the first call in this process.
    pub(crate) fn nanos(self) -> i64 {
        // In 64 bits, because this runs for each frame.
        let nanos = |duration: Duration| {
            let whole = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
            let whole = whole.saturating_mul(1_000_000_000);
            whole.saturating_add(i64::from(duration.subsec_nanos()))
        };
        match self.0.checked_duration_since(origin()) {
            Some(after) => nanos(after),
            None => nanos(origin().saturating_duration_since(self.0)).saturating_neg(),
        }
    }
}

/// Whole milliseconds of what [`Moment::nanos`] returns.
pub(crate) fn whole_millis(nanos: i64) -> u64 {
    u64::try_from(nanos / 1_000_000).unwrap_or_default()
}

/// The moment from which moments are counted: when this process first asked for it.
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

impl From<Instant> for Moment {
    fn from(instant: Instant) -> Self {
        Self(instant)
    }
}

/// Reads the device's wall clock, right or wrong.
pub(crate) fn wall_clock() -> Timestamp {
    let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the SDK takes its time from"
    )]
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let shown = Timestamp::from_micros(match since_epoch {
        Ok(after) => micros(after),
        Err(before) => micros(before.duration()).saturating_neg(),
    });
    #[cfg(feature = "test-kit")]
    let shown = shown.shifted(MOVED_US.load(Ordering::Relaxed));
    shown
}

/// Returns how long ago a file was modified, in microseconds of the wall clock.
pub(crate) fn age_us(file: &Path) -> io::Result<i64> {
    let changed = file.metadata()?.modified()?;
    let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed = i64::try_from(changed.as_micros()).unwrap_or(i64::MAX);
    Ok(wall_clock().as_micros().saturating_sub(changed))
}

/// How far a test has moved the wall clock, in microseconds.
#[cfg(feature = "test-kit")]
pub(crate) static MOVED_US: AtomicI64 = AtomicI64::new(0);

/// The setting of the wall clock that events were timed by. Their batch takes its sending time from the same setting: otherwise,
/// the server would correct their times by a difference that did not exist when they were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setting {
    /// How far the wall clock was ahead of [`steady_micros`]. `None` if it is not known, because an earlier process timed the
    /// events.
    ahead_us: Option<i64>,
}

impl Setting {
    fn current() -> Self {
        let shown = wall_clock().as_micros();
        Self {
            ahead_us: steady_micros().map(|steady| shown.saturating_sub(steady)),
        }
    }

    /// Returns what a wall clock of this setting shows now.
    pub(crate) fn now(self) -> Timestamp {
        let shown = self.ahead_us.zip(steady_micros());
        shown.map_or_else(wall_clock, |(ahead, steady)| {
            Timestamp::from_micros(steady.saturating_add(ahead))
        })
    }
}

/// Reads a clock that cannot be set and that, unlike moments, advances while the device sleeps. Returns `None` if the system has
/// none.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(crate) fn steady_micros() -> Option<i64> {
    #[cfg(not(target_vendor = "apple"))]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(target_vendor = "apple")]
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    let micros = time.tv_sec.saturating_mul(1_000_000);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Some(micros.saturating_add(i64::from(nanos / 1_000)))
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(crate) fn steady_micros() -> Option<i64> {
    None
}

/// Converts moments to times, by how far the wall clock is ahead of them.
#[derive(Debug)]
pub(crate) struct WallClock {
    ahead_us: AtomicI64,
    setting: ArcSwap<Setting>,
}

/// The wall clock may drift this far from the moments, in microseconds, before the difference is measured again.
const DRIFT_US: i64 = 1_000_000;

impl WallClock {
    pub(crate) fn new() -> Self {
        Self {
            ahead_us: AtomicI64::new(Self::offset()),
            setting: ArcSwap::from_pointee(Setting::current()),
        }
    }

    fn offset() -> i64 {
        wall_clock()
            .as_micros()
            .saturating_sub(Moment::now().micros())
    }

    pub(crate) fn at(&self, moment: Moment) -> Timestamp {
        self.at_nanos(moment.nanos())
    }

    /// Converts what [`Moment::nanos`] returns.
    pub(crate) fn at_nanos(&self, nanos: i64) -> Timestamp {
        Timestamp::from_micros(self.ahead_us.load(Ordering::Relaxed)).shifted(nanos / 1_000)
    }

    /// Returns the setting of the clock when it was last followed.
    pub(crate) fn setting(&self) -> Setting {
        **self.setting.load()
    }

    /// Returns whether the wall clock has moved against the moments, because the device slept or the clock was set.
    pub(crate) fn has_moved(&self) -> bool {
        let known = self.ahead_us.load(Ordering::Relaxed);
        Self::offset().saturating_sub(known).saturating_abs() > DRIFT_US
    }

    /// Converts later moments by the current setting of the wall clock.
    pub(crate) fn follow(&self) {
        self.ahead_us.store(Self::offset(), Ordering::Relaxed);
        self.setting.store(Arc::new(Setting::current()));
    }
}

/// Returns the offset that the system reports at the start, or 0.
pub(crate) fn utc_offset_s() -> i32 {
    time::UtcOffset::current_local_offset().map_or(0, time::UtcOffset::whole_seconds)
}

/// Converts the SDK's clock to the time of the state machines.
pub(crate) trait Times {
    fn now() -> Self;
    fn at(instant: Instant) -> Self;
}

impl Times for Uptime {
    #[inline]
    fn now() -> Self {
        Self::at(Instant::now())
    }

    #[inline]
    fn at(instant: Instant) -> Self {
        let micros = Moment::from(instant).micros();
        Self::from_micros(u64::try_from(micros).unwrap_or_default())
    }
}

/// Returns the CPU time of this thread; zero where the system does not report it.
#[cfg(unix)]
pub(crate) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(not(unix))]
pub(crate) fn cpu_time() -> Duration {
    Duration::ZERO
}

/// Returns the CPU time of all threads of this process; `None` where the system does not report it.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems return `None`")]
pub(crate) fn process_cpu_time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Some(Duration::new(seconds, nanos))
}

#[cfg(not(unix))]
pub(crate) fn process_cpu_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_converted_to_the_wall_clock() {
        let clock = WallClock::new();
        let (before, shown) = (wall_clock(), clock.at(Moment::now()));
        assert!(
            shown.micros_since(before).abs() < 100_000,
            "{before} {shown}"
        );
        assert!(!clock.has_moved());
    }

    #[test]
    fn a_clock_that_was_set_is_followed() {
        let clock = WallClock::new();
        clock.ahead_us.fetch_add(3_600_000_000, Ordering::Relaxed);
        assert!(clock.has_moved());
        clock.follow();
        assert!(!clock.has_moved());
        assert!(clock.at(Moment::now()).micros_since(wall_clock()).abs() < 100_000);
    }

    #[test]
    fn moments_are_monotonic() {
        let first = Moment::now();
        let second = Moment::now();
        assert!(second >= first);
        assert_eq!(
            first.since(second.after(Duration::from_secs(1))),
            Duration::ZERO
        );
    }
}
