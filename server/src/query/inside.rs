//! Where the time inside a span went: what ran in it, by function and by package, with the time of each itself and with what it
//! called.

use std::collections::HashMap;

use serde::Serialize;
use uuid::Uuid;

use crate::store::reads::StoredSpan;

/// A parent that is its own child ends here.
const DEEPEST: usize = 128;

/// Everything of one name that ran inside.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InsideRow {
    pub name: String,
    pub package: String,
    pub calls: u64,
    /// With what it called, in microseconds; calls of itself inside itself count once.
    pub total_us: u64,
    /// Without what it called.
    pub self_us: u64,
    /// Of `self_us`, what ran on the main thread.
    pub main_thread_us: u64,
    /// The same of what is compared with, when it ran there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseTimes>,
}

/// What a row says, of the other side of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BaseTimes {
    pub calls: u64,
    pub total_us: u64,
    pub self_us: u64,
    pub main_thread_us: u64,
}

/// Inside spans of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Inside {
    /// How many spans of the name were looked into.
    pub spans: u64,
    /// Their time together.
    pub total_us: u64,
    /// The name itself first, then by time of their own on the main thread, then by time of their own.
    pub rows: Vec<InsideRow>,
}

/// What ran inside the spans called `name`, of whole traces.
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
        // Depth first; names above a span are those that its time is in already.
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

/// The rows of one side, each with what the other side says of it; what ran only there comes last, with nothing of its own.
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
    let gone = order.into_iter().filter_map(|name| before.remove(&name));
    rows.extend(gone.map(|row| InsideRow {
        base: Some(times(&row)),
        name: row.name,
        package: row.package,
        ..InsideRow::default()
    }));
    Inside { rows, ..head }
}

/// The time of a span in which something it called ran, however many threads did: overlaps count once.
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
