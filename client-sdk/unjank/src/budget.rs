//! The device's own budget: how many events of each signal it sends per minute, whatever the app does.

use std::time::Duration;

use unjank_protocol::Signal;

use crate::clock::Moment;

/// A token bucket for each signal.
#[derive(Debug)]
pub(crate) struct Budget {
    buckets: Vec<Bucket>,
    unlimited: bool,
}

#[derive(Debug)]
struct Bucket {
    signal: Signal,
    per_minute: f64,
    tokens: f64,
    as_of: Moment,
}

/// Events per minute, with bursts of twice as many: far more than a sampled app records, far less than what strains a phone.
fn per_minute(signal: Signal) -> f64 {
    match signal {
        Signal::Spans => 3_000.0,
        Signal::Metrics => 1_000.0,
        Signal::Recompositions | Signal::Traffic => 500.0,
        Signal::FrameWindows | Signal::PageLoads => 200.0,
        Signal::Janks => 60.0,
        Signal::AppStarts | Signal::SdkHealth | Signal::Other => 30.0,
    }
}

impl Budget {
    pub(crate) fn new(unlimited: bool) -> Self {
        let now = Moment::now();
        let bucket = |signal: &Signal| Bucket {
            signal: *signal,
            per_minute: per_minute(*signal),
            tokens: per_minute(*signal) * 2.0,
            as_of: now,
        };
        Self {
            buckets: Signal::ALL.iter().map(bucket).collect(),
            unlimited,
        }
    }

    /// Takes a token for one event. Returns whether there was one.
    pub(crate) fn take(&mut self, signal: Signal, now: Moment) -> bool {
        if self.unlimited {
            return true;
        }
        let mut buckets = self.buckets.iter_mut();
        let Some(bucket) = buckets.find(|bucket| bucket.signal == signal) else {
            return true;
        };
        let passed = now.since(bucket.as_of).as_secs_f64() / Duration::from_secs(60).as_secs_f64();
        bucket.as_of = now;
        let most = bucket.per_minute * 2.0;
        bucket.tokens = (bucket.tokens + passed * bucket.per_minute).min(most);
        if bucket.tokens < 1.0 {
            return false;
        }
        bucket.tokens -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_a_flood_does_not_and_tokens_refill_with_time() {
        let mut budget = Budget::new(false);
        let now = Moment::now();
        let passed = (0..1_000)
            .filter(|_| budget.take(Signal::Janks, now))
            .count();
        assert_eq!(passed, 120);
        assert!(budget.take(Signal::Spans, now));
        let later = now.after(Duration::from_secs(60));
        let passed = (0..1_000)
            .filter(|_| budget.take(Signal::Janks, later))
            .count();
        assert_eq!(passed, 60);
    }
}
