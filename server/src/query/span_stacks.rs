//! Spans as stacks, for flame graphs: the path of names from an outermost span to each span inside it, weighted by own time.

use std::collections::{BTreeMap, HashSet};

use uuid::Uuid;

use super::WeighedStack;
use super::nesting::{Covering, DEEPEST, Nesting, Timing};
use crate::store::reads::{StoredFrame, StoredSpan};

/// A path of spans with the time that its innermost span spent itself.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanStack {
    /// Innermost first, as in stacks of janks.
    frames: Vec<StoredFrame>,
    /// In microseconds, above 0. Scaled up by the sample rates of the spans.
    own_us: f64,
}

impl SpanStack {
    /// Returns the stack with its time in microseconds.
    #[must_use]
    pub fn in_micros(&self) -> WeighedStack<'_> {
        self.weighing(1.0)
    }

    /// Returns the stack with its time in milliseconds.
    #[must_use]
    pub fn in_millis(&self) -> WeighedStack<'_> {
        self.weighing(1e-3)
    }

    fn weighing(&self, unit: f64) -> WeighedStack<'_> {
        WeighedStack {
            frames: &self.frames,
            value: self.own_us * unit,
            base: None,
        }
    }
}

/// Returns the stacks below the chosen spans, one per path of names, sorted by path. `spans` must hold the whole traces of `chosen`.
/// A chosen span inside another one is part of the other one's stacks.
#[must_use]
pub fn span_stacks(chosen: &[StoredSpan], spans: &[StoredSpan]) -> Vec<SpanStack> {
    let chosen: HashSet<(Uuid, u64)> = chosen
        .iter()
        .map(|span| (span.trace_id, span.span_id))
        .collect();
    let is_chosen = |at: usize| chosen.contains(&(spans[at].trace_id, spans[at].span_id));
    let nesting = Nesting::new(spans.iter().map(Timing::from).collect());
    let is_outermost = |at: usize| {
        let above = std::iter::successors(nesting.parent(at), |at| nesting.parent(*at));
        !above.take(DEEPEST).any(is_chosen)
    };
    let mut stacks: BTreeMap<Vec<&str>, SpanStack> = BTreeMap::new();
    for root in (0..spans.len()).filter(|at| is_chosen(*at) && is_outermost(*at)) {
        let known = nesting.recorded(root);
        let mut open = vec![(root, vec![root])];
        while let Some((at, path)) = open.pop() {
            let weight = 1.0 / (nesting.share(at, known) * spans[root].sample_rate);
            let own_us = weight * nesting.own_us(at, known, Covering::Children);
            let names = path.iter().map(|at| spans[*at].name.as_str()).collect();
            let stack = stacks.entry(names).or_insert_with(|| SpanStack {
                frames: path.iter().rev().map(|at| frame(&spans[*at])).collect(),
                own_us: 0.0,
            });
            stack.own_us += own_us;
            if path.len() < DEEPEST {
                let inside = nesting.children(at).iter();
                open.extend(inside.map(|child| (*child, [&path[..], &[*child]].concat())));
            }
        }
    }
    // Estimates of own time may be below 0, see `Nesting::own_us`.
    stacks
        .into_values()
        .filter(|stack| stack.own_us > 0.0)
        .collect()
}

/// A span as a frame: its name, and where its code is.
fn frame(span: &StoredSpan) -> StoredFrame {
    StoredFrame {
        function: span.name.clone(),
        file: span.code_file.clone(),
        line: span.code_line,
        ..StoredFrame::default()
    }
}
