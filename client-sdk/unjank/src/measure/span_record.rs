//! A recorded span on its way to the background thread, which converts it to its final form.

use std::borrow::Cow;

use compact_str::CompactString;
use smallvec::SmallVec;
use unjank_protocol::{
    Attributes, Network, Signal, Span, SpanEvent, SpanId, SpanStatus, Text, TraceId,
};

use super::site::Site;
use super::ticks::Tick;
use super::users::Turn;
use crate::clock::{Moment, WallClock, whole_millis};
use crate::event::Event;
use crate::names::NameId;
use crate::random::{draw, draw_for};

/// What waits in the queue that all threads share.
#[derive(Debug)]
pub(crate) enum Queued {
    Span(Box<SpanRecord>),
    Event(Box<Event>),
}

impl Queued {
    pub(crate) fn signal(&self) -> Signal {
        match self {
            Self::Span(_) => Signal::Spans,
            Self::Event(event) => event.signal(),
        }
    }
}

/// What a span is sent with and its record does not have.
pub(crate) struct Meaning<'m> {
    pub(crate) wall: &'m WallClock,
    /// In nanoseconds, as [`Moment::nanos`].
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) thread: &'m str,
    pub(crate) page: &'m str,
}

/// What waits in memory. Spans are many, so they are made into their final form by the background thread.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// From the ring of a thread.
    Span(SpanRecord),
    /// From the queue.
    Queued(Queued),
}

impl Waiting {
    pub(crate) fn signal(&self) -> Signal {
        match self {
            Self::Span(_) => Signal::Spans,
            Self::Queued(queued) => queued.signal(),
        }
    }

    /// Returns the record of a span.
    pub(crate) fn span(&self) -> Option<&SpanRecord> {
        match self {
            Self::Span(record) => Some(record),
            Self::Queued(Queued::Span(record)) => Some(record),
            Self::Queued(Queued::Event(_)) => None,
        }
    }

    /// Draws a number from 0 to below 1: the same for the spans of a trace that are taken within a minute, so that most traces stay whole.
    /// An app that has one trace all day is sampled as well.
    pub(crate) fn draw(&self, now: Moment) -> f64 {
        let Some(record) = self.span() else {
            return draw();
        };
        let (high, low) = uuid::Uuid::from_u128(record.trace_id).as_u64_pair();
        draw_for(high ^ low ^ (now.millis() / 60_000))
    }

    /// Returns the tags of a span.
    pub(crate) fn tags(&self) -> &'static [&'static str] {
        self.span().map_or(&[], |record| record.site.tags)
    }
}

/// The name and the value of an attribute.
pub(crate) type Attribute = (Cow<'static, str>, CompactString);

/// What few spans have.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    /// The name of the span, if it was built at run time.
    pub(crate) name: Option<String>,
    pub(crate) attributes: SmallVec<[Attribute; 4]>,
    pub(crate) events: Vec<(Moment, Cow<'static, str>)>,
}

impl Extras {
    pub(crate) fn named(name: String) -> Box<Self> {
        Box::new(Self {
            name: Some(name),
            ..Self::default()
        })
    }

    /// Returns whether there are only a few attributes, which fit into slots of a ring.
    pub(crate) fn fits_into_slots(&self) -> bool {
        self.name.is_none() && self.events.is_empty() && !self.attributes.spilled()
    }
}

/// A span that is recorded. It goes from one core to another, so it fits into two cache lines.
#[derive(Debug)]
pub(crate) struct SpanRecord {
    pub(crate) trace_id: u128,
    pub(crate) span_id: u64,
    /// 0: none.
    pub(crate) parent_id: u64,
    pub(crate) start: Tick,
    pub(crate) end: Tick,
    pub(crate) site: &'static Site,
    pub(crate) extras: Option<Box<Extras>>,
    pub(crate) sample_rate: f64,
    /// The client that recorded the span. The ids of names belong to it.
    pub(crate) client: u32,
    /// The turn of the user that the span belongs to. Set when the span ends.
    pub(crate) turn: Turn,
    pub(crate) thread: NameId,
    pub(crate) page: NameId,
    pub(crate) network: Network,
    pub(crate) on_main_thread: bool,
    /// The span began while its thread was unwinding from a panic, so the panic is not its own.
    pub(crate) in_panic: bool,
    pub(crate) status: SpanStatus,
}

impl SpanRecord {
    /// Creates a record to be filled in.
    pub(crate) fn blank() -> Self {
        let now = Tick::now();
        Self {
            trace_id: 0,
            span_id: 0,
            parent_id: 0,
            start: now,
            end: now,
            site: &Site::UNKNOWN,
            extras: None,
            sample_rate: 1.0,
            client: 0,
            turn: Turn::default(),
            thread: NameId::default(),
            page: NameId::default(),
            network: Network::Unknown,
            on_main_thread: false,
            in_panic: false,
            status: SpanStatus::Unset,
        }
    }

    /// Takes the record. What is left is to be filled in again.
    #[inline]
    pub(crate) fn take(&mut self) -> Self {
        Self {
            extras: self.extras.take(),
            ..*self
        }
    }

    pub(crate) fn name(&self) -> &str {
        let own = self
            .extras
            .as_ref()
            .and_then(|extras| extras.name.as_deref());
        own.unwrap_or(self.site.name)
    }

    /// Returns the span as it is sent. `text` borrows or copies what is not a constant.
    pub(crate) fn to_span<'s, 't>(
        &'s self,
        meaning: &Meaning<'s>,
        text: impl Fn(&'s str) -> Text<'t>,
    ) -> Span<'t> {
        let Meaning {
            wall, start, end, ..
        } = *meaning;
        let extras = self.extras.as_deref();
        let own_name = extras.and_then(|extras| extras.name.as_deref());
        let attributes = extras.into_iter().flat_map(|extras| &extras.attributes);
        let events = extras.into_iter().flat_map(|extras| &extras.events);
        Span {
            trace_id: TraceId(self.trace_id),
            span_id: SpanId(self.span_id),
            parent_span_id: (self.parent_id != 0).then_some(SpanId(self.parent_id)),
            name: own_name.map_or_else(|| self.site.name.into(), &text),
            kind: self.site.kind,
            start: wall.at_nanos(start),
            duration_us: end.saturating_sub(start).max(0) / 1_000,
            thread: text(meaning.thread),
            on_main_thread: self.on_main_thread,
            status: self.status,
            page: text(meaning.page),
            network: self.network,
            uptime_ms: whole_millis(start),
            code: self.site.place.code(),
            attributes: Attributes(
                attributes
                    .map(|(key, value)| (text(key), text(value)))
                    .collect(),
            ),
            events: events
                .map(|(time, name)| SpanEvent {
                    // They are timed by another clock, which may differ by microseconds.
                    time: wall.at_nanos(time.nanos().clamp(start, end.max(start))),
                    name: text(name),
                })
                .collect(),
            sample_rate: self.sample_rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_fits_into_two_cache_lines() {
        assert!(size_of::<SpanRecord>() <= 128);
    }

    #[test]
    fn a_span_is_the_same_with_texts_of_its_own() {
        let now = Moment::now();
        let mut record = SpanRecord::blank();
        (record.trace_id, record.span_id, record.parent_id) = (1, 2, 3);
        record.extras = Some(Box::new(Extras {
            attributes: [("items".into(), "3".into())].into_iter().collect(),
            events: vec![(now, "cart read".into())],
            ..*Extras::named("checkout".to_owned())
        }));
        let wall = WallClock::new();
        let meaning = Meaning {
            wall: &wall,
            start: now.nanos(),
            end: now.nanos() + 2_999,
            thread: "main",
            page: "Cart",
        };
        let borrowed = record.to_span(&meaning, Text::from);
        let owned = record.to_span(&meaning, |text| text.to_owned().into());
        assert_eq!(borrowed, owned);
        assert_eq!((&*owned.name, &*owned.thread), ("checkout", "main"));
        assert_eq!((&*owned.page, owned.duration_us), ("Cart", 2));
        assert_eq!((owned.attributes.0.len(), owned.events.len()), (1, 1));
    }
}
