//! Short methods: drops the spans of methods that took too little time, unless a kept span needs them as its parent.

use unjank_protocol::{Signal, SpanKind, SpanStatus};

use super::stack::Frame;
use crate::deliver::losses::Reason;
use crate::measure::client::Shared;
use crate::measure::span_record::SpanRecord;

/// Returns whether short methods are dropped in this process.
#[inline]
fn drops(shared: &Shared) -> bool {
    !shared.config.hooks.shortest_method.is_zero()
}

/// Marks the innermost frame of the recorded span with this id as the parent of a span that is kept.
fn mark(stack: &mut [Frame], span_id: u64) {
    let mut frames = stack.iter_mut().rev();
    let parent = frames
        .find(|frame| (frame.recorded || frame.is_entered) && frame.record.span_id == span_id);
    if let Some(parent) = parent {
        parent.keeps_below = true;
    }
}

/// Decides about the innermost span of a thread, which has ended and is no longer on the stack. Returns whether it is kept.
#[inline]
pub(super) fn keeps(
    shared: &Shared,
    stack: &mut [Frame],
    keeps_below: bool,
    record: &SpanRecord,
) -> bool {
    if !drops(shared) {
        return true;
    }
    if !keeps_below && drops_method(shared, record) {
        return false;
    }
    mark(stack, record.parent_id);
    true
}

/// Decides about a method that has ended and has no kept descendant. Returns whether it is dropped.
pub(super) fn drops_method(shared: &Shared, record: &SpanRecord) -> bool {
    let is_short = record.end.since(record.start) < shared.config.hooks.shortest_method;
    let is_plain = record.site.kind == SpanKind::Method && record.status == SpanStatus::Unset;
    let is_dropped = is_short && is_plain;
    if is_dropped {
        shared.losses.add(Signal::Spans, Reason::TooShort, 1);
    }
    is_dropped
}

/// Keeps the parent of a span that is kept whatever its duration.
#[inline]
pub(super) fn keep_parent(shared: Option<&Shared>, stack: &mut [Frame], record: &SpanRecord) {
    if shared.is_some_and(drops) {
        mark(stack, record.parent_id);
    }
}

/// Keeps the recorded span with this id, because spans on any thread may become its children.
#[inline]
pub(super) fn keep_itself(shared: Option<&Shared>, stack: &mut [Frame], span_id: u64) {
    if shared.is_some_and(drops) {
        mark(stack, span_id);
    }
}
