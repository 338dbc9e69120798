//! Spans of no thread: they end elsewhere than they began.

use std::borrow::Cow;
use std::fmt::Display;
use std::marker::PhantomData;

use unjank_protocol::SpanStatus;

use super::{Open, SpanContext, add_attribute, add_event, close, finish, push};
use crate::event::SpanRecord;

/// A span of no thread: for `async` code and for operations that end elsewhere than they began.
#[derive(Debug)]
#[must_use = "a span lasts as long as this value: bind it to a name, not to `_`"]
pub struct DetachedSpan {
    pub(super) open: Open,
    pub(super) record: Option<Box<SpanRecord>>,
}

impl DetachedSpan {
    /// Makes it the parent of what begins on this thread, as long as the answer lives.
    pub fn enter(&self) -> Entered {
        // One that began while nothing was collected stands for nothing.
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

    /// Adds an attribute; at most 64 are kept, 1 KiB each.
    pub fn attribute(&mut self, name: impl Into<Cow<'static, str>>, value: impl Display) {
        add_attribute(self.record.as_deref_mut(), name, &value);
    }

    /// Notes that something happened now; at most 64 are kept.
    pub fn event(&mut self, name: impl Into<Cow<'static, str>>) {
        add_event(self.record.as_deref_mut(), name);
    }

    /// Where children belong.
    #[must_use]
    pub fn context(&self) -> SpanContext {
        SpanContext(self.open)
    }

    /// Ends it as intended.
    pub fn end_ok(mut self) {
        if let Some(record) = &mut self.record {
            record.status = SpanStatus::Ok;
        }
    }

    /// Ends it with an error.
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

/// A [`DetachedSpan`] that is the parent of what begins on this thread.
#[derive(Debug)]
#[must_use = "it holds as long as this value: bind it to a name, not to `_`"]
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
