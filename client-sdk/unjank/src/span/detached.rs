//! Spans that are not bound to a thread.

use std::borrow::Cow;
use std::fmt::Display;
use std::marker::PhantomData;

use unjank_protocol::SpanStatus;

use super::{Open, SpanContext, add_attribute, add_event, close, finish, push};
use crate::span_record::SpanRecord;

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
}

impl DetachedSpan {
    /// Makes this span the parent of spans that begin on this thread, until the returned value is dropped. A future has to enter
    /// on every poll: an [`Entered`] must not be held across an `.await`, and cannot be sent to another thread.
    pub fn enter(&self) -> Entered {
        // A span that began while nothing was collected has no entry.
        if self.open.key == 0 {
            return Entered {
                open: None,
                not_send: PhantomData,
            };
        }
        Entered {
            open: push(self.open),
            not_send: PhantomData,
        }
    }

    /// Adds an attribute. A span keeps at most 64; names and values are cut at 1 KiB each.
    pub fn attribute(&mut self, name: impl Into<Cow<'static, str>>, value: impl Display) {
        add_attribute(self.record.as_deref_mut(), name, &value);
    }

    /// Adds an event with the current time. A span keeps at most 64; each is cut at 1 KiB.
    pub fn event(&mut self, name: impl Into<Cow<'static, str>>) {
        add_event(self.record.as_deref_mut(), name);
    }

    /// Returns the place of the span in its trace, to begin children.
    #[must_use]
    pub fn context(&self) -> SpanContext {
        SpanContext(self.open)
    }

    /// Ends the span with the status `ok`. A span that is dropped has the status `unset`.
    pub fn end_ok(mut self) {
        if let Some(record) = &mut self.record {
            record.status = SpanStatus::Ok;
        }
    }

    /// Ends the span with the status `error`.
    pub fn end_error(mut self) {
        if let Some(record) = &mut self.record {
            record.status = SpanStatus::Error;
        }
    }
}

impl Drop for DetachedSpan {
    fn drop(&mut self) {
        finish(self.record.take());
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
    open: Option<Open>,
    not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            close(open.key);
        }
    }
}
