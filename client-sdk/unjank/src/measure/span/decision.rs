//! Asks the app whether to record a span.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::new_span::New;
use crate::measure::client::Shared;
use crate::measure::should_trace::SpanStart;

/// Returns whether the app wants the span. Called only if the app has a function that decides.
#[cold]
pub(super) fn is_wanted(shared: &Shared, new: &New<'_>) -> bool {
    let hooks = &shared.config.hooks;
    let Some(decide) = &hooks.should_trace else {
        return true;
    };
    let (file, line) = new.site.place.file_and_line();
    let start = SpanStart {
        name: new.name(),
        kind: new.site.kind,
        tags: new.site.tags,
        module: new.site.place.module(),
        file,
        line,
        patterns: hooks.span_tags.as_deref(),
    };
    // If the function panics, the span may be one that the app does not want.
    catch_unwind(AssertUnwindSafe(|| decide(&start))).unwrap_or(false)
}
