//! The parts of a batch: a number, a length and bytes each. Unknown ones are skipped.

use unjank_protocol::Signal;

use crate::column::put_bytes;

/// The first bytes of every batch. `uj2` and a byte that no text has.
pub(crate) const MAGIC: &[u8; 4] = b"uj2\xff";

/// The texts that all tables refer to. Precedes them.
pub(crate) const TEXTS: u64 = 1;
/// The envelope.
pub(crate) const HEAD: u64 = 2;
/// The time of sending.
pub(crate) const SENT: u64 = 3;
/// The first signal. The others follow in the order of the list of signals.
const SIGNALS: u64 = 8;

/// The section with the events of a signal.
pub(crate) const fn of(signal: Signal) -> u64 {
    SIGNALS + signal as u64
}

pub(crate) fn put_section(out: &mut Vec<u8>, section: u64, bytes: &[u8]) {
    put_bytes(out, section, bytes);
}
