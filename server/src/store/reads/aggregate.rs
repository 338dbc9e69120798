//! Measures, and the aggregates they are computed from.

use serde::Serialize;
use utoipa::ToSchema;

use crate::store::buckets::{bucket, middle, upper_end};

/// How many values become one. Roll-ups store the aggregate's state in the column with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    Sum,
    Min,
    Max,
    /// Weights by [`bucket`].
    Histogram {
        /// The weight of a raw row's value.
        weight: &'static str,
    },
    /// Weights by the bucket's lower bound, which the device sets.
    Bounds,
    /// The number of distinct values.
    Distinct,
}

/// Events of another signal that an aggregate of a subject counts.
#[derive(Debug)]
pub(super) struct OtherSignal {
    pub(super) signal: &'static str,
    /// The aggregate of the other signal.
    pub(super) aggregate: &'static str,
    /// Counts only events with these values of their dimensions.
    pub(super) filters: &'static [(&'static str, &'static str)],
}

/// A value that can be aggregated, from raw rows or from rows of a roll-up.
#[derive(Clone, Copy, Debug)]
pub struct Aggregate {
    /// The column in roll-ups.
    pub name: &'static str,
    pub fold: Aggregation,
    /// The value, an expression over a raw row.
    pub raw: &'static str,
    /// The same as an expression over a row of a roll-up that has no column for it.
    kept: Option<&'static str>,
    pub(super) other: Option<&'static OtherSignal>,
}

impl Aggregate {
    const fn new(name: &'static str, fold: Aggregation, raw: &'static str) -> Self {
        Self {
            name,
            fold,
            raw,
            kept: None,
            other: None,
        }
    }

    /// A number of distinct values that another signal counts. The subject's own rows do not have it.
    pub(super) const fn of_other(name: &'static str, other: &'static OtherSignal) -> Self {
        Self {
            other: Some(other),
            ..Self::distinct(name, "")
        }
    }

    pub(super) const fn sum(name: &'static str, raw: &'static str) -> Self {
        Self::new(name, Aggregation::Sum, raw)
    }

    /// A sum that roll-ups have no column for, with the expression over their rows.
    pub(super) const fn sum_of(name: &'static str, raw: &'static str, kept: &'static str) -> Self {
        Self {
            kept: Some(kept),
            ..Self::sum(name, raw)
        }
    }

    /// The value in a row of a roll-up.
    fn column(&self) -> String {
        match self.kept {
            Some(kept) => kept.to_owned(),
            None => format!("s.`{}`", self.name),
        }
    }

    pub(super) const fn min(name: &'static str, raw: &'static str) -> Self {
        Self::new(name, Aggregation::Min, raw)
    }

    pub(super) const fn max(name: &'static str, raw: &'static str) -> Self {
        Self::new(name, Aggregation::Max, raw)
    }

    pub(super) const fn distinct(name: &'static str, raw: &'static str) -> Self {
        Self::new(name, Aggregation::Distinct, raw)
    }

    pub(super) const fn bounds(name: &'static str, raw: &'static str) -> Self {
        Self::new(name, Aggregation::Bounds, raw)
    }

    pub(super) const fn histogram(
        name: &'static str,
        raw: &'static str,
        weight: &'static str,
    ) -> Self {
        Self::new(name, Aggregation::Histogram { weight }, raw)
    }

    /// Aggregates raw rows.
    pub(super) fn of_raw(&self) -> String {
        let raw = self.raw;
        match self.fold {
            Aggregation::Sum => format!("toFloat64(sum({raw}))"),
            Aggregation::Min => format!("toFloat64(min({raw}))"),
            Aggregation::Max => format!("toFloat64(max({raw}))"),
            // With the precision of the roll-ups, so that raw rows and roll-ups give the same number.
            Aggregation::Distinct => format!("toFloat64(uniqCombined64(12)({raw}))"),
            Aggregation::Bounds => format!("sumMap({raw})"),
            // NULL means not measured and has no bucket.
            Aggregation::Histogram { weight } => format!(
                "sumMap(if(isNull({raw}), CAST(map(), 'Map(Int16, Float64)'), map({}, toFloat64({weight}))))",
                bucket(&format!("assumeNotNull({raw})"))
            ),
        }
    }

    /// Aggregates raw rows to a state, to combine with other sources.
    pub(super) fn state_of_raw(&self) -> String {
        match self.fold {
            Aggregation::Distinct => format!("uniqCombined64State(12)({})", self.raw),
            _ => self.of_raw(),
        }
    }

    pub(super) fn state_of_rollup(&self) -> String {
        let column = self.column();
        match self.fold {
            Aggregation::Distinct => format!("uniqCombined64MergeState(12)({column})"),
            Aggregation::Sum => format!("toFloat64(sum({column}))"),
            _ => self.of_rollup(),
        }
    }

    /// Combines the states of several sources.
    pub(super) fn of_parts(&self) -> String {
        let state = format!("`a_{}`", self.name);
        match self.fold {
            Aggregation::Sum => format!("sum({state})"),
            Aggregation::Min => format!("min({state})"),
            Aggregation::Max => format!("max({state})"),
            Aggregation::Distinct => format!("toFloat64(uniqCombined64Merge(12)({state}))"),
            Aggregation::Bounds | Aggregation::Histogram { .. } => format!("sumMap({state})"),
        }
    }

    /// Aggregates the rows of a roll-up.
    pub(super) fn of_rollup(&self) -> String {
        let column = self.column();
        match self.fold {
            Aggregation::Sum => format!("sum({column})"),
            Aggregation::Min => format!("toFloat64(min({column}))"),
            Aggregation::Max => format!("toFloat64(max({column}))"),
            Aggregation::Distinct => format!("toFloat64(uniqCombined64Merge(12)({column}))"),
            Aggregation::Bounds | Aggregation::Histogram { .. } => format!("sumMap({column})"),
        }
    }
}

/// The unit of a measure. `share` is from 0 to 1, and `value` is in the metric's own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Count,
    #[serde(rename = "us")]
    Microseconds,
    #[serde(rename = "ms")]
    Milliseconds,
    Bytes,
    /// From 0 to 1.
    Share,
    PerSecond,
    PerMinute,
    /// In the metric's own unit.
    Value,
}

impl Unit {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Bytes => "bytes",
            Self::Share => "share",
            Self::PerSecond => "per_second",
            Self::PerMinute => "per_minute",
            Self::Value => "value",
        }
    }
}

/// Which direction is an improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    Lower,
    Higher,
    #[serde(rename = "none")]
    Neither,
}

/// A number that a query can return.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    pub name: &'static str,
    pub unit: Unit,
    pub better: Better,
    pub formula: Formula,
}

impl Measure {
    const fn new(name: &'static str, unit: Unit, better: Better, formula: Formula) -> Self {
        Self {
            name,
            unit,
            better,
            formula,
        }
    }

    /// A measure that improves when it falls.
    pub(super) const fn lower(name: &'static str, unit: Unit, formula: Formula) -> Self {
        Self::new(name, unit, Better::Lower, formula)
    }

    /// A measure that improves when it rises.
    pub(super) const fn higher(name: &'static str, unit: Unit, formula: Formula) -> Self {
        Self::new(name, unit, Better::Higher, formula)
    }

    /// A measure of which neither direction is an improvement.
    pub(super) const fn neutral(name: &'static str, unit: Unit, formula: Formula) -> Self {
        Self::new(name, unit, Better::Neither, formula)
    }
}

impl Measure {
    /// Returns the measure as SQL over the aggregates of a subquery; NaN where nothing was measured. A device may report more slow
    /// frames than frames, but a share is at most 1.
    pub(super) fn sql(&self) -> String {
        let sql = self.formula.sql();
        match self.unit {
            Unit::Share => format!("if({sql} > 1, 1., {sql})"),
            _ => sql,
        }
    }
}

/// How a measure is computed from aggregates.
#[derive(Clone, Copy, Debug)]
pub enum Formula {
    Is(&'static str),
    /// The first divided by the second, times the third.
    Ratio(&'static str, &'static str, f64),
    /// The first divided by the sum of both.
    PartOf(&'static str, &'static str),
    /// The sum of the first two divided by the third.
    SumOver([&'static str; 2], &'static str),
    Plus(&'static str, &'static str),
    /// The value below which this share of a histogram lies.
    Percentile(&'static str, f64),
    /// The upper end of a histogram.
    Maximum(&'static str),
}

impl Formula {
    /// The required aggregates.
    pub(super) fn needs(&self) -> Vec<&'static str> {
        match *self {
            Self::Is(one) | Self::Percentile(one, _) | Self::Maximum(one) => vec![one],
            Self::Ratio(above, below, _) => vec![above, below],
            Self::SumOver([first, second], below) => vec![first, second, below],
            Self::Plus(first, second) | Self::PartOf(first, second) => vec![first, second],
        }
    }

    /// Returns the value as SQL over the aggregates of a subquery; NaN where nothing was measured.
    fn sql(&self) -> String {
        let column = |name: &str| format!("`a_{name}`");
        match self {
            Self::Is(one) => column(one),
            Self::Ratio(above, below, times) => format!(
                "if({below} = 0, nan, {above} * {times:?} / {below})",
                above = column(above),
                below = column(below)
            ),
            Self::SumOver([first, second], below) => format!(
                "if({below} = 0, nan, ({} + {}) / {below})",
                column(first),
                column(second),
                below = column(below)
            ),
            Self::PartOf(part, rest) => format!(
                "if({part} + {rest} = 0, nan, {part} / ({part} + {rest}))",
                part = column(part),
                rest = column(rest)
            ),
            Self::Plus(first, second) => format!("({} + {})", column(first), column(second)),
            Self::Percentile(histogram, share) => percentile(&column(histogram), *share),
            Self::Maximum(histogram) => maximum(&column(histogram)),
        }
    }
}

/// Returns the upper end of the last bucket. No value is above it, and the largest value is at most 2 % below it.
fn maximum(histogram: &str) -> String {
    let end = upper_end(&format!("mapKeys({histogram})[-1]"));
    format!("if(empty({histogram}), nan, {end})")
}

/// Returns the middle of the bucket in which the share is reached.
fn percentile(histogram: &str, share: f64) -> String {
    let weights = format!("arrayCumSum(mapValues({histogram}))");
    let place =
        format!("arrayFirstIndex(sum -> sum >= {share:?} * {weights}[-1] - 1e-9, {weights})");
    let value = middle(&format!("mapKeys({histogram})[{place}]"));
    format!("if(empty({histogram}), nan, {value})")
}
