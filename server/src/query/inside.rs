//! Breaks down the time inside a span by function and package, with and without the time of callees.

use std::collections::HashMap;

use serde::Serialize;
use uuid::Uuid;

use crate::store::reads::StoredSpan;

/// Limit for a span that is its own ancestor.
const DEEPEST: usize = 128;

/// All calls of one name inside the span.
#[derive(Clone, Debug, Default, PartialEq, Serialize, utoipa::ToSchema)]
pub struct InsideRow {
    pub name: String,
    pub package: String,
    pub calls: u64,
    /// Including callees, in microseconds. Recursive calls count once.
    pub total_us: u64,
    /// Excluding callees.
    pub self_us: u64,
    /// The part of `self_us` that ran on the main thread.
    pub main_thread_us: u64,
    /// The same numbers in the base, if the name ran there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseTimes>,
}

/// The numbers of a row in the base of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = InsideTimes)]
pub struct BaseTimes {
    pub calls: u64,
    pub total_us: u64,
    pub self_us: u64,
    pub main_thread_us: u64,
}

/// The breakdown of all spans of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Inside {
    /// The number of spans.
    pub spans: u64,
    /// The total duration of the spans.
    pub total_us: u64,
    /// Sorted by own time on the main thread, then by own time. The span itself is always first.
    pub rows: Vec<InsideRow>,
}

/// Breaks down the spans called `name`. `spans` must hold whole traces.
#[must_use]
pub fn inside(name: &str, spans: &[StoredSpan]) -> Inside {
    let mut children: HashMap<(Uuid, u64), Vec<&StoredSpan>> = HashMap::new();
    for span in spans.iter().filter(|span| span.parent_span_id != 0) {
        children
            .entry((span.trace_id, span.parent_span_id))
            .or_default()
            .push(span);
    }
    let mut found = Inside::default();
    let mut rows: HashMap<&str, InsideRow> = HashMap::new();
    for root in spans.iter().filter(|span| span.name == name) {
        found.spans += 1;
        found.total_us += root.duration_us;
        // Depth first. `above` holds the ancestors' names, whose totals already include this span.
        let mut open = vec![(root, Vec::<&str>::new())];
        while let Some((span, above)) = open.pop() {
            let inner = children
                .get(&(span.trace_id, span.span_id))
                .map_or(&[][..], Vec::as_slice);
            let row = rows.entry(&span.name).or_insert_with(|| InsideRow {
                name: span.name.clone(),
                package: span.package.clone(),
                ..InsideRow::default()
            });
            let own = span.duration_us.saturating_sub(covered(span, inner));
            row.calls += 1;
            row.self_us += own;
            row.main_thread_us += if span.on_main_thread { own } else { 0 };
            if !above.contains(&span.name.as_str()) {
                row.total_us += span.duration_us;
            }
            if above.len() < DEEPEST {
                let above: Vec<&str> = above.into_iter().chain([span.name.as_str()]).collect();
                let others = inner.iter().filter(|child| child.name != name);
                open.extend(others.map(|child| (*child, above.clone())));
            }
        }
    }
    found.rows = rows.into_values().collect();
    found.rows.sort_by(|one, other| {
        let rank = |row: &InsideRow| (row.name == name, row.main_thread_us, row.self_us);
        rank(other)
            .cmp(&rank(one))
            .then_with(|| one.name.cmp(&other.name))
    });
    found
}

/// Adds the numbers of the base to the rows of the head. Names that ran only in the base come last, without numbers of the head.
#[must_use]
pub fn beside(head: Inside, base: Inside) -> Inside {
    let mut before: HashMap<String, InsideRow> = HashMap::new();
    let mut order = Vec::new();
    for row in base.rows {
        order.push(row.name.clone());
        before.insert(row.name.clone(), row);
    }
    let times = |row: &InsideRow| BaseTimes {
        calls: row.calls,
        total_us: row.total_us,
        self_us: row.self_us,
        main_thread_us: row.main_thread_us,
    };
    let mut rows = head.rows;
    for row in &mut rows {
        row.base = before.remove(&row.name).as_ref().map(times);
    }
    let only_in_base = order.into_iter().filter_map(|name| before.remove(&name));
    rows.extend(only_in_base.map(|row| InsideRow {
        base: Some(times(&row)),
        name: row.name,
        package: row.package,
        ..InsideRow::default()
    }));
    Inside { rows, ..head }
}

/// Returns how much of a span its children cover. Children that overlap, on several threads, count once.
fn covered(span: &StoredSpan, inner: &[&StoredSpan]) -> u64 {
    let end_of = |span: &StoredSpan| span.start.saturating_add_unsigned(span.duration_us);
    let mut stretches: Vec<(i64, i64)> = inner
        .iter()
        .map(|child| (child.start.max(span.start), end_of(child).min(end_of(span))))
        .filter(|(start, end)| start < end)
        .collect();
    stretches.sort_unstable();
    let mut covered = 0;
    let mut reached = i64::MIN;
    for (start, end) in stretches {
        covered += end.saturating_sub(start.max(reached)).max(0);
        reached = reached.max(end);
    }
    u64::try_from(covered).unwrap_or_default()
}
