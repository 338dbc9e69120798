//! Two sides of runs against each other: numbers, whether they differ by more than chance, and what that means to a gate. Pure: runs
//! come in from report files or from the store, and Markdown and JSON go out.

mod budgets;
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
pub use self::json::{SCHEMA_VERSION, json};
pub use self::judge::compare;
pub use self::markdown::{MARKER, markdown};
pub use self::metric::{Metric, Statistic};
use crate::test_run::{Measurable, Measured};

/// What is compared with the other side.
#[derive(Debug, Default)]
pub struct Side {
    /// As it is told: the files, the version.
    pub label: String,
    pub runs: Vec<Measured>,
    /// Numbers of more events than the runs have, where somebody knows them: a value and how many events it is of.
    pub known: BTreeMap<(Measurable, Metric), (f64, f64)>,
}

/// What is said of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    OverBudget,
    Regressed,
    Improved,
    /// Only the head has it.
    New,
    /// Only the base has it.
    Gone,
    NotEnoughSamples,
    Unchanged,
}

/// What was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Each run is one value.
    Runs,
    /// Loads, spans, windows, samples.
    Values,
}

/// A metric of a thing, on both sides.
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

/// All of it.
#[derive(Debug)]
pub struct Comparison {
    pub base: Facts,
    pub head: Facts,
    /// What needs eyes first.
    pub rows: Vec<Row>,
    /// Budgets of what the head did not measure, and what that means.
    pub missing: Vec<String>,
    pub on_missing: Gate,
    pub significance: f64,
}

/// What is told of a side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Facts {
    pub label: String,
    pub runs: usize,
}

impl Comparison {
    /// Nothing was measured on both sides.
    #[must_use]
    pub fn has_nothing_in_common(&self) -> bool {
        !self
            .rows
            .iter()
            .any(|row| row.base.is_some() && row.head.is_some())
    }

    /// The worst that it means.
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

    /// Relative to the base; nothing where that is 0.
    #[must_use]
    pub fn change_percent(&self) -> Option<f64> {
        let base = self.base.filter(|base| *base != 0.0)?;
        Some(self.change()? / base.abs() * 100.0)
    }
}
