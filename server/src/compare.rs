//! Compares two sides of one or more runs: the numbers, whether they differ significantly, and the resulting gate. This module is
//! pure: runs from report files or from the store go in, Markdown and JSON come out.

mod budgets;
mod history;
mod json;
mod judge;
mod markdown;
mod metric;
mod numbers;
mod significance;

#[cfg(test)]
mod worked_examples;

use std::collections::BTreeMap;

use serde::Serialize;

pub use self::budgets::{Budgets, Gate, Limit};
pub use self::history::{Entry, Kept, Origin, origins, section, with};
pub use self::json::{SCHEMA_VERSION, json};
pub use self::judge::compare;
pub use self::markdown::{MARKER, markdown};
pub use self::metric::{Metric, Statistic};
use crate::test_run::{Measurable, Measured};

/// One side of a comparison.
#[derive(Debug, Default)]
pub struct Side {
    /// The displayed label: the files or the version.
    pub label: String,
    pub runs: Vec<Measured>,
    /// Numbers from more events than the runs contain, where available: a value and its number of events.
    pub known: BTreeMap<(Measurable, Metric), (f64, f64)>,
}

/// The result for one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    OverBudget,
    Regressed,
    Improved,
    /// Measured in the head only.
    New,
    /// Measured in the base only.
    Gone,
    NotEnoughSamples,
    Unchanged,
}

/// What the counts of a row refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Each run counts as one value.
    Runs,
    /// Single values, such as loads, spans, windows and samples.
    Values,
}

/// One metric of one thing, on both sides.
#[derive(Clone, Debug)]
pub struct Row {
    pub of: Measurable,
    pub metric: Metric,
    pub base: Option<f64>,
    pub head: Option<f64>,
    pub counted: Counted,
    pub base_count: u64,
    pub head_count: u64,
    /// Corrected for the number of tests.
    pub p: Option<f64>,
    /// Cliff's δ, −1 to 1.
    pub delta: Option<f64>,
    pub limit: Option<Limit>,
    pub verdict: Verdict,
    pub gate: Gate,
}

/// A complete comparison.
#[derive(Debug)]
pub struct Comparison {
    pub base: Facts,
    pub head: Facts,
    /// Sorted by verdict, the most important first.
    pub rows: Vec<Row>,
    /// Budgeted metrics that the head did not measure.
    pub missing: Vec<String>,
    pub on_missing: Gate,
    pub significance: f64,
}

/// Label and size of a side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Facts {
    pub label: String,
    pub runs: usize,
}

impl Comparison {
    /// Whether no metric was measured on both sides.
    #[must_use]
    pub fn has_nothing_in_common(&self) -> bool {
        !self
            .rows
            .iter()
            .any(|row| row.base.is_some() && row.head.is_some())
    }

    /// Returns the worst gate of all rows and missing metrics.
    #[must_use]
    pub fn gate(&self) -> Gate {
        let missing = (!self.missing.is_empty()).then_some(self.on_missing);
        let all = self.rows.iter().map(|row| row.gate).chain(missing);
        let worst = |one: Gate, other: Gate| match (one, other) {
            (Gate::Fail, _) | (_, Gate::Fail) => Gate::Fail,
            (Gate::Warn, _) | (_, Gate::Warn) => Gate::Warn,
            _ => Gate::Pass,
        };
        all.fold(Gate::Pass, worst)
    }

    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows
            .iter()
            .filter(|row| row.verdict == verdict)
            .count()
    }
}

impl Row {
    #[must_use]
    pub fn change(&self) -> Option<f64> {
        Some(self.head? - self.base?)
    }

    /// Relative to the base; `None` if the base is 0.
    #[must_use]
    pub fn change_percent(&self) -> Option<f64> {
        let base = self.base.filter(|base| *base != 0.0)?;
        Some(self.change()? / base.abs() * 100.0)
    }
}
