//! The tree of spans: the depth and the self time of each.

use std::collections::HashMap;

use unjank_protocol::Span;

use super::view::View;
use crate::event::Event;

/// A span, and what follows from the other spans.
#[derive(Debug)]
pub(super) struct Node<'e> {
    pub(super) span: &'e Span<'e>,
    /// Microseconds since the Unix epoch.
    pub(super) start_us: i64,
    /// Number of recorded spans above it.
    pub(super) depth: usize,
    /// Time in which none of its children ran, in microseconds.
    pub(super) self_us: i64,
}

/// Returns the spans of these events.
pub(super) fn spans<'e>(
    events: impl IntoIterator<Item = &'e Event>,
) -> impl Iterator<Item = &'e Span<'e>> {
    let views = events.into_iter().filter_map(View::of);
    views.filter_map(View::span)
}

/// Returns all spans ordered by start, parents before their children.
pub(super) fn nodes<'e>(spans: impl Iterator<Item = &'e Span<'e>>) -> Vec<Node<'e>> {
    let mut spans: Vec<_> = spans.collect();
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.duration_us)));
    let ids = spans.iter().enumerate();
    let places: HashMap<_, _> = ids
        .map(|(at, span)| ((span.trace_id.0, span.span_id.0), at))
        .collect();
    let parent = |span: &Span<'_>| {
        let above = span.parent_span_id?;
        places.get(&(span.trace_id.0, above.0)).copied()
    };
    let mut children: Vec<Vec<(i64, i64)>> = vec![Vec::new(); spans.len()];
    for span in &spans {
        let list = parent(span).and_then(|at| children.get_mut(at));
        if let Some(list) = list {
            list.push(interval(span));
        }
    }
    let depth = |span: &Span<'_>| {
        // `before_send` may have made a cycle of parents, so the walk ends after as many steps as there are spans.
        let above = std::iter::successors(parent(span), |at| parent(spans.get(*at)?));
        above.take(spans.len()).count()
    };
    let own = spans.iter().zip(children);
    own.map(|(span, mut children)| Node {
        span,
        start_us: span.start.as_micros(),
        depth: depth(span),
        self_us: self_time(interval(span), &mut children),
    })
    .collect()
}

fn interval(span: &Span<'_>) -> (i64, i64) {
    let start = span.start.as_micros();
    (start, start.saturating_add(span.duration_us.max(0)))
}

/// Returns the part of a span that none of its children covers. Children may overlap, and may extend beyond the span.
fn self_time((start, end): (i64, i64), children: &mut [(i64, i64)]) -> i64 {
    children.sort_unstable();
    let (mut own, mut reached) = (0_i64, start);
    for (from, to) in children {
        own = own.saturating_add((*from).min(end).saturating_sub(reached).max(0));
        reached = reached.max(*to);
    }
    own.saturating_add(end.saturating_sub(reached).max(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same, microsecond by microsecond.
    fn by_counting((start, end): (i64, i64), children: &[(i64, i64)]) -> i64 {
        let free = |at: &i64| !children.iter().any(|(from, to)| (from..to).contains(&at));
        i64::try_from((start..end).filter(free).count()).unwrap()
    }

    fn an_interval() -> impl Strategy<Value = (i64, i64)> {
        (0..60_i64, 0..40_i64).prop_map(|(start, long)| (start, start + long))
    }

    proptest! {
        #[test]
        fn self_time_is_what_no_child_covers(
            whole in an_interval(),
            mut children in proptest::collection::vec(an_interval(), 0..8),
        ) {
            let counted = by_counting(whole, &children);
            prop_assert_eq!(self_time(whole, &mut children), counted);
        }
    }
}
