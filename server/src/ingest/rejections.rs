//! The rejected events of a batch: all are counted, the first hundred are listed in the receipt.

use unjank_protocol::{Receipt, Rejected, RejectedUnlisted, Signal};

use crate::ingest::device_clock::TIME_OUT_OF_RANGE;
use crate::ingest::reject::Reject;

#[derive(Default)]
pub(super) struct Rejections {
    listed: Vec<Rejected>,
    unlisted: Vec<RejectedUnlisted>,
    counts: Vec<RejectedCount>,
    /// The list and index of each event that could not be decoded, in the order sent.
    undecoded: Vec<(Signal, u32)>,
}

/// Rejected events of one signal for one reason.
pub(super) struct RejectedCount {
    pub(super) signal: Signal,
    pub(super) code: &'static str,
    pub(super) events: u32,
}

impl Rejections {
    pub(super) fn add(&mut self, signal: Signal, index: u32, reject: Reject) {
        let known = self.counts.iter_mut();
        let mut same = known.filter(|one| one.signal == signal && one.code == reject.code);
        match same.next() {
            Some(count) => count.events += 1,
            None => self.counts.push(RejectedCount {
                signal,
                code: reject.code,
                events: 1,
            }),
        }
        if self.lists_another() {
            self.listed.push(reject.at(signal, index));
            return;
        }
        match self.unlisted.iter_mut().find(|one| one.signal == signal) {
            Some(one) => one.events += 1,
            None => self.unlisted.push(RejectedUnlisted { signal, events: 1 }),
        }
    }

    /// Adds an event that could not be decoded and is therefore missing from its decoded list.
    pub(super) fn add_undecoded(&mut self, signal: Signal, index: u32, reject: Reject) {
        self.undecoded.push((signal, index));
        self.add(signal, index, reject);
    }

    /// Whether the receipt lists the next rejected event.
    pub(super) fn lists_another(&self) -> bool {
        self.listed.len() < Receipt::MAX_REJECTED
    }

    /// For each decoded event of a signal, its index in the list that the device sent.
    pub(super) fn decoded_indices(&self, signal: Signal) -> impl Iterator<Item = u32> + use<> {
        let missing = self.undecoded.iter().filter(|(of, _)| *of == signal);
        let missing: Vec<u32> = missing.map(|(_, index)| *index).collect();
        let mut missing = missing.into_iter().peekable();
        (0..).filter(move |index| missing.next_if_eq(index).is_none())
    }

    /// Turns the rejections of a signal into those of the batch's first arrival, and returns their number. Only whether a time is out of range
    /// depends on when a batch arrives. `known` is the number at the first arrival if the server remembers it.
    pub(super) fn of_first_arrival(&mut self, signal: Signal, known: Option<u32>) -> u32 {
        let of_signal = self.counts.iter().filter(|one| one.signal == signal);
        let (late, lasting): (Vec<_>, Vec<_>) =
            of_signal.partition(|one| one.code == TIME_OUT_OF_RANGE);
        let sum = |counts: Vec<&RejectedCount>| counts.iter().map(|one| one.events).sum::<u32>();
        let (late, lasting) = (sum(late), sum(lasting));
        let first = known.unwrap_or(lasting);
        if first == late + lasting {
            return first;
        }
        self.listed
            .retain(|one| one.signal != signal || one.code != TIME_OUT_OF_RANGE);
        self.unlisted.retain(|one| one.signal != signal);
        let listed = self.listed.iter().filter(|one| one.signal == signal);
        let events = u64::from(first).saturating_sub(listed.count() as u64);
        if events > 0 {
            self.unlisted.push(RejectedUnlisted { signal, events });
        }
        first
    }

    pub(super) fn counts(&self) -> &[RejectedCount] {
        &self.counts
    }

    /// The number of rejected events.
    pub(super) fn events(&self) -> u64 {
        self.counts().iter().map(|one| u64::from(one.events)).sum()
    }

    /// Returns the rejected events that the receipt lists, in order, and the number of the others.
    pub(super) fn for_receipt(mut self) -> (Vec<Rejected>, Vec<RejectedUnlisted>) {
        self.listed.sort_by_key(|one| (one.signal, one.index));
        (self.listed, self.unlisted)
    }
}
