//! How a field is laid out in columns. Each kind is one way, with its writer and its reader; the lists of fields in `signals` choose one for
//! each field.

mod ids;
mod lists;
mod numbers;
mod texts;

pub(crate) use self::ids::{Parents, SpanIds, TraceIds, Uuids};
pub(crate) use self::lists::{
    Entries, Flat, KeyRows, LastOf, List, RowsColumn, RowsCursor, Shared,
};
pub(crate) use self::numbers::{Line, Maybe, Plain, Rate, Times, Uptime, is_known};
pub(crate) use self::texts::Texts;

use crate::column::Table;
use crate::faults::Unreadable;
use crate::state::{Incoming, Outgoing};

/// The columns of a field.
pub(crate) trait Layout {
    /// What is being written.
    type Column: Clone + Default;
    /// What is being read.
    type Cursor<'a>;

    /// Writes the columns and empties them.
    fn write(column: &mut Self::Column, tag: u64, state: &mut Outgoing, out: &mut Vec<u8>);

    fn open<'a>(
        table: &Table<'a>,
        tag: u64,
        state: &mut Incoming<'a>,
    ) -> Result<Self::Cursor<'a>, Unreadable>;

    /// Whether nothing is left. If something is, the number of rows is wrong.
    fn is_done(cursor: &Self::Cursor<'_>, state: &Incoming<'_>) -> bool;
}

/// The values of a field.
pub(crate) trait Kind<'a, T>: Layout {
    fn push(column: &mut Self::Column, value: &T, state: &mut Outgoing);

    /// Reads the next value. If it is malformed, says so in `state` and returns another one.
    fn next(cursor: &mut Self::Cursor<'a>, state: &mut Incoming<'a>, field: &'static str) -> T;
}

/// Fields of rows that [`Shared`] can compare.
pub(crate) trait Key<'a, T>: Kind<'a, T> {
    /// Appends a value in a form that no other value has.
    fn key(value: &T, state: &mut Outgoing, key: &mut Vec<u8>);
}
