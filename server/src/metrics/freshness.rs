//! How soon the rows of a batch can be queried: a histogram for Prometheus, and percentiles of the last minutes for people.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus::Histogram;

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
    stored_at: i64,
    micros: i64,
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

    /// Records batches whose rows can be queried now. Times are in microseconds since the epoch.
    pub fn stored(&self, now: i64, received_at: impl Iterator<Item = i64>) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        for received_at in received_at {
            let micros = now.saturating_sub(received_at).max(0);
            self.histogram.observe(micros as f64 / 1e6);
            if recent.len() == MOST {
                recent.pop_front();
            }
            recent.push_back(Delay {
                stored_at: now,
                micros,
            });
        }
    }

    /// Returns the percentiles of the last five minutes, or `None` if no batch was stored.
    #[must_use]
    pub fn recent(&self, now: i64) -> Option<Delays> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.saturating_sub(i64::try_from(RECENT.as_micros()).unwrap_or(i64::MAX));
        let mut delays: Vec<i64> = recent
            .iter()
            .filter(|delay| delay.stored_at > since)
            .map(|delay| delay.micros)
            .collect();
        drop(recent);
        delays.sort_unstable();
        let quantile = |percent: usize| {
            let at = (delays.len() * percent).div_ceil(100).saturating_sub(1);
            let micros = u64::try_from(*delays.get(at)?).unwrap_or_default();
            Some(Duration::from_micros(micros))
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
        let minute = 60_000_000;
        assert_eq!(freshness.recent(0), None);
        freshness.stored(minute, [0].into_iter());
        let millis = |ms: i64| 10 * minute - ms * 1_000;
        freshness.stored(10 * minute, (1..=100).map(millis));
        let delays = freshness.recent(10 * minute).unwrap();
        assert_eq!(delays.p50, Duration::from_millis(50));
        assert_eq!(delays.p99, Duration::from_millis(99));
        assert_eq!(freshness.recent(16 * minute), None);
        freshness.stored(0, std::iter::repeat_n(0, 2 * MOST));
        assert_eq!(freshness.recent.lock().unwrap().len(), MOST);
    }
}
