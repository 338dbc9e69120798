//! Spans of requests that an HTTP layer measures.

use unjank_protocol::SpanKind;

use super::new_span::New;
use super::{DetachedSpan, begin};
use crate::bounded_text::cut;
use crate::measure::site::Site;

/// A request is made deep inside a client, so its span names no place in the source.
const REQUEST: Site = Site {
    kind: SpanKind::Network,
    ..Site::UNKNOWN
};

/// Begins the span of a request, as a child of the span that is open on this thread.
pub(crate) fn network_span(name: String) -> DetachedSpan {
    begin(New {
        own_name: Some(cut(name.into()).into_owned()),
        is_detached: true,
        ..New::at(REQUEST)
    })
    .detach()
}
