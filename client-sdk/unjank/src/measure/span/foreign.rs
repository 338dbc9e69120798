//! Gives spans that another library begins, enters and ends access to the stack of open spans.

use std::borrow::Cow;

use compact_str::CompactString;
use tracing_core::Metadata;
use unjank_protocol::SpanStatus;

use super::local;
use super::new_span::New;
use super::{DetachedSpan, MOST, Open, SpanContext, begin, extras};
use crate::measure::site::{Site, SourceLocation};

impl SpanContext {
    /// Returns the context in which a root span begins whose draw is given.
    pub(crate) fn root(draw: f64) -> Self {
        Self(Open {
            draw,
            ..Open::default()
        })
    }

    /// Returns the context of the span that is open on this thread.
    pub(crate) fn innermost() -> Option<Self> {
        local::innermost().map(Self)
    }

    /// Returns whether both contexts give the same trace, parent and draw to spans below them.
    pub(crate) fn says_the_same_as(&self, other: &Self) -> bool {
        let identity = |open: &Open| (open.trace_id, open.span_id, open.draw.to_bits());
        identity(&self.0) == identity(&other.0)
    }

    /// Makes this context the parent of spans that begin on this thread, until [`leave`] is called with the key. The key has to
    /// be even, because the keys of our own spans are odd.
    pub(crate) fn enter_as(&self, key: u64) {
        local::enter_as(Open { key, ..self.0 });
    }
}

/// Ends [`SpanContext::enter_as`].
pub(crate) fn leave(key: u64) {
    drop(local::take(key));
}

/// Begins a span. Returns `None` if nothing is collected or too many spans are open.
pub(crate) fn begin_under(
    metadata: &'static Metadata<'static>,
    above: &SpanContext,
) -> Option<DetachedSpan> {
    let span = begin(New {
        parent: Some(&above.0),
        is_detached: true,
        ..New::at(Site {
            name: metadata.name(),
            place: SourceLocation::Tracing(metadata),
            ..Site::UNKNOWN
        })
    })
    .detach();
    (span.open.key != 0).then_some(span)
}

impl DetachedSpan {
    /// Returns whether the span would keep another event.
    pub(crate) fn takes_events(&self) -> bool {
        let record = self.record.as_deref();
        record.is_some_and(|record| {
            let extras = record.extras.as_deref();
            extras.is_none_or(|extras| extras.events.len() < MOST)
        })
    }

    /// Adds an attribute, or replaces one of the same name.
    pub(crate) fn set_attribute(&mut self, name: &'static str, value: CompactString) {
        let Some(record) = self.record.as_deref_mut() else {
            return;
        };
        let attributes = &mut extras(record).attributes;
        let mut known = attributes.iter_mut();
        if let Some((_, before)) = known.find(|(known, _)| known == name) {
            *before = value;
        } else if attributes.len() < MOST {
            attributes.push((Cow::Borrowed(name), value));
        }
    }

    pub(crate) fn set_error(&mut self) {
        self.status = SpanStatus::Error;
    }
}
