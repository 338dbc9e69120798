//! Quotas of single signals: events over the quota of their signal are held back, and the rest of the batch is stored. Pure: the time is a
//! parameter.
//!
//! A batch that finds room is admitted whole and may overdraw the quota. The signal then waits until an event fits again. So no batch is
//! split, and the average rate holds. Each server counts on its own, from its start.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unjank_database::SignalQuotas;
use unjank_foundation::clock::UnixTime;
use unjank_protocol::{RateLimit, Signal};

use super::token_bucket::{Bucket, Rate};

/// The usage of the signals that a project limits.
#[derive(Debug, Default)]
pub struct SignalMeter(Mutex<Signals>);

#[derive(Debug, Default)]
struct Signals(Vec<(Signal, Bucket)>);

impl SignalMeter {
    /// The previous meter with the current quotas. The usage stays. `None` when no signal is limited.
    pub(super) fn new(
        before: Option<&Arc<Self>>,
        quotas: &SignalQuotas,
        (largest_batch, now): (u32, UnixTime),
    ) -> Option<Arc<Self>> {
        if quotas.is_empty() {
            return None;
        }
        let meter = before.map(Arc::clone).unwrap_or_default();
        let mut signals = meter.at(now);
        signals
            .0
            .retain(|(signal, _)| quotas.iter().any(|(limited, _)| limited == *signal));
        for (signal, most) in quotas.iter() {
            let rate = Rate::new(Some(most), largest_batch);
            match signals.bucket(signal) {
                Some(bucket) => bucket.change(rate),
                None => signals.0.push((signal, Bucket::new(rate, now))),
            }
        }
        drop(signals);
        Some(meter)
    }

    /// Takes the events of signals that have room. Returns the signals that have none, before or after this.
    pub(super) fn take(
        &self,
        events: impl Iterator<Item = (Signal, u32)>,
        now: UnixTime,
    ) -> Vec<RateLimit> {
        let mut signals = self.at(now);
        events
            .filter_map(|(signal, events)| signals.take(signal, events))
            .collect()
    }

    /// Gives back events that were taken.
    pub(super) fn give_back(&self, events: impl Iterator<Item = (Signal, u32)>, now: UnixTime) {
        let mut signals = self.at(now);
        for (signal, events) in events {
            if let Some(bucket) = signals.bucket(signal) {
                bucket.give_back(events);
            }
        }
    }

    /// Sets the waits of the limits. Without a meter, no signal waits.
    pub(super) fn refresh_waits(meter: Option<&Self>, limits: &mut Vec<RateLimit>, now: UnixTime) {
        let mut signals = meter.map(|meter| meter.at(now));
        for limit in limits.iter_mut() {
            let bucket = signals.as_mut().and_then(|all| all.bucket(limit.signal));
            let wait = bucket.and_then(|bucket| bucket.wait());
            limit.retry_after_s = wait.map_or(0, seconds);
        }
        limits.retain(|limit| limit.dropped > 0 || limit.retry_after_s > 0);
    }

    /// The usage at that time.
    fn at(&self, now: UnixTime) -> MutexGuard<'_, Signals> {
        let mut signals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, bucket) in &mut signals.0 {
            bucket.advance_to(now);
        }
        signals
    }
}

impl Signals {
    fn bucket(&mut self, signal: Signal) -> Option<&mut Bucket> {
        let mut all = self.0.iter_mut();
        let (_, bucket) = all.find(|(one, _)| *one == signal)?;
        Some(bucket)
    }

    /// Takes all events or none. Returns a limit for the receipt if the signal has no room afterwards.
    fn take(&mut self, signal: Signal, events: u32) -> Option<RateLimit> {
        let bucket = self.bucket(signal)?;
        let taken = bucket.overdraw(events);
        Some(RateLimit {
            signal,
            retry_after_s: seconds(bucket.wait()?),
            dropped: if taken { 0 } else { u64::from(events) },
        })
    }
}

/// Whole seconds, at least one.
fn seconds(wait: Duration) -> u32 {
    let begun = u64::from(wait.subsec_nanos() > 0);
    u32::try_from(wait.as_secs().saturating_add(begun).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::quota::Budget;
    use super::*;

    /// 2026-11-20T12:00:00Z.
    const NOON: UnixTime = UnixTime::from_micros(1_795_176_000_000_000);
    const SECOND: Duration = Duration::from_secs(1);

    fn meter(
        before: Option<&Arc<SignalMeter>>,
        most: u64,
        now: UnixTime,
    ) -> Option<Arc<SignalMeter>> {
        let quotas = SignalQuotas::new([("spans", Some(most))]).unwrap();
        SignalMeter::new(before, &quotas, (50, now))
    }

    fn budget(signals: Option<Arc<SignalMeter>>) -> Budget {
        Budget {
            signals,
            ..Budget::default()
        }
    }

    fn spans(budget: &Budget, events: u32, now: UnixTime) -> Option<(u32, u64)> {
        let limits = budget.take_signals(
            [(Signal::Spans, events), (Signal::Janks, 9)].into_iter(),
            now,
        );
        assert!(limits.iter().all(|limit| limit.signal == Signal::Spans));
        limits
            .first()
            .map(|limit| (limit.retry_after_s, limit.dropped))
    }

    #[test]
    fn a_batch_may_overdraw_and_then_the_signal_waits() {
        // The bucket holds 100.
        let budget = budget(meter(None, 10, NOON));
        assert_eq!(spans(&budget, 99, NOON), None);
        // Overdrawn by 49: there is room for one event after 50.
        assert_eq!(spans(&budget, 50, NOON), Some((5, 0)));
        assert_eq!(spans(&budget, 7, NOON + 4 * SECOND), Some((1, 7)));
        assert_eq!(spans(&budget, 1, NOON + 5 * SECOND), Some((1, 0)));
        let later = NOON + 3_600 * SECOND;
        assert_eq!(spans(&budget, 99, later), None);
        assert_eq!(spans(&budget, 1, later), Some((1, 0)));
    }

    #[test]
    fn the_average_rate_holds() {
        let budget = budget(meter(None, 10, NOON));
        let mut taken = 0;
        for tick in 0..10_000 {
            let limit = spans(&budget, 50, NOON + tick * SECOND / 10);
            taken += 50 - limit.map_or(0, |(_, dropped)| dropped);
        }
        assert!((10_000..=10_150).contains(&taken), "{taken}");
    }

    #[test]
    fn a_quota_of_zero_admits_nothing_and_no_quota_admits_everything() {
        let zero = meter(None, 0, NOON);
        assert_eq!(spans(&budget(zero.clone()), 3, NOON), Some((3_600, 3)));
        let none = SignalMeter::new(zero.as_ref(), &SignalQuotas::default(), (50, NOON));
        assert_eq!(spans(&budget(none), 1_000, NOON), None);
        let raised = budget(meter(zero.as_ref(), 10, NOON));
        assert_eq!(spans(&raised, 99, NOON), None);
    }

    #[test]
    fn a_quota_change_keeps_the_usage_and_unstored_events_are_refunded() {
        let before = meter(None, 10, NOON);
        assert_eq!(spans(&budget(before.clone()), 120, NOON), Some((3, 0)));
        let same = budget(meter(before.as_ref(), 10, NOON));
        assert_eq!(spans(&same, 1, NOON), Some((3, 1)));
        let limit = |signal, retry_after_s, dropped| RateLimit {
            signal,
            retry_after_s,
            dropped,
        };
        let mut limits = vec![limit(Signal::Spans, 9, 0), limit(Signal::Janks, 9, 7)];
        same.refresh_waits(&mut limits, NOON);
        let waiting = [limit(Signal::Spans, 3, 0), limit(Signal::Janks, 0, 7)];
        assert_eq!(limits, waiting);
        same.give_back_signals(std::iter::once((Signal::Spans, 120)), NOON);
        same.refresh_waits(&mut limits, NOON);
        assert_eq!(limits, waiting[1..]);
        assert_eq!(spans(&same, 99, NOON), None);
    }
}
