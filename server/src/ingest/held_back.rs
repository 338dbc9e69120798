//! Events of signals that are over their quota: valid, and dropped all the same. They are `rejected` as `rate_limited`, once,
//! and stand in the receipt as one number a signal, since nobody would want thousands of entries.

use unjank_protocol::{Batch, RateLimit, Receipt, Signal};

use crate::store::{Count, Outcome, RecordBuilder};

/// The reason under which they are counted.
const REASON: &str = "rate_limited";

pub(super) fn dropped(limits: &[RateLimit]) -> u64 {
    limits.iter().map(|limit| limit.dropped).sum()
}

/// Takes the events out of the batch and out of what is to be stored.
pub(super) fn clear(batch: &mut Batch<'_>, events: &mut Vec<(Signal, u32)>, limits: &[RateLimit]) {
    for limit in limits.iter().filter(|limit| limit.dropped > 0) {
        events.retain(|(signal, _)| *signal != limit.signal);
        match limit.signal {
            Signal::Spans => batch.spans.clear(),
            Signal::FrameWindows => batch.frame_windows.clear(),
            Signal::Janks => batch.janks.clear(),
            Signal::Traffic => batch.traffic.clear(),
            Signal::PageLoads => batch.page_loads.clear(),
            Signal::Metrics => batch.metrics.clear(),
            Signal::AppStarts => batch.app_starts.clear(),
            Signal::Recompositions => batch.recompositions.clear(),
            Signal::SdkHealth => batch.sdk_health = None,
            Signal::Other => {}
        }
    }
}

/// Their outcome.
pub(super) fn count(record: &mut RecordBuilder, limits: &[RateLimit]) {
    for limit in limits.iter().filter(|limit| limit.dropped > 0) {
        record.count(Count {
            signal: limit.signal.as_str(),
            outcome: Outcome::Rejected,
            reason: REASON,
            events: events_of(limit),
        });
    }
}

/// They were received.
pub(super) fn add_back(events: &mut Vec<(Signal, u32)>, limits: &[RateLimit]) {
    for limit in limits.iter().filter(|limit| limit.dropped > 0) {
        match events
            .iter_mut()
            .find(|(signal, _)| *signal == limit.signal)
        {
            Some((_, events)) => *events += events_of(limit),
            None => events.push((limit.signal, events_of(limit))),
        }
    }
}

/// What was stored when a batch came first: the signals held back then, not those held back now.
pub(super) fn as_then(
    receipt: Receipt<'static>,
    events: &[(Signal, u32)],
    held_back: &[Signal],
) -> Receipt<'static> {
    let valid =
        |signal: Signal, events: u32| u64::from(events).saturating_sub(receipt.rejected_of(signal));
    let (mut accepted, mut rate_limits) = (0, Vec::new());
    for (signal, events) in events {
        let valid = valid(*signal, *events);
        let known = receipt.rate_limits.iter().find(|one| one.signal == *signal);
        let is_held = held_back.contains(signal);
        accepted += if is_held { 0 } else { valid };
        if is_held || known.is_some() {
            rate_limits.push(RateLimit {
                signal: *signal,
                retry_after_s: known.map_or(0, |known| known.retry_after_s),
                dropped: if is_held { valid } else { 0 },
            });
        }
    }
    Receipt {
        accepted,
        rate_limits,
        duplicate: true,
        ..receipt
    }
}

fn events_of(limit: &RateLimit) -> u32 {
    u32::try_from(limit.dropped).unwrap_or(u32::MAX)
}
