//! Ids. They are random, so each is written once, into a pool.

use unjank_protocol::{SpanId, TraceId};
use uuid::Uuid;

use super::{Kind, Layout};
use crate::column::{NumberCursor, Numbers, Table, put_bytes};
use crate::faults::{Fault, Unreadable};
use crate::pool::{NONE, Pool, PoolCursor};
use crate::state::{Incoming, Outgoing};

/// A codes column with the place of its last id.
type Codes = (Numbers, u32);
type CodesCursor<'a> = (NumberCursor<'a>, usize);

/// Few traces are under way at once.
const TRACES: usize = 16;

/// The id of a trace.
pub(crate) struct TraceIds;

impl Layout for TraceIds {
    type Column = (Codes, Pool<16, TRACES>);
    type Cursor<'a> = (CodesCursor<'a>, PoolCursor<'a, 16>);

    fn write((codes, pool): &mut Self::Column, tag: u64, _: &mut Outgoing, out: &mut Vec<u8>) {
        codes.0.write(tag, out);
        codes.1 = 0;
        pool.write(tag, out);
    }

    fn open<'a>(
        table: &Table<'a>,
        tag: u64,
        _: &mut Incoming<'a>,
    ) -> Result<Self::Cursor<'a>, Unreadable> {
        Ok(((table.numbers(tag)?, 0), PoolCursor::open(table, tag)?))
    }

    fn is_done((codes, pool): &Self::Cursor<'_>, _: &Incoming<'_>) -> bool {
        codes.0.is_done() && pool.is_done()
    }
}

impl<'a> Kind<'a, TraceId> for TraceIds {
    #[inline]
    fn push((codes, pool): &mut Self::Column, id: &TraceId, _: &mut Outgoing) {
        let code = match id.0 {
            0 => NONE,
            id => pool.code(id.to_be_bytes(), &mut codes.1),
        };
        codes.0.push(code);
    }

    #[inline]
    fn next(
        (codes, pool): &mut Self::Cursor<'a>,
        state: &mut Incoming<'a>,
        field: &'static str,
    ) -> TraceId {
        let id = pool.get(codes.0.next(state), &mut codes.1);
        TraceId(known(id, state, field).map_or(0, u128::from_be_bytes))
    }
}

/// The id of a span. Its pool has the ids of parents, too.
pub(crate) struct SpanIds;

impl Layout for SpanIds {
    type Column = Codes;
    type Cursor<'a> = CodesCursor<'a>;

    fn write(codes: &mut Codes, tag: u64, state: &mut Outgoing, out: &mut Vec<u8>) {
        codes.0.write(tag, out);
        codes.1 = 0;
        state.spans.write(tag, out);
    }

    fn open<'a>(
        table: &Table<'a>,
        tag: u64,
        state: &mut Incoming<'a>,
    ) -> Result<CodesCursor<'a>, Unreadable> {
        state.spans = PoolCursor::open(table, tag)?;
        Ok((table.numbers(tag)?, 0))
    }

    fn is_done(codes: &CodesCursor<'_>, state: &Incoming<'_>) -> bool {
        codes.0.is_done() && state.spans.is_done()
    }
}

impl<'a> Kind<'a, SpanId> for SpanIds {
    #[inline]
    fn push(codes: &mut Codes, id: &SpanId, state: &mut Outgoing) {
        codes
            .0
            .push(span_code(*id, codes.1, state, |last| codes.1 = last));
    }

    #[inline]
    fn next(codes: &mut CodesCursor<'a>, state: &mut Incoming<'a>, field: &'static str) -> SpanId {
        let code = codes.0.next(state);
        let id = state.spans.get(code, &mut codes.1);
        SpanId(known(id, state, field).map_or(0, u64::from_be_bytes))
    }
}

/// The id of a parent, in the pool of [`SpanIds`].
pub(crate) struct Parents;

impl Layout for Parents {
    type Column = Codes;
    type Cursor<'a> = CodesCursor<'a>;

    fn write(codes: &mut Codes, tag: u64, _: &mut Outgoing, out: &mut Vec<u8>) {
        codes.0.write(tag, out);
        codes.1 = 0;
    }

    fn open<'a>(
        table: &Table<'a>,
        tag: u64,
        _: &mut Incoming<'a>,
    ) -> Result<CodesCursor<'a>, Unreadable> {
        Ok((table.numbers(tag)?, 0))
    }

    fn is_done(codes: &CodesCursor<'_>, _: &Incoming<'_>) -> bool {
        codes.0.is_done()
    }
}

impl<'a> Kind<'a, Option<SpanId>> for Parents {
    #[inline]
    fn push(codes: &mut Codes, id: &Option<SpanId>, state: &mut Outgoing) {
        let id = id.unwrap_or_default();
        codes
            .0
            .push(span_code(id, codes.1, state, |last| codes.1 = last));
    }

    #[inline]
    fn next(
        codes: &mut CodesCursor<'a>,
        state: &mut Incoming<'a>,
        field: &'static str,
    ) -> Option<SpanId> {
        let code = codes.0.next(state);
        let id = state.spans.get(code, &mut codes.1).unwrap_or_else(|fault| {
            state.malformed(field, fault);
            None
        });
        id.map(|id| SpanId(u64::from_be_bytes(id)))
            .filter(|id| id.0 != 0)
    }
}

#[inline]
fn span_code(id: SpanId, last: u32, state: &mut Outgoing, moved: impl FnOnce(u32)) -> u64 {
    let mut last = last;
    let code = match id.0 {
        0 => NONE,
        id => state.spans.code(id.to_be_bytes(), &mut last),
    };
    moved(last);
    code
}

/// An id that must be there and have a bit.
#[inline]
fn known<const SIZE: usize>(
    id: Result<Option<[u8; SIZE]>, Fault>,
    state: &mut Incoming<'_>,
    field: &'static str,
) -> Option<[u8; SIZE]> {
    match id {
        Ok(Some(id)) if id != [0; SIZE] => return Some(id),
        Ok(_) => state.malformed(field, Fault::ZeroId),
        Err(fault) => state.malformed(field, fault),
    }
    None
}

/// A UUID of a field that has few, as its 16 bytes.
pub(crate) struct Uuids<const REQUIRED: bool = false>;

impl<const REQUIRED: bool> Layout for Uuids<REQUIRED> {
    type Column = Vec<u8>;
    /// `None` if the column is missing: all ids are nil, or malformed if they are required.
    type Cursor<'a> = Option<&'a [[u8; 16]]>;

    fn write(column: &mut Vec<u8>, tag: u64, _: &mut Outgoing, out: &mut Vec<u8>) {
        put_bytes(out, tag, column);
        column.clear();
    }

    fn open<'a>(
        table: &Table<'a>,
        tag: u64,
        _: &mut Incoming<'a>,
    ) -> Result<Self::Cursor<'a>, Unreadable> {
        match table.bytes(tag).as_chunks() {
            ([], []) => Ok(None),
            (ids, []) => Ok(Some(ids)),
            _ => Err(Unreadable::Damaged),
        }
    }

    fn is_done(cursor: &Self::Cursor<'_>, _: &Incoming<'_>) -> bool {
        cursor.is_none_or(<[_]>::is_empty)
    }
}

impl<'a, const REQUIRED: bool> Kind<'a, Uuid> for Uuids<REQUIRED> {
    fn push(column: &mut Vec<u8>, id: &Uuid, _: &mut Outgoing) {
        column.extend_from_slice(id.as_bytes());
    }

    fn next(cursor: &mut Self::Cursor<'a>, state: &mut Incoming<'a>, field: &'static str) -> Uuid {
        let Some(ids) = cursor else {
            if REQUIRED {
                state.malformed(field, Fault::Missing);
            }
            return Uuid::nil();
        };
        let Some((id, rest)) = ids.split_first() else {
            return state.stop(Unreadable::Damaged);
        };
        *ids = rest;
        Uuid::from_bytes(*id)
    }
}
