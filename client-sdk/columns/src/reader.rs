//! Reads batches from bytes that anybody may have written: never panics, and allocates no more than [`Bounds`] says.

use unjank_protocol::{Batch, Signal, Timestamp, with_signals};

use crate::column::take_bytes;
use crate::dictionary;
use crate::envelope::Envelope;
use crate::faults::{Fault, Malformed, Unreadable};
use crate::kinds::{RowsCursor, is_known};
use crate::rows::Rows;
use crate::sections::{self, MAGIC, put_section};
use crate::signals;
use crate::state::{Bounds, Incoming};
use crate::varint::{from_zigzag, take};

/// A batch that was read.
#[derive(Debug)]
pub struct Read<'a> {
    /// The batch with its well-formed events.
    pub batch: Batch<'a>,
    /// The events that are missing in `batch`: by signal and in the order sent.
    pub malformed: Vec<Malformed>,
    /// The bytes of all texts, each as often as it is used.
    pub text_bytes: usize,
}

/// The events of a signal from the rows of its table.
trait FromRows<T>: Sized {
    fn from_rows(rows: Vec<T>) -> Option<Self>;
}

impl<T> FromRows<T> for Vec<T> {
    fn from_rows(rows: Self) -> Option<Self> {
        Some(rows)
    }
}

/// A signal of which a batch has one event at most.
impl<T> FromRows<T> for Option<T> {
    fn from_rows(mut rows: Vec<T>) -> Option<Self> {
        let event = rows.pop();
        rows.is_empty().then_some(event)
    }
}

macro_rules! read_signal {
    (
        { $state:expr, $batch:expr, $section:expr, $bytes:expr }
        $($variant:ident $name:literal $list:ident: $many:ident<$event:ident>, $doc:literal;)+
    ) => {
        $(
            if $section == sections::of(Signal::$variant) {
                let rows = table::<signals::$variant>(&mut $state, $bytes, Signal::$variant)?;
                $batch.$list = FromRows::from_rows(rows).ok_or(Unreadable::Damaged)?;
            }
        )+
    };
}

/// Reads a batch. Texts borrow from `body`.
///
/// # Errors
///
/// If the body is damaged, has a text that is no text (see [`mended`]), has no valid envelope or is larger than `bounds`. A malformed event is no
/// error, see [`Read::malformed`].
pub fn read<'a>(body: &'a [u8], bounds: &Bounds) -> Result<Read<'a>, Unreadable> {
    let mut rest = body.strip_prefix(MAGIC).ok_or(Unreadable::NotColumnar)?;
    let mut state = Incoming::new(*bounds);
    let (mut batch, mut envelope, mut sent_at) = (Batch::default(), None, None);
    let mut seen = 0_u64;
    while !rest.is_empty() {
        let section = take(&mut rest).ok_or(Unreadable::Damaged)?;
        let bytes = take_bytes(&mut rest)?;
        let bit = 1_u64.checked_shl(u32::try_from(section).unwrap_or(u32::MAX));
        let bit = bit.unwrap_or_default();
        if seen & bit != 0 {
            return Err(Unreadable::Twice(section));
        }
        seen |= bit;
        match section {
            sections::TEXTS => state.texts = dictionary::read(bytes)?,
            sections::HEAD => envelope = Some(self::envelope(&mut state, bytes)?),
            sections::SENT => sent_at = Some(time(bytes)?),
            section => {
                with_signals!([read_signal] { state, batch, section, bytes });
            }
        }
    }
    let envelope = envelope.ok_or(Unreadable::NoEnvelope)?;
    envelope.put_into(&mut batch);
    batch.sent_at = sent_at;
    state.left_out.sort_by_key(|one| (one.signal, one.index));
    Ok(Read {
        batch,
        malformed: state.left_out,
        text_bytes: state.text_bytes,
    })
}

/// Returns a batch whose texts are not UTF-8, or have a NUL, with U+FFFD in place of each such part: a text that was cut within a character costs
/// the character. The result has at most four times as many bytes. `None` if the body is damaged.
#[must_use]
pub fn mended(body: &[u8]) -> Option<Vec<u8>> {
    let mut rest = body.strip_prefix(MAGIC)?;
    let mut out = MAGIC.to_vec();
    while !rest.is_empty() {
        let section = take(&mut rest)?;
        let bytes = take_bytes(&mut rest).ok()?;
        match section {
            sections::TEXTS => put_section(&mut out, section, &dictionary::mended(bytes)?),
            _ => put_section(&mut out, section, bytes),
        }
    }
    Some(out)
}

fn time(mut bytes: &[u8]) -> Result<Timestamp, Unreadable> {
    let micros = take(&mut bytes).ok_or(Unreadable::Damaged)?;
    let time = Timestamp::from_micros(from_zigzag(micros));
    match bytes {
        [] if is_known(time) => Ok(time),
        [] => Err(Unreadable::Envelope("sent_at", Fault::OutOfRange)),
        _ => Err(Unreadable::Damaged),
    }
}

/// Reads a table whose rows are not malformed by more than themselves.
fn table<'a, R: Rows>(
    state: &mut Incoming<'a>,
    bytes: &'a [u8],
    signal: Signal,
) -> Result<Vec<R::Row<'a>>, Unreadable> {
    state.time = 0;
    let mut rows = RowsCursor::<R>::open(bytes, state)?;
    let count = usize::try_from(rows.left()).unwrap_or(usize::MAX);
    state.events = state.events.saturating_add(count);
    if state.events > state.bounds.events {
        let limit = state.bounds.events;
        return Err(Unreadable::TooManyEvents { limit });
    }
    let mut events = Vec::with_capacity(count);
    for index in 0.. {
        let Some(event) = rows.next(state) else { break };
        match state.fault.take() {
            None => events.push(event),
            Some((field, fault)) => state.left_out.push(Malformed {
                signal,
                index,
                field,
                fault,
            }),
        }
        state.check()?;
    }
    match rows.is_done(state) {
        true => Ok(events),
        false => Err(Unreadable::Damaged),
    }
}

fn envelope<'a>(state: &mut Incoming<'a>, bytes: &'a [u8]) -> Result<Envelope<'a>, Unreadable> {
    let mut rows = RowsCursor::<signals::Head>::open(bytes, state)?;
    let envelope = rows.next(state);
    state.check()?;
    if let Some((field, fault)) = state.fault.take() {
        // The fields of these tables have different names.
        return Err(if signals::Resources::FIELDS.contains(&field) {
            Unreadable::Resource(field, fault)
        } else if signals::Modules::FIELDS.contains(&field) {
            Unreadable::Envelope("modules", fault)
        } else if signals::Parts::FIELDS.contains(&field) {
            Unreadable::Envelope("split_from", fault)
        } else {
            Unreadable::Envelope(field, fault)
        });
    }
    let is_done = rows.is_done(state);
    envelope.filter(|_| is_done).ok_or(Unreadable::Damaged)
}
