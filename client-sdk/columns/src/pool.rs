//! Distinct ids in the order of their first use. Columns refer to them by their places.

use crate::column::{SECOND, Table, put_bytes};
use crate::faults::{Fault, Unreadable};
use crate::varint::{from_zigzag, zigzag};

/// The code of a missing id.
pub(crate) const NONE: u64 = 0;
/// The code of the next id of the pool. Higher ones are a step from the last place.
const NEW: u64 = 1;

/// Ids of `SIZE` bytes that are being collected. Remembers up to `RECENT` of them; one that it forgets is written again.
#[derive(Clone, Debug)]
pub(crate) struct Pool<const SIZE: usize, const RECENT: usize> {
    bytes: Vec<u8>,
    count: u32,
    recent: Box<[([u8; SIZE], u32); RECENT]>,
}

impl<const SIZE: usize, const RECENT: usize> Default for Pool<SIZE, RECENT> {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            count: 0,
            recent: Box::new([([0; SIZE], 0); RECENT]),
        }
    }
}

impl<const SIZE: usize, const RECENT: usize> Pool<SIZE, RECENT> {
    /// Returns the code of an id that is not zero. `last` is the place of the last id of its column.
    #[inline]
    pub(crate) fn code(&mut self, id: [u8; SIZE], last: &mut u32) -> u64 {
        let slot = usize::from(id.last().copied().unwrap_or_default()) % RECENT;
        let Some((recent, place)) = self.recent.get_mut(slot) else {
            return NONE;
        };
        if *recent == id {
            let step = i64::from(*place) - i64::from(*last);
            *last = *place;
            return NEW + 1 + zigzag(step);
        }
        (*recent, *place) = (id, self.count);
        *last = self.count;
        self.count += 1;
        self.bytes.extend_from_slice(&id);
        NEW
    }

    pub(crate) fn write(&mut self, tag: u64, out: &mut Vec<u8>) {
        if !self.bytes.is_empty() {
            put_bytes(out, tag | SECOND, &self.bytes);
            self.bytes.clear();
            self.recent.fill(([0; SIZE], 0));
            self.count = 0;
        }
    }
}

/// The ids of a pool, in the order of their first use.
#[derive(Debug, Default)]
pub(crate) struct PoolCursor<'a, const SIZE: usize> {
    ids: &'a [[u8; SIZE]],
    /// How many were used.
    used: usize,
}

impl<'a, const SIZE: usize> PoolCursor<'a, SIZE> {
    pub(crate) fn open(table: &Table<'a>, tag: u64) -> Result<Self, Unreadable> {
        let (ids, rest) = table.bytes(tag | SECOND).as_chunks();
        match rest {
            [] => Ok(Self { ids, used: 0 }),
            _ => Err(Unreadable::Damaged),
        }
    }

    /// Returns the id with this code, or `None` if it is missing.
    #[inline]
    pub(crate) fn get(&mut self, code: u64, last: &mut usize) -> Result<Option<[u8; SIZE]>, Fault> {
        let place = match code {
            NONE => return Ok(None),
            NEW => {
                self.used += 1;
                self.used - 1
            }
            step => {
                let step = isize::try_from(from_zigzag(step - NEW - 1)).ok();
                step.and_then(|step| last.checked_add_signed(step))
                    .ok_or(Fault::UnknownId)?
            }
        };
        let id = self.ids.get(place).ok_or(Fault::UnknownId)?;
        *last = place;
        Ok(Some(*id))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.used == self.ids.len()
    }
}

/// A batch remembers so many ids of spans: parents have children for a while.
const SPANS: usize = 256;

/// The ids of spans, those of their parents among them.
pub(crate) type SpanPool = Pool<8, SPANS>;
