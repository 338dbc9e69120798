//! Reads the next number of a column. Apart from the columns, because the state of a batch consists of columns.

use super::NumberCursor;
use crate::faults::Unreadable;
use crate::state::Incoming;
use crate::varint::take;

impl NumberCursor<'_> {
    #[inline]
    pub(crate) fn next(&mut self, state: &mut Incoming<'_>) -> u64 {
        if let Some(same) = self.same {
            return same;
        }
        let number = take(&mut self.rest);
        number.unwrap_or_else(|| state.stop(Unreadable::Damaged))
    }
}
