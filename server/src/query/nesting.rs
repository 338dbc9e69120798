//! Which spans run inside which, and how much of a span's time is its own, although devices record only a sample of the spans.
//!
//! # Nesting
//! A span is a child of the span that it names as its parent. A span whose parent is not known is a child of the innermost span that
//! contains it in time on the same thread: on the main thread of the same session, otherwise on a thread of the same name in the same
//! trace. Threads of other traces may share a name, so their spans are not compared.
//!
//! # Sampling
//! A device draws one number per trace and records the spans whose rate is above it. So within the traces that have a span of rate p, a
//! span of rate c is recorded in min(1, c / p) of the cases. Each instant of a span that a recorded child covers therefore represents
//! 1 / min(1, c / p) instants. If several children cover it, the one with the highest rate decides: the others add nothing to it. In
//! expectation, this gives the time that the children cover if all are recorded, also if a span between parent and child is not.
//!
//! Children by time of other traces have a draw of their own. They are recorded in c / s of the cases, where s is the highest rate of
//! their session.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use crate::store::reads::StoredSpan;

/// Limit for a span that is its own ancestor, and for the search of a containing span.
pub(super) const DEEPEST: usize = 128;

/// The place and time of a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing<'s> {
    pub trace_id: Uuid,
    pub span_id: u64,
    /// 0 if the span has no parent.
    pub parent_span_id: u64,
    pub session_id: Uuid,
    pub thread: &'s str,
    pub on_main_thread: bool,
    /// Microseconds since the epoch.
    pub start: i64,
    pub end: i64,
    pub sample_rate: f64,
}

impl<'s> From<&'s StoredSpan> for Timing<'s> {
    fn from(span: &'s StoredSpan) -> Self {
        Self {
            trace_id: span.trace_id,
            span_id: span.span_id,
            parent_span_id: span.parent_span_id,
            session_id: span.session_id,
            thread: &span.thread,
            on_main_thread: span.on_main_thread,
            start: span.start,
            end: span.start.saturating_add_unsigned(span.duration_us),
            sample_rate: span.sample_rate,
        }
    }
}

/// Knowledge of the draw of one trace: the drawn number is below the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    trace_id: Uuid,
    rate: f64,
}

/// The children whose time is not their parent's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Covering {
    /// All, because a span waits for its children on other threads.
    Children,
    /// Those on the thread of the span.
    SameThread,
}

/// Spans of whole traces with their children.
pub(super) struct Nesting<'s> {
    spans: Vec<Timing<'s>>,
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    is_by_time: Vec<bool>,
    /// The highest sample rate of each session.
    highest: HashMap<Uuid, f64>,
}

impl<'s> Nesting<'s> {
    pub(super) fn new(spans: Vec<Timing<'s>>) -> Self {
        let mut places = HashMap::with_capacity(spans.len());
        let mut highest = HashMap::<Uuid, f64>::new();
        for (at, span) in spans.iter().enumerate() {
            places.entry((span.trace_id, span.span_id)).or_insert(at);
            let rate = highest.entry(span.session_id).or_default();
            *rate = rate.max(span.sample_rate);
        }
        let linked = |span: &Timing<'_>| places.get(&(span.trace_id, span.parent_span_id)).copied();
        let mut nesting = Self {
            parents: spans.iter().map(linked).collect(),
            children: vec![Vec::new(); spans.len()],
            is_by_time: vec![false; spans.len()],
            spans,
            highest,
        };
        nesting.adopt();
        for (at, parent) in nesting.parents.iter().enumerate() {
            if let Some(parent) = parent {
                nesting.children[*parent].push(at);
            }
        }
        nesting
    }

    pub(super) fn parent(&self, at: usize) -> Option<usize> {
        self.parents[at]
    }

    pub(super) fn children(&self, at: usize) -> &[usize] {
        &self.children[at]
    }

    /// Whether a span is a child by time, without a link to its parent.
    pub(super) fn is_by_time(&self, at: usize) -> bool {
        self.is_by_time[at]
    }

    /// Returns the knowledge that follows from a recorded span.
    pub(super) fn recorded(&self, root: usize) -> Known {
        self.drawn_below(self.spans[root].sample_rate, root)
    }

    /// Returns the knowledge that follows from a recorded span whose trace has a span of this rate.
    pub(super) fn drawn_below(&self, rate: f64, root: usize) -> Known {
        let root = &self.spans[root];
        Known {
            trace_id: root.trace_id,
            rate: rate.min(root.sample_rate),
        }
    }

    /// Whether a span is in the trace of the known draw.
    pub(super) fn is_in(&self, at: usize, known: Known) -> bool {
        self.spans[at].trace_id == known.trace_id
    }

    /// Returns the probability that a span is recorded, given the knowledge of the draw: above 0, at most 1.
    pub(super) fn share(&self, at: usize, known: Known) -> f64 {
        let span = &self.spans[at];
        let all = if self.is_in(at, known) {
            known.rate
        } else {
            self.highest.get(&span.session_id).copied().unwrap_or(1.0)
        };
        (span.sample_rate / all).clamp(f64::MIN_POSITIVE, 1.0)
    }

    /// Estimates how much of a span's duration is its own, in microseconds. The estimate is below 0 if the recorded children represent more
    /// time than the span took. Sums over many spans are right.
    pub(super) fn own_us(&self, at: usize, given: Known, covering: Covering) -> f64 {
        let span = &self.spans[at];
        let mut covered = Covered {
            thread: (covering == Covering::SameThread).then_some(span),
            share: self.share(at, given),
            intervals: Vec::new(),
        };
        let mut open = vec![Above {
            at,
            start: span.start,
            end: span.end,
            highest: 0.0,
            depth: 0,
        }];
        while let Some(above) = open.pop() {
            let children = self.children[above.at].iter();
            open.extend(children.filter_map(|&child| {
                let share = self.share(child, given);
                covered.add(&above, child, &self.spans[child], share)
            }));
        }
        to_float(span.end - span.start) - covered.weighted_us()
    }

    /// Gives spans without a known parent the innermost span around them as parent.
    fn adopt(&mut self) {
        let mut lanes: HashMap<(Uuid, &str), Vec<usize>> = HashMap::new();
        for (at, span) in self.spans.iter().enumerate() {
            let lane = if span.on_main_thread {
                (span.session_id, "")
            } else {
                (span.trace_id, span.thread)
            };
            lanes.entry(lane).or_default().push(at);
        }
        for mut lane in lanes.into_values() {
            lane.sort_by_key(|at| (self.spans[*at].start, Reverse(self.spans[*at].end), *at));
            self.adopt_in(&lane);
        }
    }

    /// `lane` holds the spans of one thread by start, longer ones first.
    fn adopt_in(&mut self, lane: &[usize]) {
        let mut around: Vec<usize> = Vec::new();
        for &at in lane {
            let start = self.spans[at].start;
            while around
                .pop_if(|last| self.spans[*last].end < start)
                .is_some()
            {}
            if self.parents[at].is_none() {
                let found = self.containing(at, &around);
                self.is_by_time[at] = found.is_some();
                self.parents[at] = found;
            }
            around.push(at);
        }
    }

    /// Returns the innermost of the spans around a span that lasts as long and is not inside it.
    fn containing(&self, at: usize, around: &[usize]) -> Option<usize> {
        let end = self.spans[at].end;
        let mut candidates = around.iter().rev().take(DEEPEST);
        let found = candidates.find(|one| self.spans[**one].end >= end);
        found.copied().filter(|one| !self.is_inside(*one, at))
    }

    fn is_inside(&self, at: usize, outer: usize) -> bool {
        let ancestors = std::iter::successors(Some(at), |at| self.parents[*at]);
        ancestors.take(DEEPEST).any(|ancestor| ancestor == outer)
    }
}

fn on_one_thread(one: &Timing<'_>, other: &Timing<'_>) -> bool {
    (one.on_main_thread && other.on_main_thread) || one.thread == other.thread
}

/// A span whose children are visited, inside the span whose own time is estimated.
struct Above {
    at: usize,
    /// The part of the span that is inside all spans around it.
    start: i64,
    end: i64,
    /// The highest share of the spans that cover this part.
    highest: f64,
    depth: usize,
}

/// The intervals of a span that its children cover, each with the share of the cases in which the child is recorded.
struct Covered<'s> {
    /// The span, if only its own thread counts.
    thread: Option<&'s Timing<'s>>,
    /// The share of the cases in which the span is recorded.
    share: f64,
    intervals: Vec<(i64, i64, f64)>,
}

impl Covered<'_> {
    /// Adds a child. Returns it if spans inside it could cover more.
    fn add(&mut self, above: &Above, at: usize, child: &Timing<'_>, share: f64) -> Option<Above> {
        let (start, end) = (child.start.max(above.start), child.end.min(above.end));
        if start >= end {
            return None;
        }
        let mut highest = above.highest;
        let share = share.min(self.share);
        let covers = self.thread.is_none_or(|span| on_one_thread(span, child));
        if covers && share > highest {
            self.intervals.push((start, end, share));
            highest = share;
        }
        let depth = above.depth + 1;
        (highest < self.share && depth < DEEPEST).then_some(Above {
            at,
            start,
            end,
            highest,
            depth,
        })
    }

    /// Sums the covered time, in microseconds. Each instant weighs the share of the span divided by the highest share that covers it.
    fn weighted_us(self) -> f64 {
        let known = self.share;
        if let [(start, end, share)] = self.intervals[..] {
            return to_float(end - start) * known / share;
        }
        let mut edges: Vec<(i64, bool, u64)> = Vec::with_capacity(self.intervals.len() * 2);
        for (start, end, share) in self.intervals {
            // Positive floats are ordered like their bits.
            edges.push((start, true, share.to_bits()));
            edges.push((end, false, share.to_bits()));
        }
        edges.sort_unstable();
        let mut open: BTreeMap<u64, u32> = BTreeMap::new();
        let (mut sum, mut before) = (0.0, 0);
        for (at, begins, share) in edges {
            if let Some((highest, _)) = open.last_key_value() {
                sum += to_float(at - before) * known / f64::from_bits(*highest);
            }
            before = at;
            let count = open.entry(share).or_default();
            if begins {
                *count += 1;
            } else if *count > 1 {
                *count -= 1;
            } else {
                open.remove(&share);
            }
        }
        sum
    }
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of a span")]
fn to_float(us: i64) -> f64 {
    us as f64
}
