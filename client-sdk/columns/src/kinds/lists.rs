//! Fields with rows of their own: lists, structures, and structures that many events share.

use std::collections::VecDeque;

use unjank_protocol::{Attributes, Histogram, Limits, Text};

use super::{Kind, Layout};
use crate::column::{NumberCursor, Numbers, SECOND, Table, put_bytes};
use crate::dictionary::Dictionary;
use crate::faults::{Fault, Unreadable};
use crate::rows::Rows;
use crate::state::{Incoming, Outgoing};
use crate::varint::put;

/// Rows that are being written.
#[derive(Clone)]
pub(crate) struct RowsColumn<R: Rows> {
    rows: u64,
    columns: R::Columns,
}

impl<R: Rows> Default for RowsColumn<R> {
    fn default() -> Self {
        Self {
            rows: 0,
            columns: R::Columns::default(),
        }
    }
}

impl<R: Rows> RowsColumn<R> {
    #[inline]
    pub(crate) fn push<'a>(&mut self, row: &R::Row<'a>, state: &mut Outgoing) {
        self.rows += 1;
        R::push(&mut self.columns, row, state);
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes the table and empties it.
    pub(crate) fn write(&mut self, state: &mut Outgoing, out: &mut Vec<u8>) {
        put(out, self.rows);
        R::write(&mut self.columns, state, out);
        self.rows = 0;
    }

    /// Writes the table as a column, unless it has no rows.
    fn write_column(&mut self, tag: u64, state: &mut Outgoing, out: &mut Vec<u8>) {
        if self.rows > 0 {
            let mut table = Vec::new();
            self.write(state, &mut table);
            put_bytes(out, tag | SECOND, &table);
        }
    }
}

/// Rows that are being read.
pub(crate) struct RowsCursor<'a, R: Rows> {
    left: u64,
    cursors: Option<R::Cursors<'a>>,
}

impl<'a, R: Rows> RowsCursor<'a, R> {
    /// Opens a table. No bytes are a table without rows.
    pub(crate) fn open(bytes: &'a [u8], state: &mut Incoming<'a>) -> Result<Self, Unreadable> {
        if bytes.is_empty() {
            let (left, cursors) = (0, None);
            return Ok(Self { left, cursors });
        }
        let table = Table::parse(bytes)?;
        Ok(Self {
            left: table.rows,
            cursors: Some(R::open(&table, state)?),
        })
    }

    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    #[inline]
    pub(crate) fn next(&mut self, state: &mut Incoming<'a>) -> Option<R::Row<'a>> {
        self.left = self.left.checked_sub(1)?;
        let cursors = self.cursors.as_mut()?;
        Some(R::next(cursors, state))
    }

    pub(crate) fn is_done(&self, state: &Incoming<'_>) -> bool {
        let cursors = self.cursors.as_ref();
        self.left == 0 && cursors.is_none_or(|cursors| R::is_done(cursors, state))
    }

    /// Skips rows. They may be malformed.
    fn skip(&mut self, rows: usize, state: &mut Incoming<'a>) {
        let (fault, text_bytes) = (state.fault, state.text_bytes);
        for _ in 0..rows {
            drop(self.next(state));
        }
        (state.fault, state.text_bytes) = (fault, text_bytes);
    }

    fn collect(&mut self, rows: usize, state: &mut Incoming<'a>) -> Vec<R::Row<'a>> {
        if !state.take_list(rows.saturating_mul(size_of::<R::Row<'a>>())) {
            return Vec::new();
        }
        let mut items = Vec::with_capacity(rows);
        for _ in 0..rows {
            items.extend(self.next(state));
        }
        items
    }
}

/// A list of at most `MOST` rows: the number of each event's, and one table with those of all events. As in JSON, a longer list is read up to
/// one row more.
pub(crate) struct List<R, const MOST: usize = { Limits::ITEMS }>(std::marker::PhantomData<R>);

/// A list of which the last rows are kept. As in JSON, the first of them comes twice if there were more.
pub(crate) struct LastOf<R>(std::marker::PhantomData<R>);

/// A list in a type of its own: attributes and histograms.
pub(crate) struct Entries<R>(std::marker::PhantomData<R>);

type ListColumn<R> = (Numbers, RowsColumn<R>);
type ListCursor<'a, R> = (NumberCursor<'a>, RowsCursor<'a, R>);

macro_rules! list_layout {
    ($(($($parameters:tt)+) $list:ty;)+) => {$(
        impl<$($parameters)+> Layout for $list {
            type Column = ListColumn<R>;
            type Cursor<'a> = ListCursor<'a, R>;

            fn write((counts, rows): &mut Self::Column, tag: u64, state: &mut Outgoing, out: &mut Vec<u8>) {
                counts.write(tag, out);
                rows.write_column(tag, state, out);
            }

            fn open<'a>(table: &Table<'a>, tag: u64, state: &mut Incoming<'a>) -> Result<Self::Cursor<'a>, Unreadable> {
                Ok((table.numbers(tag)?, RowsCursor::open(table.bytes(tag | SECOND), state)?))
            }

            fn is_done((counts, rows): &Self::Cursor<'_>, state: &Incoming<'_>) -> bool {
                counts.is_done() && rows.is_done(state)
            }
        }
    )+};
}

list_layout! {
    (R: Rows, const MOST: usize) List<R, MOST>;
    (R: Rows) LastOf<R>;
    (R: Rows) Entries<R>;
}

#[inline]
fn push_list<'a, R: Rows>(
    (counts, rows): &mut ListColumn<R>,
    list: &[R::Row<'a>],
    state: &mut Outgoing,
) {
    counts.push(list.len() as u64);
    for row in list {
        rows.push(row, state);
    }
}

/// The length of the next list. All rows are walked, whether they are kept or not, so their number is limited.
#[inline]
fn next_count<R: Rows>((counts, rows): &mut ListCursor<'_, R>, state: &mut Incoming<'_>) -> usize {
    let count = counts.next(state);
    if count > rows.left() {
        return state.stop(Unreadable::Damaged);
    }
    state.take_rows(count)
}

#[inline]
fn next_list<'a, R: Rows>(
    cursor: &mut ListCursor<'a, R>,
    most: usize,
    state: &mut Incoming<'a>,
) -> Vec<R::Row<'a>> {
    let count = next_count(cursor, state);
    if count == 0 {
        return Vec::new();
    }
    let kept = count.min(most.saturating_add(1));
    let items = cursor.1.collect(kept, state);
    cursor.1.skip(count - kept, state);
    items
}

impl<'a, R: Rows, const MOST: usize> Kind<'a, Vec<R::Row<'a>>> for List<R, MOST> {
    #[inline]
    fn push(column: &mut Self::Column, list: &Vec<R::Row<'a>>, state: &mut Outgoing) {
        push_list::<R>(column, list, state);
    }

    #[inline]
    fn next(
        cursor: &mut Self::Cursor<'a>,
        state: &mut Incoming<'a>,
        _: &'static str,
    ) -> Vec<R::Row<'a>> {
        next_list(cursor, MOST, state)
    }
}

impl<'a, R: Rows> Kind<'a, Vec<R::Row<'a>>> for LastOf<R>
where
    R::Row<'a>: Clone,
{
    fn push(column: &mut Self::Column, list: &Vec<R::Row<'a>>, state: &mut Outgoing) {
        push_list::<R>(column, list, state);
    }

    fn next(
        cursor: &mut Self::Cursor<'a>,
        state: &mut Incoming<'a>,
        _: &'static str,
    ) -> Vec<R::Row<'a>> {
        let count = next_count(cursor, state);
        let left_out = count.saturating_sub(Limits::ITEMS);
        cursor.1.skip(left_out, state);
        let mut items = VecDeque::from(cursor.1.collect(count - left_out, state));
        if left_out > 0
            && let Some(first) = items.front().cloned()
        {
            items.push_front(first);
        }
        items.into()
    }
}

impl<'a, R: for<'r> Rows<Row<'r> = (Text<'r>, Text<'r>)>> Kind<'a, Attributes<'a>> for Entries<R> {
    #[inline]
    fn push(column: &mut Self::Column, attributes: &Attributes<'a>, state: &mut Outgoing) {
        push_list::<R>(column, &attributes.0, state);
    }

    #[inline]
    fn next(
        cursor: &mut Self::Cursor<'a>,
        state: &mut Incoming<'a>,
        _: &'static str,
    ) -> Attributes<'a> {
        Attributes(next_list(cursor, Limits::ITEMS, state))
    }
}

impl<'a, R: for<'r> Rows<Row<'r> = (u32, u32)>> Kind<'a, Histogram> for Entries<R> {
    fn push(column: &mut Self::Column, histogram: &Histogram, state: &mut Outgoing) {
        push_list::<R>(column, &histogram.0, state);
    }

    fn next(cursor: &mut Self::Cursor<'a>, state: &mut Incoming<'a>, _: &'static str) -> Histogram {
        Histogram(next_list(cursor, Limits::ITEMS, state))
    }
}

/// A structure that each row has: a table with as many rows.
pub(crate) struct Flat<R>(std::marker::PhantomData<R>);

impl<R: Rows> Layout for Flat<R> {
    type Column = RowsColumn<R>;
    type Cursor<'a> = RowsCursor<'a, R>;

    fn write(column: &mut Self::Column, tag: u64, state: &mut Outgoing, out: &mut Vec<u8>) {
        column.write_column(tag, state, out);
    }

    fn open<'a>(
        table: &Table<'a>,
        tag: u64,
        state: &mut Incoming<'a>,
    ) -> Result<Self::Cursor<'a>, Unreadable> {
        RowsCursor::open(table.bytes(tag | SECOND), state)
    }

    fn is_done(cursor: &Self::Cursor<'_>, state: &Incoming<'_>) -> bool {
        cursor.is_done(state)
    }
}

impl<'a, R: Rows> Kind<'a, R::Row<'a>> for Flat<R>
where
    R::Row<'a>: Default,
{
    fn push(column: &mut Self::Column, row: &R::Row<'a>, state: &mut Outgoing) {
        column.push(row, state);
    }

    fn next(
        cursor: &mut Self::Cursor<'a>,
        state: &mut Incoming<'a>,
        _: &'static str,
    ) -> R::Row<'a> {
        if cursor.cursors.is_none() {
            return R::Row::default();
        }
        let row = cursor.next(state);
        row.unwrap_or_else(|| state.stop(Unreadable::Damaged))
    }
}

/// Rows that can be compared.
pub(crate) trait KeyRows: Rows {
    /// Appends the row in a form that no other row has.
    fn key(row: &Self::Row<'_>, state: &mut Outgoing, key: &mut Vec<u8>);
}

/// A structure that many rows have in common: the number of each, and a table with the distinct ones. 0 is the default.
pub(crate) struct Shared<R>(std::marker::PhantomData<R>);

#[derive(Clone)]
pub(crate) struct SharedColumn<R: Rows> {
    numbers: Numbers,
    keys: Dictionary,
    rows: RowsColumn<R>,
}

impl<R: Rows> Default for SharedColumn<R> {
    fn default() -> Self {
        Self {
            numbers: Numbers::default(),
            keys: Dictionary::default(),
            rows: RowsColumn::default(),
        }
    }
}

pub(crate) struct SharedCursor<'a, T> {
    numbers: NumberCursor<'a>,
    entries: Vec<Entry<T>>,
}

/// A distinct structure.
struct Entry<T> {
    value: T,
    fault: Option<(&'static str, Fault)>,
    text_bytes: usize,
}

impl<R: KeyRows> Layout for Shared<R> {
    type Column = SharedColumn<R>;
    type Cursor<'a> = SharedCursor<'a, R::Row<'a>>;

    fn write(column: &mut Self::Column, tag: u64, state: &mut Outgoing, out: &mut Vec<u8>) {
        column.numbers.write(tag, out);
        column.rows.write_column(tag, state, out);
        column.keys.clear();
    }

    fn open<'a>(
        table: &Table<'a>,
        tag: u64,
        state: &mut Incoming<'a>,
    ) -> Result<Self::Cursor<'a>, Unreadable> {
        let numbers = table.numbers(tag)?;
        let mut rows = RowsCursor::<R>::open(table.bytes(tag | SECOND), state)?;
        let count = state.take_rows(rows.left());
        let memory = count.saturating_mul(size_of::<Entry<R::Row<'a>>>());
        if !state.take_list(memory) {
            return Err(Unreadable::ListsTooLarge);
        }
        state.check()?;
        let mut entries = Vec::with_capacity(count);
        let before = (state.fault, state.text_bytes);
        while let Some(value) = rows.next(state) {
            let fault = state.fault.take();
            let text_bytes = state.text_bytes - before.1;
            entries.push(Entry {
                value,
                fault,
                text_bytes,
            });
            state.text_bytes = before.1;
        }
        (state.fault, state.text_bytes) = before;
        match rows.is_done(state) {
            true => Ok(SharedCursor { numbers, entries }),
            false => Err(Unreadable::Damaged),
        }
    }

    fn is_done(cursor: &Self::Cursor<'_>, _: &Incoming<'_>) -> bool {
        cursor.numbers.is_done()
    }
}

impl<'a, R: KeyRows> Kind<'a, R::Row<'a>> for Shared<R>
where
    R::Row<'a>: Clone + Default,
{
    #[inline]
    fn push(column: &mut Self::Column, row: &R::Row<'a>, state: &mut Outgoing) {
        let mut key = std::mem::take(&mut state.key);
        key.clear();
        R::key(row, state, &mut key);
        if key.iter().all(|byte| *byte == 0) {
            key.clear();
        }
        let (number, is_new) = column.keys.find(&key);
        state.key = key;
        if is_new {
            column.rows.push(row, state);
        }
        column.numbers.push(u64::from(number));
    }

    #[inline]
    fn next(
        cursor: &mut Self::Cursor<'a>,
        state: &mut Incoming<'a>,
        field: &'static str,
    ) -> R::Row<'a> {
        let number = cursor.numbers.next(state);
        if number == 0 {
            return R::Row::default();
        }
        let place = usize::try_from(number - 1).ok();
        let Some(entry) = place.and_then(|place| cursor.entries.get(place)) else {
            state.malformed(field, Fault::UnknownEntry);
            return R::Row::default();
        };
        if let Some((field, fault)) = entry.fault {
            state.malformed(field, fault);
        }
        state.text_bytes += entry.text_bytes;
        entry.value.clone()
    }
}
