//! The texts of a batch: those of its resource, of its events and of their stacks.

use unjank_protocol::{Batch, Events, Frame, Signal, for_each_signal};

use super::TextFilter;
use crate::ingest::event_checks::Event;
use crate::ingest::jank;

impl TextFilter<'_> {
    /// Filters all texts of a batch. `new_stack` returns the fingerprint of a stack that is not stored yet.
    pub(crate) fn batch(
        &mut self,
        batch: &mut Batch<'_>,
        new_stack: impl Fn(&[Frame<'_>]) -> Option<u64>,
    ) {
        // Before any text changes: the fingerprint covers the frames as sent.
        let stacks = batch.janks.iter().flat_map(jank::stacks);
        let new_stacks: Vec<Option<u64>> = stacks.map(|frames| new_stack(frames)).collect();
        self.resource(&mut batch.resource);
        for_each_signal!(&mut batch, |signal, events| {
            self.signal = signal;
            for event in Events::as_mut_slice(events) {
                event.filter_texts(self);
            }
        });
        self.signal = Signal::Janks;
        let stacks = batch.janks.iter_mut().flat_map(jank::stacks_mut);
        for (stack, fingerprint) in stacks.zip(new_stacks) {
            self.stack(stack, fingerprint);
        }
    }
}
