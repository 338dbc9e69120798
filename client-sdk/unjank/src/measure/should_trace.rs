//! The app's own decision about each span.

use unjank_protocol::SpanKind;

use super::span_tags::SpanTags;

/// A span that is about to begin, for [`crate::Config::should_trace`].
///
/// ```
/// use unjank::SpanStart;
/// use unjank::protocol::SpanKind;
///
/// fn decide(span: &SpanStart<'_>) -> bool {
///     span.kind != SpanKind::Method || span.module.starts_with("shop::") || span.has_tag("startup")
/// }
/// # drop(unjank::Config::new("http://127.0.0.1:1", "demo").should_trace(decide));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SpanStart<'s> {
    /// The name of the span.
    pub name: &'s str,
    /// What the span measures.
    pub kind: SpanKind,
    /// The tags in the code: `#[traced(tag = "…")]` and [`crate::span_tagged`].
    pub tags: &'s [&'s str],
    /// The module path, or the type of a method. Empty for spans that a call begins, such as [`crate::span()`].
    pub module: &'static str,
    /// The source file; empty if it is not known.
    pub file: &'static str,
    /// The line in the file, from 1; 0 if it is not known.
    pub line: u32,
    pub(crate) patterns: Option<&'s SpanTags>,
}

impl SpanStart<'_> {
    /// Returns whether the span has a tag, in the code or by [`crate::Config::span_tags`].
    #[must_use]
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.contains(&tag)
            || self.patterns.is_some_and(|patterns| {
                let mut tags = patterns.of([self.name, self.module, self.file]);
                tags.any(|one| one == tag)
            })
    }
}

/// Decides whether a span is recorded.
pub(crate) type ShouldTrace = dyn Fn(&SpanStart<'_>) -> bool + Send + Sync;
