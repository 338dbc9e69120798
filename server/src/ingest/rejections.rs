//! The events of a batch that were refused one by one: all are counted, the first hundred are listed in the receipt.

use unjank_protocol::{Receipt, Rejected, RejectedUnlisted, Signal};

use super::check::Reject;

#[derive(Default)]
pub(super) struct Rejections {
    listed: Vec<Rejected>,
    counts: Vec<Counted>,
    /// Where the events stood that could not be decoded, in order of signal and index.
    undecoded: Vec<(Signal, u32)>,
}

/// Rejected events of one signal for one reason.
pub(super) struct Counted {
    pub(super) signal: Signal,
    pub(super) code: &'static str,
    pub(super) events: u32,
}

impl Rejections {
    pub(super) fn add(&mut self, signal: Signal, index: u32, reject: Reject) {
        let known = self.counts.iter_mut();
        let mut same = known.filter(|one| one.signal == signal && one.code == reject.code);
        match same.next() {
            Some(counted) => counted.events += 1,
            None => self.counts.push(Counted {
                signal,
                code: reject.code,
                events: 1,
            }),
        }
        if self.listed.len() < Receipt::MAX_REJECTED {
            self.listed.push(reject.at(signal, index));
        }
    }

    /// Adds an event that could not be decoded, so that it is missing from its list.
    pub(super) fn add_undecoded(&mut self, signal: Signal, index: u32, reject: Reject) {
        self.undecoded.push((signal, index));
        self.add(signal, index, reject);
    }

    /// For each decoded event of a signal: its index in the list that the device sent.
    pub(super) fn decoded_places(&self, signal: Signal) -> impl Iterator<Item = u32> + use<> {
        let missing = self.undecoded.iter().filter(|(of, _)| *of == signal);
        let missing: Vec<u32> = missing.map(|(_, index)| *index).collect();
        let mut missing = missing.into_iter().peekable();
        (0..).filter(move |index| missing.next_if_eq(index).is_none())
    }

    pub(super) fn counts(&self) -> &[Counted] {
        &self.counts
    }

    pub(super) fn total(&self) -> u64 {
        self.counts.iter().map(|one| u64::from(one.events)).sum()
    }

    /// What the receipt says: the listed ones in order, and how many more there are by signal.
    pub(super) fn for_receipt(mut self) -> (Vec<Rejected>, Vec<RejectedUnlisted>) {
        let mut unlisted: Vec<RejectedUnlisted> = Vec::new();
        for Counted { signal, events, .. } in self.counts {
            let events = u64::from(events);
            match unlisted.iter_mut().find(|one| one.signal == signal) {
                Some(one) => one.events += events,
                None => unlisted.push(RejectedUnlisted { signal, events }),
            }
        }
        for one in &mut unlisted {
            let listed = self.listed.iter();
            one.events -= listed.filter(|listed| listed.signal == one.signal).count() as u64;
        }
        unlisted.retain(|one| one.events > 0);
        self.listed.sort_by_key(|one| (one.signal, one.index));
        (self.listed, unlisted)
    }
}
