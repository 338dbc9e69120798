//! Tables and their columns as bytes. Knows no types of values and no fields.

mod next_number;

use crate::faults::Unreadable;
use crate::varint::{put, take};

/// The second column of a field, beside its own: the values of an option, the rows of a list, the pool of ids.
pub(crate) const SECOND: u64 = 0b10;
/// The column has one value, which is that of every row.
const SAME: u64 = 0b01;
/// Fields with larger numbers are of a newer version and are skipped.
const MOST_FIELDS: usize = 32;

/// The tag of a field's first column.
#[inline]
pub(crate) const fn tag(field: u64) -> u64 {
    field << 2
}

/// Writes a column whose bytes are given.
pub(crate) fn put_bytes(out: &mut Vec<u8>, tag: u64, bytes: &[u8]) {
    put(out, tag);
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A column of numbers that is being written. As long as all are the same, none is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    bytes: Vec<u8>,
    same: u64,
    rows: usize,
    is_varied: bool,
}

impl Numbers {
    #[inline]
    pub(crate) fn push(&mut self, number: u64) {
        if !self.is_varied {
            if self.rows == 0 {
                self.same = number;
            }
            if number == self.same {
                self.rows += 1;
                return;
            }
            self.vary();
        }
        put(&mut self.bytes, number);
    }

    #[cold]
    fn vary(&mut self) {
        for _ in 0..self.rows {
            put(&mut self.bytes, self.same);
        }
        self.is_varied = true;
    }

    /// Writes the column and empties it. A column of zeros is left out.
    pub(crate) fn write(&mut self, tag: u64, out: &mut Vec<u8>) {
        if self.is_varied {
            put_bytes(out, tag, &self.bytes);
        } else if self.same != 0 {
            put(&mut self.bytes, self.same);
            put_bytes(out, tag | SAME, &self.bytes);
        }
        self.bytes.clear();
        (self.same, self.rows, self.is_varied) = (0, 0, false);
    }

    /// Writes a column whose absence does not mean zeros.
    pub(crate) fn write_with_zeros(&mut self, tag: u64, out: &mut Vec<u8>) {
        if self.rows > 0 && self.same == 0 && !self.is_varied {
            put_bytes(out, tag | SAME, &[0]);
        }
        self.write(tag, out);
    }
}

/// The numbers of a column, one after the other.
#[derive(Debug)]
pub(crate) struct NumberCursor<'a> {
    rest: &'a [u8],
    same: Option<u64>,
}

impl NumberCursor<'_> {
    pub(crate) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }
}

/// The columns of a table that this version knows.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    pub(crate) rows: u64,
    columns: [Option<Column<'a>>; 2 * MOST_FIELDS],
}

#[derive(Clone, Copy, Debug)]
struct Column<'a> {
    bytes: &'a [u8],
    is_same: bool,
}

impl<'a> Table<'a> {
    /// Reads the tags of a table. They ascend, so that no column occurs twice.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let mut rest = bytes;
        let rows = take(&mut rest).ok_or(Unreadable::Damaged)?;
        let mut columns = [None; 2 * MOST_FIELDS];
        let mut least = 0;
        while !rest.is_empty() {
            let tag = take(&mut rest).ok_or(Unreadable::Damaged)?;
            let bytes = take_bytes(&mut rest)?;
            let place = tag >> 1;
            if place < least {
                return Err(Unreadable::Damaged);
            }
            least = place.saturating_add(1);
            let known = usize::try_from(place).ok();
            if let Some(column) = known.and_then(|place| columns.get_mut(place)) {
                let is_same = tag & SAME != 0;
                *column = Some(Column { bytes, is_same });
            }
        }
        Ok(Self { rows, columns })
    }

    fn column(&self, tag: u64) -> Option<Column<'a>> {
        let place = usize::try_from(tag >> 1).ok()?;
        *self.columns.get(place)?
    }

    /// The numbers of a column. One that is left out has zeros.
    pub(crate) fn numbers(&self, tag: u64) -> Result<NumberCursor<'a>, Unreadable> {
        let same = |number| NumberCursor {
            rest: &[],
            same: Some(number),
        };
        match self.column(tag) {
            None => Ok(same(0)),
            Some(mut column) if column.is_same => match take(&mut column.bytes) {
                Some(number) if column.bytes.is_empty() => Ok(same(number)),
                _ => Err(Unreadable::Damaged),
            },
            Some(column) => Ok(NumberCursor {
                rest: column.bytes,
                same: None,
            }),
        }
    }

    /// The numbers of a column that means something else if it is left out.
    pub(crate) fn numbers_if_any(&self, tag: u64) -> Result<Option<NumberCursor<'a>>, Unreadable> {
        let column = self.column(tag);
        column.map(|_| self.numbers(tag)).transpose()
    }

    /// The bytes of a column. One that is left out has none.
    pub(crate) fn bytes(&self, tag: u64) -> &'a [u8] {
        self.column(tag).map_or(&[], |column| column.bytes)
    }
}

/// Takes a number of bytes, and these bytes.
pub(crate) fn take_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Unreadable> {
    let length = take(rest).and_then(|length| usize::try_from(length).ok());
    let split = length.and_then(|length| rest.split_at_checked(length));
    let (bytes, after) = split.ok_or(Unreadable::Damaged)?;
    *rest = after;
    Ok(bytes)
}
