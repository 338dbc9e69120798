//! A comparison as JSON. Fields are only added; a change of meaning increments `schema_version`.

use serde::Serialize;

use super::{Comparison, Counted, Facts, Gate, Limit, Row, Verdict};
use crate::test_run::Measurable;

/// The version of the format below.
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'c> {
    schema_version: u32,
    /// `pass`, `warn` or `fail`; with `fail` the exit code is 1.
    gate: Gate,
    base: &'c Facts,
    head: &'c Facts,
    /// The largest corrected p that counts as significant.
    significance: f64,
    regressed: usize,
    over_budget: usize,
    improved: usize,
    /// Budgeted metrics that the head did not measure.
    missing: &'c [String],
    rows: Vec<Line<'c>>,
}

#[derive(Serialize)]
struct Line<'c> {
    /// `page`, `span`, `start` or `run`.
    of: &'static str,
    /// Empty for `run`.
    name: &'c str,
    metric: &'static str,
    /// `mean`, `p50`, `p95` and so on.
    statistic: String,
    /// The unit of base, head, change and limit.
    unit: &'static str,
    better: &'static str,
    base: Option<f64>,
    head: Option<f64>,
    change: Option<f64>,
    change_percent: Option<f64>,
    /// What the two counts refer to: `runs` or `values`.
    counted: Counted,
    base_count: u64,
    head_count: u64,
    /// Two-sided, corrected for the number of tests.
    p: Option<f64>,
    /// −1 to 1: how much more often the head is above the base than below it.
    cliffs_delta: Option<f64>,
    limit: Option<Limit>,
    verdict: Verdict,
    gate: Gate,
}

/// Returns the document, indented.
///
/// # Errors
/// Does not fail in practice: all map keys are strings.
pub fn json(comparison: &Comparison) -> serde_json::Result<String> {
    let document = Document {
        schema_version: SCHEMA_VERSION,
        gate: comparison.gate(),
        base: &comparison.base,
        head: &comparison.head,
        significance: comparison.significance,
        regressed: comparison.count(Verdict::Regressed),
        over_budget: comparison.count(Verdict::OverBudget),
        improved: comparison.count(Verdict::Improved),
        missing: &comparison.missing,
        rows: comparison.rows.iter().map(Line::from).collect(),
    };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

impl<'c> From<&'c Row> for Line<'c> {
    fn from(row: &'c Row) -> Self {
        let nature = row.metric.nature();
        let (of, name) = match &row.of {
            Measurable::Page(name) => ("page", name.as_str()),
            Measurable::Span(name) => ("span", name.as_str()),
            Measurable::Start(kind) => ("start", kind.as_str()),
            Measurable::Run => ("run", ""),
        };
        Self {
            of,
            name,
            metric: nature.name,
            statistic: row.metric.statistic.label(),
            unit: nature.unit,
            better: if nature.more_is_worse {
                "lower"
            } else {
                "higher"
            },
            base: row.base,
            head: row.head,
            change: row.change(),
            change_percent: row.change_percent(),
            counted: row.counted,
            base_count: row.base_count,
            head_count: row.head_count,
            p: row.p,
            cliffs_delta: row.delta,
            limit: row.limit,
            verdict: row.verdict,
            gate: row.gate,
        }
    }
}
