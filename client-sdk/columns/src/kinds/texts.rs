//! Texts, as their numbers in the dictionary of the batch.

use unjank_protocol::Text;

use super::{Key, Kind, Layout};
use crate::column::{NumberCursor, Numbers, Table};
use crate::faults::{Fault, Unreadable};
use crate::state::{Incoming, Outgoing};
use crate::varint::put;

/// A text as its number in the dictionary.
pub(crate) struct Texts;

impl Layout for Texts {
    /// With the number of the last text, which is often the next one, too.
    type Column = (Numbers, u32);
    type Cursor<'a> = NumberCursor<'a>;

    fn write(column: &mut Self::Column, tag: u64, _: &mut Outgoing, out: &mut Vec<u8>) {
        column.0.write(tag, out);
        column.1 = 0;
    }

    fn open<'a>(
        table: &Table<'a>,
        tag: u64,
        _: &mut Incoming<'a>,
    ) -> Result<NumberCursor<'a>, Unreadable> {
        table.numbers(tag)
    }

    fn is_done(cursor: &NumberCursor<'_>, _: &Incoming<'_>) -> bool {
        cursor.is_done()
    }
}

impl<'a> Kind<'a, Text<'a>> for Texts {
    #[inline]
    fn push((column, last): &mut Self::Column, text: &Text<'a>, state: &mut Outgoing) {
        *last = state.texts.number(text.as_bytes(), *last);
        column.push(u64::from(*last));
    }

    #[inline]
    fn next(
        cursor: &mut NumberCursor<'a>,
        state: &mut Incoming<'a>,
        field: &'static str,
    ) -> Text<'a> {
        let number = usize::try_from(cursor.next(state));
        let text = number.ok().and_then(|number| state.texts.get(number));
        let Some(text) = text.copied() else {
            state.malformed(field, Fault::UnknownText);
            return Text::default();
        };
        state.text_bytes += text.len();
        Text::without_nul(text)
    }
}

impl<'a> Key<'a, Text<'a>> for Texts {
    #[inline]
    fn key(text: &Text<'a>, state: &mut Outgoing, key: &mut Vec<u8>) {
        put(key, u64::from(state.texts.number(text.as_bytes(), 0)));
    }
}
