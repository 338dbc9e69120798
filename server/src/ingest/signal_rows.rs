//! The rows of a signal: in the order of their table, with a frame for each hour.

use hashbrown::HashMap;
use unjank_foundation::clock::{HOUR, UnixTime};
use unjank_protocol::Signal;

use super::rows::{Envelope, Table};
use crate::ingest::event_checks::{Event, Place};
use crate::records::{FrameBuilder, RecordBuilder};

/// The maximum number of batches of a request. Each takes room in the log.
pub const MOST_BATCHES: usize = 1_000;

/// The maximum number of hours whose rows get frames of their own, for all batches of a request together. Each frame repeats the values of its
/// batch, so the frames of a request are bounded by its batches, not by its events.
const MOST_HOURS: usize = 24;

/// The frames of a batch besides those of its signals: its stacks, their classes, and the row of the batch.
const OTHER_FRAMES: usize = 3;

const _: () = assert!(
    Signal::ALL.len() * MOST_HOURS + MOST_BATCHES * (Signal::ALL.len() + OTHER_FRAMES)
        < u16::MAX as usize,
    "a record counts its frames in 16 bits"
);

/// The maximum number of hours whose rows get frames of their own, for each batch of a request.
pub(super) fn most_hours(batches: usize) -> usize {
    debug_assert!(
        batches <= MOST_BATCHES,
        "the frames of a record are bounded"
    );
    (MOST_HOURS / batches.max(1)).max(1)
}

/// A place as numbers, which are compared much faster than names.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    /// Hours since the epoch.
    hour: i64,
    /// The rank of the name among the names of the batch.
    name: usize,
    time: Option<UnixTime>,
}

fn in_table_order<E: Event>(events: &[E]) -> Vec<(Order, &E)> {
    let names = events.iter().filter_map(|event| event.place()?.name);
    let mut ranks: HashMap<&str, usize> = names.map(|name| (name, 0)).collect();
    let mut names: Vec<&str> = ranks.keys().copied().collect();
    names.sort_unstable();
    ranks.extend(names.into_iter().zip(0..));
    let order = |place: Place<'_>| Order {
        hour: place.time.number_of(HOUR),
        name: place
            .name
            .map_or(0, |name| ranks.get(name).copied().unwrap_or_default()),
        time: Some(place.time),
    };
    let place = |event: &E| event.place().map(order).unwrap_or_default();
    let mut ordered: Vec<_> = events.iter().map(|event| (place(event), event)).collect();
    ordered.sort_by_key(|(order, _)| *order);
    ordered
}

/// Writes the rows of one signal, if the batch has any: in the order of the table, and a frame for each hour, unless there are more than
/// `most_hours`. The writer orders the frames of many batches, so that ClickHouse need not sort the rows of a block.
pub(super) fn signal_rows<E: Event>(
    record: &mut RecordBuilder,
    envelope: &Envelope<'_>,
    most_hours: usize,
    events: &[E],
) {
    let ordered = in_table_order(events);
    let rows: Vec<&E> = ordered.iter().map(|(_, event)| *event).collect();
    let hours = ordered.chunk_by(|(one, _), (next, _)| one.hour == next.hour);
    let mut lengths: Vec<usize> = hours.map(<[_]>::len).collect();
    if lengths.len() > most_hours {
        lengths = vec![rows.len()];
    }
    let mut rest = rows.as_slice();
    for length in lengths {
        let Some((rows, later)) = rest.split_at_checked(length) else {
            return;
        };
        rest = later;
        let mut frame = FrameBuilder::new(E::NAME, rows.len());
        envelope.columns(&mut frame);
        E::columns(rows, envelope, &mut frame);
        record.frame(frame);
    }
}
