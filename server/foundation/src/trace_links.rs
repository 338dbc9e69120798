//! Links from traces to another system that stores spans, such as Jaeger or Tempo. Pure. The control database stores the document.

use std::fmt::Write as _;

use percent_encoding::utf8_percent_encode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::link_template::{self, Part, TemplateError, VALUE};

const MAX_NAME_CHARS: usize = 40;

/// How traces link to another system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = TraceLinks)]
pub struct TraceLinksDocument {
    /// The name of the other system. Empty: the host of the template.
    #[schema(max_length = 40, example = "Jaeger")]
    pub name: String,
    /// An address with `http` or `https` in which the server replaces `{trace_id}` (32 hex digits), `{span_id}` (16 hex digits), and
    /// `{start_ms}` and `{end_ms}` (the span's beginning and end in milliseconds since 1970). `{trace_id}` is required. Empty: no links.
    #[schema(
        max_length = 500,
        example = "https://jaeger.example.com/trace/{trace_id}?uiFind={span_id}"
    )]
    pub template: String,
}

/// What is wrong with a document.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceLinksError {
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("the name must have at most {MAX_NAME_CHARS} characters, without control characters")]
    Name,
}

/// What the server puts into an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Trace,
    Span,
    Start,
    End,
}

impl link_template::Placeholder for Slot {
    const ALL: &'static [(&'static str, Self)] = &[
        ("{trace_id}", Self::Trace),
        ("{span_id}", Self::Span),
        ("{start_ms}", Self::Start),
        ("{end_ms}", Self::End),
    ];
    const EXAMPLE: &'static str = "https://jaeger.example.com/";
}

/// The span that a link leads to.
#[derive(Clone, Copy, Debug)]
pub struct LinkedSpan<'a> {
    /// 32 hex digits.
    pub trace_id: &'a str,
    /// 16 hex digits.
    pub span_id: &'a str,
    /// Microseconds since 1970.
    pub start_us: i64,
    pub end_us: i64,
}

/// A document, ready to be used.
#[derive(Clone, Debug, Default)]
pub struct TraceLinks {
    document: TraceLinksDocument,
    parts: Vec<Part<Slot>>,
}

impl TraceLinks {
    pub fn new(mut document: TraceLinksDocument) -> Result<Self, TraceLinksError> {
        document.template = document.template.trim().to_owned();
        document.name = document.name.trim().to_owned();
        let name = &document.name;
        if name.chars().count() > MAX_NAME_CHARS || name.contains(char::is_control) {
            return Err(TraceLinksError::Name);
        }
        let parts = link_template::parse(&document.template)?;
        Ok(Self { document, parts })
    }

    #[must_use]
    pub fn document(&self) -> &TraceLinksDocument {
        &self.document
    }

    /// Returns the name of the other system, or `None` if the project has no template.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let host = link_template::host(&self.document.template)?;
        let name = self.document.name.as_str();
        Some(if name.is_empty() { host } else { name })
    }

    /// Returns the address of a span, or `None` if the project has no template.
    #[must_use]
    pub fn url(&self, span: LinkedSpan<'_>) -> Option<String> {
        let mut url = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => url.push_str(text),
                Part::Value(Slot::Trace) => url.extend(utf8_percent_encode(span.trace_id, VALUE)),
                Part::Value(Slot::Span) => url.extend(utf8_percent_encode(span.span_id, VALUE)),
                Part::Value(Slot::Start) => drop(write!(url, "{}", span.start_us / 1000)),
                // Rounded up, so that the period contains the span.
                Part::Value(Slot::End) => drop(write!(url, "{}", span.end_us / 1000 + 1)),
            }
        }
        (!self.parts.is_empty()).then_some(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(name: &str, template: &str) -> Result<TraceLinks, TraceLinksError> {
        let (name, template) = (name.to_owned(), template.to_owned());
        TraceLinks::new(TraceLinksDocument { name, template })
    }

    const SPAN: LinkedSpan<'_> = LinkedSpan {
        trace_id: "0af7651916cd43dd8448eb211c80319c",
        span_id: "00f067aa0ba902b7",
        start_us: 1_763_640_000_123_456,
        end_us: 1_763_640_000_223_999,
    };

    #[test]
    fn a_link_has_the_ids_and_the_period_of_a_span() {
        let template = "https://grafana.example.com/explore?trace={trace_id}&span={span_id}&from={start_ms}&to={end_ms}";
        let links = links("", template).unwrap();
        assert_eq!(links.name(), Some("grafana.example.com"));
        let expected = "https://grafana.example.com/explore?trace=0af7651916cd43dd8448eb211c80319c\
            &span=00f067aa0ba902b7&from=1763640000123&to=1763640000224";
        assert_eq!(links.url(SPAN).as_deref(), Some(expected));
    }

    #[test]
    fn without_a_template_there_is_no_link() {
        let links = links("Jaeger", " ").unwrap();
        assert_eq!((links.name(), links.url(SPAN)), (None, None));
    }

    #[test]
    fn names_are_bounded() {
        assert_eq!(
            links(&"x".repeat(41), "").unwrap_err(),
            TraceLinksError::Name
        );
        assert_eq!(links("a\nb", "").unwrap_err(), TraceLinksError::Name);
    }
}
