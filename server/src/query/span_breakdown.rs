//! Breaks down the time inside a span by function and package, with and without the time of callees.

use std::collections::HashMap;

use serde::Serialize;

use super::callees_per_span::{ExampleCall, PerTraced, Traced, walk};
use super::nesting::{Covering, Nesting, Timing};
use crate::store::reads::StoredSpan;

/// All calls of one name inside the spans that are broken down. Devices record a share of the calls; the numbers are estimates for all of
/// them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, utoipa::ToSchema)]
pub struct InsideRow {
    pub name: String,
    pub package: String,
    pub calls: u64,
    /// The number of calls that devices recorded. Smaller than `calls` if the name has a lower sample rate than the span.
    pub recorded: u64,
    /// The number of recorded calls without a link to their parent, which ran on the same thread while the parent was open.
    pub by_time: u64,
    /// Including callees, in microseconds. Recursive calls count once.
    pub total_us: u64,
    /// Excluding callees. Time of callees that are never traced is included.
    pub self_us: u64,
    /// The part of `self_us` that ran on the main thread.
    pub main_thread_us: u64,
    /// The numbers per span, from the spans whose inside was recorded.
    pub per_traced: PerTraced,
    /// The call with the median own time, among those that did not fail, in spans that did not fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<ExampleCall>,
    /// The same numbers in the base, if the name ran there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseTimes>,
    /// In a comparison, the number of spans of the base that recorded the name if it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_traced: Option<u64>,
    /// In a comparison, the probability that chance alone makes the own time per traced span differ this much, corrected for the number of
    /// names. Missing if fewer than 8 installs have traced spans on either side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// The same for the own time on the main thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_main_thread: Option<f64>,
}

/// The numbers of a row in the base of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = InsideTimes)]
pub struct BaseTimes {
    pub calls: u64,
    pub recorded: u64,
    pub total_us: u64,
    pub self_us: u64,
    pub main_thread_us: u64,
    pub per_traced: PerTraced,
}

/// Spans of whole traces. The spans called `name` are to be broken down.
#[derive(Clone, Debug, Default)]
pub struct Looked {
    pub name: String,
    pub spans: Vec<StoredSpan>,
}

/// The breakdown of all spans of one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inside {
    /// The number of spans.
    pub spans: u64,
    /// The number of spans whose inside was recorded.
    pub traced: u64,
    /// The total duration of the spans.
    pub total_us: u64,
    /// Sorted by own time on the main thread, then by own time. The span itself is always first.
    pub rows: Vec<InsideRow>,
}

/// The numbers of a row while it is summed up.
#[derive(Default)]
struct Sums {
    package: String,
    calls: f64,
    recorded: u64,
    by_time: u64,
    total_us: f64,
    self_us: f64,
    main_thread_us: f64,
}

/// Breaks down the spans of the head and of the base, and tests their differences.
#[must_use]
pub fn inside(head: &Looked, base: Option<&Looked>) -> (Inside, Option<Inside>) {
    let nesting = nesting_of(head);
    let traced = Traced::new(&head.name, &head.spans, &nesting);
    let mut now = broken_down(head, &nesting, &traced);
    let Some(base) = base else {
        return (now, None);
    };
    let nesting = nesting_of(base);
    let traced_before = Traced::new(&base.name, &base.spans, &nesting);
    let before = broken_down(base, &nesting, &traced_before);
    now.rows = with_base(now.rows, &before.rows);
    let names: Vec<String> = now.rows.iter().map(|row| row.name.clone()).collect();
    let chance = traced.by_chance(&traced_before, names.iter().map(String::as_str));
    for row in &mut now.rows {
        let p = chance.get(row.name.as_str());
        row.p = p.map(|p| p.all);
        row.p_main_thread = p.map(|p| p.on_main);
        row.per_traced.spans = traced.spans_for(&row.name, &traced_before);
        row.base_traced = Some(traced_before.spans_for(&row.name, &traced));
    }
    (now, Some(before))
}

fn nesting_of(looked: &Looked) -> Nesting<'_> {
    Nesting::new(looked.spans.iter().map(Timing::from).collect())
}

fn broken_down(looked: &Looked, nesting: &Nesting<'_>, traced: &Traced<'_>) -> Inside {
    let Looked { name, spans } = looked;
    let mut found = Inside {
        traced: traced.count(),
        ..Inside::default()
    };
    let mut sums: HashMap<&str, Sums> = HashMap::new();
    walk(name, spans, nesting, |root, at, above| {
        if root == at {
            found.spans += 1;
            found.total_us += spans[at].duration_us;
        }
        let sum = sums.entry(&spans[at].name).or_default();
        sum.add(&spans[at], nesting, (at, root), above);
    });
    let rows = sums.into_iter().map(|(name, sums)| InsideRow {
        per_traced: traced.of(name),
        example: traced.example(name),
        ..sums.row(name)
    });
    found.rows = rows.collect();
    found.rows.sort_by(|one, other| {
        let rank = |row: &InsideRow| (row.name == *name, row.main_thread_us, row.self_us);
        rank(other)
            .cmp(&rank(one))
            .then_with(|| one.name.cmp(&other.name))
    });
    found
}

impl Sums {
    fn add(
        &mut self,
        span: &StoredSpan,
        nesting: &Nesting<'_>,
        (at, root): (usize, usize),
        above: &[&str],
    ) {
        let known = nesting.recorded(root);
        let weight = 1.0 / nesting.share(at, known);
        let own = weight * nesting.own_us(at, known, Covering::Children);
        if self.recorded == 0 {
            self.package.clone_from(&span.package);
        }
        self.calls += weight;
        self.recorded += 1;
        self.by_time += u64::from(at != root && nesting.is_by_time(at));
        self.self_us += own;
        self.main_thread_us += if span.on_main_thread { own } else { 0.0 };
        if !above.contains(&span.name.as_str()) {
            #[expect(clippy::cast_precision_loss, reason = "microseconds of a span")]
            let duration = span.duration_us as f64;
            self.total_us += weight * duration;
        }
    }

    fn row(self, name: &str) -> InsideRow {
        InsideRow {
            name: name.to_owned(),
            package: self.package,
            calls: rounded(self.calls),
            recorded: self.recorded,
            by_time: self.by_time,
            total_us: rounded(self.total_us),
            self_us: rounded(self.self_us),
            main_thread_us: rounded(self.main_thread_us),
            ..InsideRow::default()
        }
    }
}

/// Rounds an estimate, which may be below 0 by chance, to a whole number.
pub(super) fn rounded(estimate: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates"
    )]
    let whole = estimate.round().max(0.0) as u64;
    whole
}

/// Adds the numbers of the base to the rows of the head. Names that ran only in the base come last, without numbers of the head.
fn with_base(mut rows: Vec<InsideRow>, base: &[InsideRow]) -> Vec<InsideRow> {
    let times = |row: &InsideRow| BaseTimes {
        calls: row.calls,
        recorded: row.recorded,
        total_us: row.total_us,
        self_us: row.self_us,
        main_thread_us: row.main_thread_us,
        per_traced: row.per_traced.clone(),
    };
    let mut before: HashMap<&str, &InsideRow> =
        base.iter().map(|row| (row.name.as_str(), row)).collect();
    for row in &mut rows {
        row.base = before.remove(row.name.as_str()).map(times);
    }
    let only_in_base = base
        .iter()
        .filter(|row| before.contains_key(row.name.as_str()));
    rows.extend(only_in_base.map(|row| InsideRow {
        base: Some(times(row)),
        name: row.name.clone(),
        package: row.package.clone(),
        example: row.example.clone(),
        ..InsideRow::default()
    }));
    rows
}
