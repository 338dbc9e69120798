//! Errors that the app handles, as spans of no duration with the status `error`.
//!
//! A span fits best: it has a place in the trace, a page, attributes and log lines, and the server already counts, filters and
//! compares spans by status. An error is not sampled as spans are, because it is rare and the app asks for each one.

use std::borrow::Cow;
use std::fmt::Display;
use std::panic::Location;

use unjank_protocol::{Attributes, Code, Span, SpanEvent, SpanId, SpanKind, SpanStatus, TraceId};

use super::client::{self, Shared};
use super::sampling::Share;
use super::span_record::Queued;
use crate::bounded_text::{bounded_text, cut};
use crate::clock::Moment;
use crate::event::{Event, text};
use crate::random::random;

/// Reports an error that the app handled: a span of no duration with the status `error`, the name, and the attribute `error` with the
/// text, which is formatted with `{:#}` and cut at 1 KiB. It is a child of the span that is open on this thread, and has the place of the
/// call. The name is constant, without ids, and cut at 1 KiB. The text must not contain personal data.
///
/// Sampling rates of spans do not apply, but that of sessions and `budget.spans` do. Does nothing while nothing is collected.
///
/// ```
/// if let Err(error) = "12a".parse::<u32>() {
///     unjank::error("cart.count", &error); // … and goes on with a default
/// }
/// ```
#[track_caller]
pub fn error(name: impl Into<Cow<'static, str>>, error: impl Display) {
    if !client::is_on() {
        return;
    }
    let place = Location::caller();
    // Formatting may call the app, which may call the SDK.
    let message = bounded_text(&format_args!("{error:#}"));
    let name = cut(name.into());
    client::with(|shared| {
        let failure = Failure {
            name,
            message: message.into_string(),
            place: Some((place.file().to_owned(), place.line())),
            lines: Vec::new(),
        };
        shared.report_failure(failure);
    });
}

/// A reported error.
pub(crate) struct Failure {
    pub(crate) name: Cow<'static, str>,
    /// At most 1 KiB.
    pub(crate) message: String,
    /// The file and the line.
    pub(crate) place: Option<(String, u32)>,
    /// The stack, innermost first: at most 64 lines.
    pub(crate) lines: Vec<String>,
}

impl Shared {
    /// Records an error of this thread, if this session is collected.
    pub(crate) fn report_failure(&self, failure: Failure) {
        let settings = self.settings.load();
        if !settings.collects_errors() {
            return;
        }
        let sample_rate = settings.sample_rate(Share::ALL);
        let now = Moment::now();
        let time = self.wall.at(now);
        let (trace_id, parent_id) = crate::measure::span::innermost_ids().unwrap_or_default();
        let trace_id = match trace_id {
            0 => (u128::from(random()) << 64) | u128::from(random()),
            known => known,
        };
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or_default();
        let (file, line) = failure.place.unwrap_or_default();
        let lines = failure.lines.into_iter();
        let span = Span {
            trace_id: TraceId(trace_id),
            span_id: SpanId(random() | 1),
            parent_span_id: (parent_id != 0).then_some(SpanId(parent_id)),
            name: text(failure.name),
            kind: SpanKind::Manual,
            start: time,
            duration_us: 0,
            on_main_thread: thread == "main",
            thread: unjank_monitors::bounded(thread).to_owned().into(),
            status: SpanStatus::Error,
            page: self.page_name(),
            network: self.network(),
            uptime_ms: now.millis(),
            code: Code {
                file: file.into(),
                line,
                ..Code::default()
            },
            attributes: Attributes(vec![("error".into(), failure.message.into())]),
            events: lines
                .map(|line| SpanEvent {
                    time,
                    name: line.into(),
                })
                .collect(),
            sample_rate,
        };
        self.push(Queued::Event(Box::new(Event::Span(span))));
    }
}
