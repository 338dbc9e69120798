//! What always holds for a ledger.

use std::collections::HashSet;

use super::{Ledger, Range};
use crate::store::old_fault::{OldFault, is_back};
use crate::store::range_number::RANGES;

impl Ledger {
    /// Checks what always holds for a ledger that replaces `before`, so that a mistake shows at its cause.
    pub(crate) fn debug_assert_follows(&self, before: &Self) {
        if is_back(OldFault::NumbersRepeat) {
            return;
        }
        debug_assert!(self.done >= before.done, "the log is drained once");
        debug_assert!(self.last >= before.last, "numbers grow");
        debug_assert!(
            self.folds
                .is_sorted_by(|one, next| one.number < next.number && one.closed),
            "only the last fold is open"
        );
        debug_assert!(
            self.folds.iter().all(|fold| fold.ranges <= RANGES),
            "each range has a number of its own"
        );
        if let Some(range) = &self.range {
            debug_assert!(
                range.first == self.done + 1 && range.first <= range.last,
                "a range follows the last drained record"
            );
            debug_assert!(
                range.number <= self.last,
                "the number of the range is never drawn again"
            );
            debug_assert!(
                range.settles_own_records_once(),
                "a record of the range is sent, a duplicate, or of an earlier range"
            );
        }
    }
}

impl Range {
    /// Whether the lists name only records of this range, and no record twice.
    fn settles_own_records_once(&self) -> bool {
        let mut seen = HashSet::new();
        let again = self.again.iter().map(|(seq, _)| seq);
        self.duplicates
            .iter()
            .chain(again)
            .all(|seq| (self.first..=self.last).contains(seq) && seen.insert(seq))
    }
}
