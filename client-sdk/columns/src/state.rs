//! What the columns of a batch share while it is written or read.

use unjank_protocol::Limits;

use crate::dictionary::Dictionary;
use crate::faults::{Fault, Malformed, Unreadable};
use crate::pool::{PoolCursor, SpanPool};

/// What the columns of a batch share while it is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) texts: Dictionary,
    pub(crate) spans: SpanPool,
    /// The last time of the signal, in microseconds.
    pub(crate) time: i64,
    /// Memory for the key of a shared row.
    pub(crate) key: Vec<u8>,
}

/// What a batch may need at most. A batch that needs more is refused as a whole.
///
/// Reading allocates at most `events` times the size of the largest event, `list_bytes`, and 16 bytes for each text of the dictionary, of
/// which there are at most as many as the body has bytes, and at most 1,048,576.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The events of all signals together.
    pub events: usize,
    /// Memory of the lists inside the events, without their texts.
    pub list_bytes: usize,
    /// The texts of all events, each as often as it is used. So a small batch stands for no more text than a large one in JSON.
    pub text_bytes: usize,
    /// The rows inside of events: attributes, frames and others, also those that are left out because an event has too many.
    pub list_rows: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            events: limits.events,
            list_bytes: 16 << 20,
            text_bytes: limits.decompressed_bytes,
            list_rows: 1 << 20,
        }
    }
}

/// What the columns of a batch share while it is read.
pub(crate) struct Incoming<'a> {
    pub(crate) texts: Vec<&'a str>,
    pub(crate) spans: PoolCursor<'a, 8>,
    /// The last time of the signal, in microseconds.
    pub(crate) time: i64,
    /// The first fault of the row that is read.
    pub(crate) fault: Option<(&'static str, Fault)>,
    pub(crate) text_bytes: usize,
    pub(crate) events: usize,
    list_bytes: usize,
    list_rows: usize,
    pub(crate) bounds: Bounds,
    /// Why the rest of the batch is not read.
    stop: Option<Unreadable>,
    pub(crate) left_out: Vec<Malformed>,
}

impl<'a> Incoming<'a> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            texts: vec![""],
            spans: PoolCursor::default(),
            time: 0,
            fault: None,
            text_bytes: 0,
            events: 0,
            list_bytes: 0,
            list_rows: 0,
            bounds,
            stop: None,
            left_out: Vec::new(),
        }
    }

    /// Notes that the row that is read is malformed.
    #[cold]
    pub(crate) fn malformed(&mut self, field: &'static str, fault: Fault) {
        self.fault.get_or_insert((field, fault));
    }

    /// Notes that the batch cannot be read. Returns a value that stands for all.
    #[cold]
    pub(crate) fn stop<T: Default>(&mut self, why: Unreadable) -> T {
        self.stop.get_or_insert(why);
        T::default()
    }

    /// Counts rows inside of events. Returns 0 if there are too many.
    pub(crate) fn take_rows(&mut self, rows: u64) -> usize {
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        self.list_rows = self.list_rows.saturating_add(rows);
        if self.list_rows > self.bounds.list_rows {
            return self.stop(Unreadable::ListsTooLarge);
        }
        rows
    }

    /// Counts the memory of a list. Returns whether it may be allocated.
    pub(crate) fn take_list(&mut self, bytes: usize) -> bool {
        self.list_bytes = self.list_bytes.saturating_add(bytes);
        if self.list_bytes > self.bounds.list_bytes {
            return self.stop(Unreadable::ListsTooLarge);
        }
        true
    }

    /// Fails if the batch cannot be read.
    pub(crate) fn check(&mut self) -> Result<(), Unreadable> {
        if self.text_bytes > self.bounds.text_bytes {
            let limit = self.bounds.text_bytes;
            return Err(Unreadable::TextsTooLarge { limit });
        }
        self.stop.take().map_or(Ok(()), Err)
    }
}
