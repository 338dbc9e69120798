//! Spans that are not bound to a thread.

use std::borrow::Cow;
use std::fmt::Display;
use std::marker::PhantomData;

use unjank_protocol::SpanStatus;

use super::local;
use super::{Open, SpanContext, extras};
use crate::bounded_text::{bounded_text, cut};
use crate::clock::Moment;
use crate::measure::span_record::SpanRecord;

/// A span that is not bound to a thread, for `async` code and for operations that end elsewhere than they began. It ends when it
/// is dropped.
///
/// ```
/// let mut download = unjank::span("download").detach();
/// download.attribute("path", "/menu");
/// let context = download.context(); // for `unjank::span_in`
/// {
///     let _entered = download.enter();
///     unjank::span("connect").end(); // its child
/// }
/// download.event("connected");
/// let answered = true; // … in a callback, on any thread …
/// if answered { download.end_ok() } else { download.end_error() }
/// # drop(context);
/// ```
#[derive(Debug)]
#[must_use = "a span lasts as long as this value: bind it to a name, not to `_`"]
pub struct DetachedSpan {
    pub(super) open: Open,
    pub(super) record: Option<Box<SpanRecord>>,
    pub(super) status: SpanStatus,
    /// Whether a descendant is kept, or may still be kept. This span is then kept as its ancestor.
    keeps_below: bool,
}

impl DetachedSpan {
    /// Makes a span of an entry that was taken off the stack of its thread.
    pub(super) fn new(taken: Option<(Open, Option<SpanRecord>)>) -> Self {
        let (open, record) = taken.unwrap_or_default();
        Self {
            open,
            record: record.map(Box::new),
            status: SpanStatus::Unset,
            keeps_below: true,
        }
    }

    /// Returns whether the span is recorded. If not, the values of its attributes need not be computed.
    ///
    /// ```
    /// let download = unjank::span("download").detach();
    /// assert!(!download.is_recorded()); // nothing is collected here
    /// ```
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.record.is_some()
    }

    /// Makes this span the parent of spans that begin on this thread, until the returned value is dropped. A future has to enter
    /// on every poll: an [`Entered`] must not be held across an `.await`, and cannot be sent to another thread.
    pub fn enter(&self) -> Entered {
        // A span that began while nothing was collected has no entry.
        let key = match self.open.key {
            0 => None,
            _ => local::enter(self.open, self.is_recorded()),
        };
        Entered {
            key,
            not_send: PhantomData,
        }
    }

    /// Adds an attribute. A span keeps at most 64; names and values are cut at 1 KiB each. If the value fails to format, the
    /// attribute has what it wrote until then.
    pub fn attribute(&mut self, name: impl Into<Cow<'static, str>>, value: impl Display) {
        if let Some(record) = &mut self.record {
            extras(record).attribute(cut(name.into()), bounded_text(&value));
        }
    }

    /// Adds an event with the current time. A span keeps at most 64; each is cut at 1 KiB.
    pub fn event(&mut self, name: impl Into<Cow<'static, str>>) {
        if let Some(record) = &mut self.record {
            extras(record).event(Moment::now(), cut(name.into()));
        }
    }

    /// Returns the place of the span in its trace, to begin children.
    #[must_use]
    pub fn context(&self) -> SpanContext {
        SpanContext(self.open)
    }

    /// Ends the span of a method, below which nothing is kept.
    pub(crate) fn end_alone(mut self) {
        self.keeps_below = false;
    }

    /// Ends the span with the status `ok`. A span that is dropped has the status `unset`, or `error` if a panic unwinds it.
    pub fn end_ok(mut self) {
        self.status = SpanStatus::Ok;
    }

    /// Ends the span with the status `error`.
    pub fn end_error(mut self) {
        self.status = SpanStatus::Error;
    }

    /// Ends the span with the status `cancelled`: the operation was given up.
    ///
    /// ```
    /// unjank::span("download").detach().end_cancelled(); // the user went back
    /// ```
    pub fn end_cancelled(mut self) {
        self.status = SpanStatus::Cancelled;
    }
}

impl Drop for DetachedSpan {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            local::end_detached(record, self.status, self.keeps_below);
        }
    }
}

/// Keeps a [`DetachedSpan`] the parent of spans that begin on this thread, until it is dropped.
///
/// ```
/// let download = unjank::span("download").detach();
/// let entered = download.enter();
/// unjank::span("parse").end(); // a child of `download`
/// drop(entered);
/// ```
#[derive(Debug)]
#[must_use = "the span is left when this is dropped: bind it to a name, not to `_`"]
pub struct Entered {
    key: Option<u64>,
    not_send: PhantomData<*const ()>,
}

impl Entered {
    /// Leaves the span. Returns whether a span below is kept, or may be.
    pub(crate) fn leave(mut self) -> bool {
        self.key.take().is_none_or(local::leave)
    }
}

impl SpanContext {
    /// Makes the span the parent of spans that begin on this thread, until the returned value is dropped.
    pub(super) fn enter(&self) -> Entered {
        Entered {
            key: local::enter(self.0, false),
            not_send: PhantomData,
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            drop(local::take(key));
        }
    }
}
