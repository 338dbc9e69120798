//! What the app told us, on its way to a batch.

use std::borrow::Cow;
use std::panic::Location;

use serde::Serialize;
use unjank_protocol::{
    AppStart, Attributes, Code, FrameWindow, Jank, Metric, PageLoad, Recomposition, Signal, Span,
    SpanEvent, SpanId, SpanKind, SpanStatus, TraceId, Traffic,
};

use crate::client::Shared;
use crate::clock::Moment;
use crate::names::NameId;
use crate::span::Callsite;

/// An event as it will be sent: what [`crate::Config::before_send`] may change and reporters see. The fields are those of the wire,
/// [`crate::protocol`]; durations are in microseconds (`_us`) or milliseconds (`_ms`).
///
/// ```
/// use unjank::Event;
///
/// fn slow(event: &Event) -> bool {
///     match event {
///         Event::Span(span) => span.duration_us > 1_000_000,
///         Event::PageLoad(load) => load.total_ms > 1_000,
///         _ => false,
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "signal", content = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The time between two marks in the code.
    Span(Span<'static>),
    /// Frames over a short period on one page.
    FrameWindow(FrameWindow<'static>),
    /// The main loop was blocked.
    Jank(Jank<'static>),
    /// Bytes of a day.
    Traffic(Traffic<'static>),
    /// A page was loaded.
    PageLoad(PageLoad<'static>),
    /// A value of a monitor.
    Metric(Metric<'static>),
    /// The app was started.
    AppStart(AppStart<'static>),
    /// A function of the UI was redrawn.
    Recomposition(Recomposition<'static>),
}

impl Event {
    /// The list of a batch it belongs to.
    ///
    /// ```
    /// let is_traffic = |event: &unjank::Event| event.signal() == unjank::Signal::Traffic;
    /// ```
    #[must_use]
    pub fn signal(&self) -> Signal {
        match self {
            Self::Span(_) => Signal::Spans,
            Self::FrameWindow(_) => Signal::FrameWindows,
            Self::Jank(_) => Signal::Janks,
            Self::Traffic(_) => Signal::Traffic,
            Self::PageLoad(_) => Signal::PageLoads,
            Self::Metric(_) => Signal::Metrics,
            Self::AppStart(_) => Signal::AppStarts,
            Self::Recomposition(_) => Signal::Recompositions,
        }
    }
}

/// What waits in memory. Spans are many, so they are made into their final form by the background thread.
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

    pub(crate) fn into_event(self, shared: &Shared) -> Event {
        match self {
            Self::Span(record) => Event::Span(record.into_span(shared)),
            Self::Event(event) => *event,
        }
    }
}

/// Where in the source a span was made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// The caller of a function of ours.
    Caller(&'static Location<'static>),
    /// A function that `#[traced]` stands on.
    Function(&'static Callsite),
    /// A span of `tracing`.
    #[cfg(feature = "tracing")]
    Tracing(&'static tracing_core::Metadata<'static>),
}

impl Place {
    fn code(self) -> Code<'static> {
        match self {
            Self::Caller(caller) => Code {
                file: caller.file().into(),
                line: caller.line(),
                ..Code::default()
            },
            Self::Function(callsite) => Code {
                class: callsite.class.into(),
                function: callsite.function.into(),
                file: callsite.file.into(),
                line: callsite.line,
            },
            #[cfg(feature = "tracing")]
            Self::Tracing(metadata) => Code {
                class: metadata.module_path().unwrap_or(metadata.target()).into(),
                function: metadata.name().into(),
                file: metadata.file().unwrap_or_default().into(),
                line: metadata.line().unwrap_or_default(),
            },
        }
    }
}

/// What few spans have.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    pub(crate) attributes: Vec<(Cow<'static, str>, String)>,
    pub(crate) events: Vec<(Moment, Cow<'static, str>)>,
}

/// A span that is recorded. Small: it goes from one core to another.
#[derive(Debug)]
pub(crate) struct SpanRecord {
    pub(crate) trace_id: u128,
    pub(crate) span_id: u64,
    /// 0: none.
    pub(crate) parent_id: u64,
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: SpanKind,
    pub(crate) start: Moment,
    pub(crate) duration_us: i64,
    pub(crate) thread: NameId,
    pub(crate) on_main_thread: bool,
    pub(crate) status: SpanStatus,
    pub(crate) page: NameId,
    pub(crate) network: unjank_protocol::Network,
    pub(crate) place: Place,
    pub(crate) extras: Option<Box<Extras>>,
    pub(crate) sample_rate: f64,
}

impl SpanRecord {
    fn into_span(self, shared: &Shared) -> Span<'static> {
        let extras = self.extras.map(|extras| *extras).unwrap_or_default();
        let attributes = extras.attributes.into_iter();
        let events = extras.events.into_iter();
        Span {
            trace_id: TraceId(self.trace_id),
            span_id: SpanId(self.span_id),
            parent_span_id: (self.parent_id != 0).then_some(SpanId(self.parent_id)),
            name: text(self.name),
            kind: self.kind,
            start: shared.wall.at(self.start),
            duration_us: self.duration_us,
            thread: shared.names.name(self.thread).to_string().into(),
            on_main_thread: self.on_main_thread,
            status: self.status,
            page: shared.names.name(self.page).to_string().into(),
            network: self.network,
            uptime_ms: shared.uptime_ms(self.start),
            code: self.place.code(),
            attributes: Attributes(
                attributes
                    .map(|(key, value)| (text(key), value.into()))
                    .collect(),
            ),
            events: events
                .map(|(time, name)| SpanEvent {
                    time: shared.wall.at(time),
                    name: text(name),
                })
                .collect(),
            sample_rate: self.sample_rate,
        }
    }
}

pub(crate) fn text(text: Cow<'static, str>) -> unjank_protocol::Text<'static> {
    match text {
        Cow::Borrowed(text) => text.into(),
        Cow::Owned(text) => text.into(),
    }
}
