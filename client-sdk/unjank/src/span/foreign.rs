//! Gives spans that another library begins, enters and ends access to the stack of open spans.

use std::borrow::Cow;

use tracing_core::Metadata;
use unjank_protocol::{SpanKind, SpanStatus};

use super::{DEEPEST, DetachedSpan, LOCAL, MOST, Open, SpanContext, begin, close};
use crate::span_record::SourceLocation;

impl SpanContext {
    /// Returns the context above a root whose draw is known.
    pub(crate) fn root(draw: f64) -> Self {
        Self(Open {
            draw,
            ..Open::default()
        })
    }

    /// Returns the context of the span that is open on this thread.
    pub(crate) fn innermost() -> Option<Self> {
        LOCAL
            .try_with(|local| local.try_borrow().ok()?.stack.last().copied())
            .ok()
            .flatten()
            .map(Self)
    }

    /// Returns whether both contexts give the same trace, parent and draw to spans below them.
    pub(crate) fn says_the_same_as(&self, other: &Self) -> bool {
        let identity = |open: &Open| (open.trace_id, open.span_id, open.draw.to_bits());
        identity(&self.0) == identity(&other.0)
    }

    /// Makes this context the parent of spans that begin on this thread, until [`leave`] is called with the key. The key has to
    /// be even, because the keys of our own spans are odd.
    pub(crate) fn enter_as(&self, key: u64) {
        let entered = LOCAL.try_with(|local| {
            if let Ok(mut local) = local.try_borrow_mut()
                && local.stack.len() < DEEPEST
            {
                local.stack.push(Open { key, ..self.0 });
            }
        });
        // A thread that is ending begins nothing.
        entered.unwrap_or_default();
    }
}

/// Ends [`SpanContext::enter_as`].
pub(crate) fn leave(key: u64) {
    close(key);
}

/// Begins a span. Returns `None` if nothing is collected or too many spans are open.
pub(crate) fn begin_under(
    metadata: &'static Metadata<'static>,
    above: &SpanContext,
) -> Option<DetachedSpan> {
    let (name, place) = (
        Cow::Borrowed(metadata.name()),
        SourceLocation::Tracing(metadata),
    );
    let span = begin(name, SpanKind::Manual, place, &[], Some(above.0)).detach();
    (span.open.key != 0).then_some(span)
}

impl DetachedSpan {
    pub(crate) fn is_recorded(&self) -> bool {
        self.record.is_some()
    }

    /// Returns whether the span would keep another event.
    pub(crate) fn takes_events(&self) -> bool {
        let record = self.record.as_deref();
        record.is_some_and(|record| {
            let extras = record.extras.as_deref();
            extras.is_none_or(|extras| extras.events.len() < MOST)
        })
    }

    /// Adds an attribute, or replaces one of the same name.
    pub(crate) fn set_attribute(&mut self, name: &'static str, value: String) {
        let Some(record) = self.record.as_deref_mut() else {
            return;
        };
        let attributes = &mut record.extras.get_or_insert_default().attributes;
        let mut known = attributes.iter_mut();
        if let Some((_, before)) = known.find(|(known, _)| known == name) {
            *before = value;
        } else if attributes.len() < MOST {
            attributes.push((Cow::Borrowed(name), value));
        }
    }

    pub(crate) fn set_error(&mut self) {
        if let Some(record) = self.record.as_deref_mut() {
            record.status = SpanStatus::Error;
        }
    }
}
