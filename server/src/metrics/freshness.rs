//! How soon the rows of a batch can be queried: a histogram for Prometheus, and percentiles of the last minutes for people.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus::Histogram;
use unjank_foundation::clock::UnixTime;

/// The period of the percentiles.
const RECENT: Duration = Duration::from_secs(5 * 60);
/// Maximum number of batches to remember. The latest ones are kept.
const MOST: usize = 4_096;

#[derive(Clone)]
pub struct Freshness {
    histogram: Histogram,
    recent: Arc<Mutex<VecDeque<Delay>>>,
}

struct Delay {
    stored_at: UnixTime,
    passed: Duration,
}

/// Percentiles of the time from the arrival of a batch until its rows can be queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    pub p50: Duration,
    pub p99: Duration,
}

impl Freshness {
    pub(super) fn new(histogram: Histogram) -> Self {
        Self {
            histogram,
            recent: Arc::default(),
        }
    }

    /// Records batches whose rows can be queried now.
    pub fn stored(&self, now: UnixTime, received_at: impl Iterator<Item = UnixTime>) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        for received_at in received_at {
            let passed = now.since(received_at);
            self.histogram.observe(passed.as_secs_f64());
            if recent.len() == MOST {
                recent.pop_front();
            }
            recent.push_back(Delay {
                stored_at: now,
                passed,
            });
        }
    }

    /// Returns the percentiles of the last five minutes, or `None` if no batch was stored.
    #[must_use]
    pub fn recent(&self, now: UnixTime) -> Option<Delays> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now - RECENT;
        let mut delays: Vec<Duration> = recent
            .iter()
            .filter(|delay| delay.stored_at > since)
            .map(|delay| delay.passed)
            .collect();
        drop(recent);
        delays.sort_unstable();
        let quantile = |percent: usize| {
            let at = (delays.len() * percent).div_ceil(100).saturating_sub(1);
            delays.get(at).copied()
        };
        Some(Delays {
            p50: quantile(50)?,
            p99: quantile(99)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use prometheus::HistogramOpts;

    use super::*;

    #[test]
    fn only_the_last_minutes_are_counted() {
        let histogram = Histogram::with_opts(HistogramOpts::new("test", "test")).unwrap();
        let freshness = Freshness::new(histogram);
        let minute = |number: i64| UnixTime::from_secs(60 * number);
        assert_eq!(freshness.recent(UnixTime::default()), None);
        freshness.stored(minute(1), [UnixTime::default()].into_iter());
        let before = |millis| minute(10) - Duration::from_millis(millis);
        freshness.stored(minute(10), (1..=100).map(before));
        let delays = freshness.recent(minute(10)).unwrap();
        assert_eq!(delays.p50, Duration::from_millis(50));
        assert_eq!(delays.p99, Duration::from_millis(99));
        assert_eq!(freshness.recent(minute(16)), None);
        freshness.stored(minute(0), std::iter::repeat_n(minute(0), 2 * MOST));
        assert_eq!(freshness.recent.lock().unwrap().len(), MOST);
    }
}
