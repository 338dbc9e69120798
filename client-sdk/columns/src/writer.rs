//! Writes batches. Events are added one by one, so that nothing but their columns is kept.

use std::fmt;

use unjank_protocol::{Batch, Events, Timestamp, with_signals};

use crate::envelope::Envelope;
use crate::kinds::RowsColumn;
use crate::sections::{self, MAGIC, put_section};
use crate::signals;
use crate::state::Outgoing;
use crate::varint::{put, zigzag};

/// Collects the events of a batch as columns. Keeps its memory from one batch to the next. Finish a clone to get the batch so far.
///
/// ```
/// use unjank_columns::{Bounds, Writer, read};
/// use unjank_protocol::{Batch, Traffic, Day, Network};
///
/// let mut writer = Writer::default();
/// writer.add(&Traffic {
///     day: Day::from_days(20_000), source: "api".into(), network: Network::Wifi,
///     tx_bytes: 5, rx_bytes: 7, requests: 1, failed_requests: 0,
/// });
/// let mut head = Batch::default();
/// head.resource.app_id = "com.example.shop".into();
/// let body = writer.finish(&head);
///
/// let read = read(&body, &Bounds::default())?;
/// assert_eq!(read.batch.traffic[0].rx_bytes, 7);
/// # Ok::<(), unjank_columns::Unreadable>(())
/// ```
#[derive(Clone, Default)]
pub struct Writer {
    state: Outgoing,
    tables: Tables,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

/// An event of a signal.
pub trait Event {
    /// Adds the event to its table. [`Writer::add`] calls it.
    fn add_to(&self, writer: &mut Writer);
}

/// The table of a signal. Times are steps from the last one of the same signal.
#[derive(Clone)]
struct SignalTable<R: crate::rows::Rows> {
    rows: RowsColumn<R>,
    time: i64,
}

impl<R: crate::rows::Rows> Default for SignalTable<R> {
    fn default() -> Self {
        Self {
            rows: RowsColumn::default(),
            time: 0,
        }
    }
}

impl<R: crate::rows::Rows> SignalTable<R> {
    #[inline]
    fn push<'a>(&mut self, row: &R::Row<'a>, state: &mut Outgoing) {
        state.time = self.time;
        self.rows.push(row, state);
        self.time = state.time;
    }

    fn write(&mut self, section: u64, state: &mut Outgoing, out: &mut Vec<u8>) {
        if self.rows.rows() > 0 {
            let mut table = Vec::new();
            self.rows.write(state, &mut table);
            put_section(out, section, &table);
        }
        self.time = 0;
    }
}

macro_rules! tables {
    ({} $($variant:ident $name:literal $list:ident: $many:ident<$event:ident>, $doc:literal;)+) => {
        #[derive(Clone, Default)]
        struct Tables {
            $($list: SignalTable<signals::$variant>,)+
        }

        impl Tables {
            fn write(&mut self, state: &mut Outgoing, out: &mut Vec<u8>) {
                $(self.$list.write(sections::of(unjank_protocol::Signal::$variant), state, out);)+
            }
        }

        $(
            impl Event for unjank_protocol::$event<'_> {
                #[inline]
                fn add_to(&self, writer: &mut Writer) {
                    writer.tables.$list.push(self, &mut writer.state);
                }
            }

        )+
    };
}

with_signals!([tables] {});

impl Writer {
    /// Adds an event.
    #[inline]
    pub fn add(&mut self, event: &impl Event) {
        event.add_to(self);
    }

    /// Returns the batch of these events and of those in `head`, which come last. Without a `sent_at`, [`sent`] has to be appended to it.
    #[must_use]
    pub fn finish(&mut self, head: &Batch<'_>) -> Vec<u8> {
        unjank_protocol::for_each_signal!(&head, |_, events| {
            for event in Events::as_slice(events) {
                self.add(event);
            }
        });
        let mut envelope = RowsColumn::<signals::Head>::default();
        envelope.push(&Envelope::of(head), &mut self.state);
        let mut head_table = Vec::new();
        envelope.write(&mut self.state, &mut head_table);
        let mut texts = Vec::new();
        self.state.texts.write(&mut texts);
        self.state.texts.clear();

        let mut out = Vec::with_capacity(texts.len() * 2 + 1024);
        out.extend_from_slice(MAGIC);
        put_section(&mut out, sections::TEXTS, &texts);
        put_section(&mut out, sections::HEAD, &head_table);
        self.tables.write(&mut self.state, &mut out);
        if let Some(time) = head.sent_at {
            out.extend(sent(time));
        }
        out
    }
}

/// The end of a batch: the time of this attempt to send it. Appended to the batch, compressed on its own or together with it.
#[must_use]
pub fn sent(time: Timestamp) -> Vec<u8> {
    let (mut out, mut micros) = (Vec::new(), Vec::new());
    put(&mut micros, zigzag(time.as_micros()));
    put_section(&mut out, sections::SENT, &micros);
    out
}

/// Writes a whole batch.
#[must_use]
pub fn write(batch: &Batch<'_>) -> Vec<u8> {
    Writer::default().finish(batch)
}
