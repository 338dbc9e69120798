//! The stack of spans that are open on a thread.

use super::Open;
use super::task::Task;
use crate::measure::span_record::SpanRecord;

/// Maximum number of open spans on one thread.
const DEEPEST: usize = 256;

/// An open span.
pub(super) struct Frame {
    key: u64,
    draw: f64,
    /// The task that began or entered the span.
    pub(super) task: Task,
    pub(super) recorded: bool,
    /// Whether the frame is a recorded detached span that was entered on this thread.
    pub(super) is_entered: bool,
    /// Whether a descendant is kept, or may still be kept. This span is then kept as its ancestor.
    pub(super) keeps_below: bool,
    /// Whether a section for this span is open in the system trace.
    pub(super) in_section: bool,
    /// The record. If the span is not recorded, only the ids that its children inherit are valid; the rest is left from an earlier span.
    pub(super) record: SpanRecord,
}

impl Frame {
    /// Fills in a span that is not recorded.
    #[inline]
    pub(super) fn fill(&mut self, open: Open, task: Task) {
        self.key = open.key;
        self.draw = open.draw;
        (self.record.trace_id, self.record.span_id) = (open.trace_id, open.span_id);
        self.task = task;
        self.recorded = false;
        self.is_entered = false;
        self.keeps_below = false;
        self.in_section = false;
    }

    /// Returns what the children of the span inherit.
    #[inline]
    pub(super) fn open(&self) -> Open {
        Open {
            key: self.key,
            trace_id: self.record.trace_id,
            span_id: self.record.span_id,
            draw: self.draw,
        }
    }
}

/// The open spans of a thread.
pub(super) struct Stack {
    /// The open spans, the innermost last. Behind them are frames of earlier spans for reuse: filling in a frame costs less than
    /// moving a new one.
    frames: Vec<Frame>,
    depth: usize,
}

impl Stack {
    pub(super) const EMPTY: Self = Self {
        frames: Vec::new(),
        depth: 0,
    };

    /// The open spans, the innermost last.
    #[inline]
    pub(super) fn open(&self) -> &[Frame] {
        self.frames.get(..self.depth).unwrap_or_default()
    }

    #[inline]
    pub(super) fn open_mut(&mut self) -> &mut [Frame] {
        self.frames.get_mut(..self.depth).unwrap_or_default()
    }

    /// Adds a frame, which may have the content of an earlier span. `None` if too many spans are open.
    #[inline]
    pub(super) fn push(&mut self) -> Option<&mut Frame> {
        if self.depth >= self.frames.len() {
            self.extend()?;
        }
        let frame = self.frames.get_mut(self.depth)?;
        self.depth = self.depth.wrapping_add(1);
        Some(frame)
    }

    #[cold]
    fn extend(&mut self) -> Option<()> {
        if self.frames.len() >= DEEPEST {
            return None;
        }
        self.frames.push(Frame {
            key: 0,
            draw: f64::NAN,
            task: Task::current(),
            recorded: false,
            is_entered: false,
            keeps_below: false,
            in_section: false,
            record: SpanRecord::blank(),
        });
        Some(())
    }

    /// Returns the innermost open span of a task. A span that another task holds open while it waits is no parent.
    #[inline]
    pub(super) fn innermost_of(&self, task: Task) -> Option<Open> {
        let mut innermost_first = self.open().iter().rev();
        innermost_first
            .find(|frame| frame.task == task)
            .map(Frame::open)
    }

    /// Finds a span, which is most likely the innermost one: spans need not end in order.
    #[inline]
    pub(super) fn place(&self, key: u64) -> Option<usize> {
        self.open().iter().rposition(|frame| frame.key == key)
    }

    /// Removes the innermost span if it has this key. Returns the spans that are still open, and its frame.
    #[inline]
    pub(super) fn pop_if(&mut self, key: u64) -> Option<(&mut [Frame], &mut Frame)> {
        let last = self.depth.checked_sub(1)?;
        let (below, rest) = self.frames.split_at_mut_checked(last)?;
        let frame = rest.first_mut().filter(|frame| frame.key == key)?;
        self.depth = last;
        Some((below, frame))
    }

    /// Removes a span. Returns the spans that are still open, and its frame.
    pub(super) fn remove(&mut self, place: usize) -> Option<(&mut [Frame], &mut Frame)> {
        let inside = self.open_mut().get_mut(place..)?;
        let key = inside.first()?.key;
        inside.rotate_left(1);
        self.pop_if(key)
    }
}
