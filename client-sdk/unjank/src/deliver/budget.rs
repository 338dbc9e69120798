//! The device's own budget: how many events of each signal it sends per minute, whatever the app does.
//!
//! Events over the budget are not simply dropped, because counts would come out too low. While less than half of the budget is left, each
//! event passes with a probability that falls with what is left, and an event that passes carries that probability in its sample rate. So
//! a burst of 150 times the budget is still represented. What exceeds even that is lost, and counted as `rate_limited`.

use std::time::Duration;

use unjank_protocol::Signal;
use unjank_protocol::config::Budget as PerMinute;

use crate::clock::Moment;
use crate::config::Mode;

/// A token bucket for each signal.
#[derive(Debug)]
pub(crate) struct Budget {
    buckets: Vec<Bucket>,
    is_unlimited: bool,
}

#[derive(Debug)]
struct Bucket {
    signal: Signal,
    per_minute: f64,
    tokens: f64,
    as_of: Moment,
}

/// How often the probability is halved from half of the budget to none.
const HALVINGS: f64 = 10.0;
/// The largest budget, which is also the range of the remote configuration.
const MOST: u32 = 1_000_000;

fn per_minute(of: &PerMinute, signal: Signal) -> f64 {
    let events = match signal {
        Signal::Spans => of.spans,
        Signal::Metrics => of.metrics,
        Signal::Recompositions => of.recompositions,
        Signal::FrameWindows => of.frame_windows,
        Signal::PageLoads => of.page_loads,
        Signal::Janks => of.janks,
        // An app cannot record many of these.
        Signal::Traffic | Signal::AppStarts | Signal::SdkHealth | Signal::Other => MOST,
    };
    f64::from(events.min(MOST))
}

impl Budget {
    /// Creates the budget. Only `Mode::Production` has one.
    pub(crate) fn new(of: &PerMinute, mode: Mode) -> Self {
        let now = Moment::now();
        let bucket = |signal: &Signal| Bucket {
            signal: *signal,
            per_minute: per_minute(of, *signal),
            tokens: per_minute(of, *signal) * 2.0,
            as_of: now,
        };
        Self {
            buckets: Signal::ALL.iter().map(bucket).collect(),
            is_unlimited: mode != Mode::Production,
        }
    }

    /// Applies other limits. What is left stays the same share of the budget, because the probability depends on that share.
    pub(crate) fn set(&mut self, of: &PerMinute) {
        for bucket in &mut self.buckets {
            let left = if bucket.per_minute > 0.0 {
                bucket.tokens / bucket.per_minute
            } else {
                2.0
            };
            bucket.per_minute = per_minute(of, bucket.signal);
            bucket.tokens = left * bucket.per_minute;
        }
    }

    /// Decides whether an event passes. `draw` is a random number from 0 to below 1. Returns the probability with which the event passed;
    /// `None` if it did not pass.
    pub(crate) fn pass(&mut self, signal: Signal, draw: f64, now: Moment) -> Option<f64> {
        if self.is_unlimited {
            return Some(1.0);
        }
        let mut buckets = self.buckets.iter_mut();
        let Some(bucket) = buckets.find(|bucket| bucket.signal == signal) else {
            return Some(1.0);
        };
        let passed = now.since(bucket.as_of).as_secs_f64() / Duration::from_secs(60).as_secs_f64();
        bucket.as_of = now;
        if bucket.per_minute < 1.0 {
            return None;
        }
        let most = bucket.per_minute * 2.0;
        bucket.tokens = (bucket.tokens + passed * bucket.per_minute).min(most);
        let used = (1.0 - bucket.tokens / bucket.per_minute).max(0.0);
        let probability = (-HALVINGS * used).exp2();
        if bucket.tokens < 1.0 {
            return None;
        }
        // What the event costs on average. If only events that pass had a cost, the probability would follow the draws.
        bucket.tokens -= probability;
        (draw < probability).then_some(probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::draw;

    /// Sends events at this rate for ten minutes. Returns how many passed, and how many events these represent.
    fn flood(budget: &mut Budget, signal: Signal, per_second: u32) -> (u32, f64) {
        let (mut passed, mut weight) = (0, 0.0);
        let begun = Moment::now();
        for number in 0..per_second * 600 {
            let now = begun.after(Duration::from_secs(1) * number / per_second);
            if let Some(probability) = budget.pass(signal, draw(), now) {
                passed += 1;
                weight += 1.0 / probability;
            }
        }
        (passed, weight)
    }

    #[test]
    fn a_flood_is_limited_and_what_passes_stands_for_all_of_it() {
        let mut budget = Budget::new(&PerMinute::default(), Mode::Production);
        let (passed, weight) = flood(&mut budget, Signal::Spans, 200);
        // The bucket and ten minutes of refilling, of 120,000 events.
        assert!((30_000..=36_100).contains(&passed), "{passed}");
        assert!((114_000.0..126_000.0).contains(&weight), "{weight}");
    }

    #[test]
    fn an_app_within_its_budget_loses_nothing() {
        let mut budget = Budget::new(&PerMinute::default(), Mode::Production);
        assert_eq!(flood(&mut budget, Signal::Spans, 45), (27_000, 27_000.0));
    }

    #[test]
    fn a_larger_budget_takes_effect_at_once() {
        let mut budget = Budget::new(&PerMinute::default(), Mode::Production);
        for spans in [0, 1_000_000] {
            budget.set(&PerMinute {
                spans,
                ..PerMinute::default()
            });
        }
        let (passed, _) = flood(&mut budget, Signal::Spans, 1_000);
        assert_eq!(passed, 600_000);
    }

    #[test]
    fn limits_can_be_changed_and_do_not_apply_in_development() {
        let few = PerMinute {
            spans: 0,
            ..PerMinute::default()
        };
        let mut budget = Budget::new(&PerMinute::default(), Mode::Production);
        budget.set(&few);
        assert_eq!(budget.pass(Signal::Spans, 0.0, Moment::now()), None);
        let mut budget = Budget::new(&few, Mode::Development);
        assert_eq!(budget.pass(Signal::Spans, 0.99, Moment::now()), Some(1.0));
    }
}
