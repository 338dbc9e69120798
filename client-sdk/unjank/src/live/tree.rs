//! The last spans, each below its parent.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;
use unjank_protocol::Span;

use super::Warning;

/// A span in the tree.
///
/// ```
/// for span in unjank::live::watch().read().tree {
///     println!("{}{}", "  ".repeat(span.depth), span.name);
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TreeSpan {
    /// The name.
    pub name: String,
    /// The number of spans above it that are in the tree.
    pub depth: usize,
    /// The duration in microseconds.
    pub duration_us: i64,
    /// The thread on which it began.
    pub thread: String,
    /// The level of its duration.
    pub warning: Warning,
}

/// The spans that ended last.
#[derive(Debug, Default)]
pub(super) struct Latest(VecDeque<Node>);

#[derive(Debug)]
struct Node {
    /// Trace and span.
    id: (u128, u64),
    parent: Option<u64>,
    /// Start in microseconds. A parent is longer than a child that begins with it.
    start: (i64, std::cmp::Reverse<i64>),
    shown: TreeSpan,
}

impl Latest {
    const SPANS: usize = 200;

    pub(super) fn add(&mut self, span: &Span<'_>) {
        if self.0.len() >= Self::SPANS {
            self.0.pop_front();
        }
        self.0.push_back(Node {
            id: (span.trace_id.0, span.span_id.0),
            parent: span.parent_span_id.map(|id| id.0),
            start: (span.start.as_micros(), std::cmp::Reverse(span.duration_us)),
            shown: TreeSpan {
                name: span.name.to_string(),
                depth: 0,
                duration_us: span.duration_us,
                thread: span.thread.to_string(),
                warning: Warning::of(span.duration_us, span.on_main_thread),
            },
        });
    }

    /// Returns the spans, each below its parent. A span whose parent is not here is a root.
    pub(super) fn tree(&self) -> Vec<TreeSpan> {
        let known: HashMap<_, ()> = self.0.iter().map(|node| (node.id, ())).collect();
        let mut ordered: Vec<&Node> = self.0.iter().collect();
        // Last first, because a stack takes from its end.
        ordered.sort_by_key(|node| std::cmp::Reverse(node.start));
        let mut roots: Vec<(&Node, usize)> = Vec::new();
        let mut children: HashMap<(u128, u64), Vec<&Node>> = HashMap::new();
        for node in ordered {
            let parent = node.parent.map(|parent| (node.id.0, parent));
            match parent.filter(|parent| known.contains_key(parent)) {
                Some(parent) => children.entry(parent).or_default().push(node),
                None => roots.push((node, 0)),
            }
        }
        let mut tree = Vec::with_capacity(self.0.len());
        let mut open = roots;
        // Ends even if `before_send` has made a cycle: nothing leads into it, and each list of children is taken once.
        while let Some((node, depth)) = open.pop() {
            tree.push(TreeSpan {
                depth,
                ..node.shown.clone()
            });
            let below = children.remove(&node.id).unwrap_or_default();
            open.extend(
                below
                    .into_iter()
                    .map(|child| (child, depth.saturating_add(1))),
            );
        }
        tree
    }
}
