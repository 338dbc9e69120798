//! The outcomes of the events of one batch, by signal.

use unjank_protocol::{RateLimit, Signal};

/// The events of one signal in one batch. Each event is counted in exactly one field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalTally {
    /// Valid events that this batch stores.
    pub stored: u32,
    /// Events that are stored with an earlier copy of the batch.
    pub duplicate: u32,
    /// Events that were rejected one by one.
    pub invalid: u32,
    /// Valid events over the quota of their signal.
    pub held_back: u32,
}

impl SignalTally {
    pub fn received(self) -> u32 {
        self.stored + self.duplicate + self.invalid + self.held_back
    }

    pub fn rejected(self) -> u32 {
        self.invalid + self.held_back
    }
}

/// The outcomes of the events of one batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally([SignalTally; Signal::ALL.len()]);

impl Tally {
    pub fn get(&self, signal: Signal) -> SignalTally {
        self.0.get(signal as usize).copied().unwrap_or_default()
    }

    pub(super) fn get_mut(&mut self, signal: Signal) -> &mut SignalTally {
        &mut self.0[signal as usize]
    }

    /// The signals that the batch has events of.
    pub fn iter(&self) -> impl Iterator<Item = (Signal, SignalTally)> {
        let all = Signal::ALL.iter().copied().zip(self.0);
        all.filter(|(_, tally)| tally.received() > 0)
    }

    /// The sum of a count over all signals.
    pub fn total(&self, count: impl Fn(SignalTally) -> u32) -> u64 {
        self.0.iter().map(|tally| u64::from(count(*tally))).sum()
    }

    /// Moves the stored events of rate-limited signals to `held_back`.
    pub(super) fn hold_back(&mut self, limits: &[RateLimit]) {
        for limit in limits.iter().filter(|limit| limit.dropped > 0) {
            let tally = self.get_mut(limit.signal);
            debug_assert_eq!(
                u64::from(tally.stored),
                limit.dropped,
                "a signal is held back as a whole"
            );
            tally.held_back += std::mem::take(&mut tally.stored);
        }
    }

    /// Moves all events to `duplicate`, because the batch is stored already.
    pub fn become_duplicate(&mut self) {
        for tally in &mut self.0 {
            *tally = SignalTally {
                duplicate: tally.received(),
                ..SignalTally::default()
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_counted_once() {
        let mut tally = Tally::default();
        *tally.get_mut(Signal::Spans) = SignalTally {
            stored: 5,
            invalid: 2,
            ..SignalTally::default()
        };
        let limit = RateLimit {
            signal: Signal::Spans,
            retry_after_s: 1,
            dropped: 5,
        };
        tally.hold_back(&[limit]);
        let spans = tally.get(Signal::Spans);
        assert_eq!((spans.stored, spans.held_back, spans.invalid), (0, 5, 2));
        assert_eq!((spans.received(), spans.rejected()), (7, 7));
        tally.become_duplicate();
        let all: Vec<_> = tally.iter().collect();
        let duplicate = SignalTally {
            duplicate: 7,
            ..SignalTally::default()
        };
        assert_eq!(all, [(Signal::Spans, duplicate)]);
        assert_eq!(tally.total(SignalTally::received), 7);
    }
}
