//! The signals that are switched off.

use unjank_protocol::Signal;

/// Signals that are switched off, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Off(u32);

impl Off {
    #[inline]
    pub(crate) fn has(self, signal: Signal) -> bool {
        self.0 != 0 && self.0 & bit(signal) != 0
    }

    /// Switches a signal off, or on again.
    pub(super) fn set(&mut self, signal: Signal, on: bool) {
        self.0 = match on {
            true => self.0 & !bit(signal),
            false => self.0 | bit(signal),
        };
    }
}

fn bit(signal: Signal) -> u32 {
    let place = Signal::ALL.iter().position(|one| *one == signal);
    place.map_or(0, |place| 1_u32 << (place & 31))
}
