//! The rows of a table: what a list of fields makes.

use crate::column::Table;
use crate::faults::Unreadable;
use crate::state::{Incoming, Outgoing};

/// The rows of a table.
pub(crate) trait Rows: Clone {
    type Row<'a>;
    type Columns: Clone + Default;
    type Cursors<'a>;
    /// The names of the fields.
    const FIELDS: &'static [&'static str];

    fn push<'a>(columns: &mut Self::Columns, row: &Self::Row<'a>, state: &mut Outgoing);

    /// Writes the columns and empties them.
    fn write(columns: &mut Self::Columns, state: &mut Outgoing, out: &mut Vec<u8>);

    fn open<'a>(
        table: &Table<'a>,
        state: &mut Incoming<'a>,
    ) -> Result<Self::Cursors<'a>, Unreadable>;

    /// Reads the next row. If it is malformed, says so in `state`.
    fn next<'a>(cursors: &mut Self::Cursors<'a>, state: &mut Incoming<'a>) -> Self::Row<'a>;

    fn is_done(cursors: &Self::Cursors<'_>, state: &Incoming<'_>) -> bool;
}
