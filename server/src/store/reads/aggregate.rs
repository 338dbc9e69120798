//! Measures, and the aggregates they are computed from.

/// What folds many values into one. Roll-ups keep the folded state under the aggregate's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    Sum,
    Min,
    Max,
    /// Weights by bucket: bucket b holds (1.02^(b-1), 1.02^b], -2000 what is not above zero.
    Histogram,
    /// Weights by the lower bound that the device named.
    Bounds,
    /// How many different ones.
    Distinct,
}

/// Something that adds up, from a raw row or from a row of a roll-up.
#[derive(Clone, Copy, Debug)]
pub struct Aggregate {
    /// Its column in roll-ups.
    pub name: &'static str,
    pub fold: Fold,
    /// What it folds of a raw row; of a histogram, with a weight behind the `@`.
    pub raw: &'static str,
}

impl Aggregate {
    /// The fold of raw rows.
    pub(super) fn of_raw(&self) -> String {
        let raw = self.raw;
        match self.fold {
            Fold::Sum => format!("toFloat64(sum({raw}))"),
            Fold::Min => format!("toFloat64(min({raw}))"),
            Fold::Max => format!("toFloat64(max({raw}))"),
            Fold::Distinct => format!("toFloat64(uniqCombined64({raw}))"),
            Fold::Bounds => format!("sumMap({raw})"),
            Fold::Histogram => {
                let (value, weight) = raw.split_once('@').unwrap_or((raw, "1."));
                // NULL is what was not measured: it has no bucket.
                format!(
                    "sumMap(if(isNull({value}), CAST(map(), 'Map(Int16, Float64)'), map({}, toFloat64({weight}))))",
                    bucket(value)
                )
            }
        }
    }

    /// What a source of several answers for its rows.
    pub(super) fn state_of_raw(&self) -> String {
        match self.fold {
            Fold::Distinct => format!("uniqCombined64State(12)({})", self.raw),
            _ => self.of_raw(),
        }
    }

    pub(super) fn state_of_rollup(&self) -> String {
        let name = self.name;
        match self.fold {
            Fold::Distinct => format!("uniqCombined64MergeState(12)(s.`{name}`)"),
            Fold::Sum => format!("toFloat64(sum(s.`{name}`))"),
            _ => self.of_rollup(),
        }
    }

    /// The fold of what several sources answered.
    pub(super) fn of_parts(&self) -> String {
        let state = format!("`a_{}`", self.name);
        match self.fold {
            Fold::Sum => format!("sum({state})"),
            Fold::Min => format!("min({state})"),
            Fold::Max => format!("max({state})"),
            Fold::Distinct => format!("toFloat64(uniqCombined64Merge(12)({state}))"),
            Fold::Bounds | Fold::Histogram => format!("sumMap({state})"),
        }
    }

    /// The fold of a roll-up's rows.
    pub(super) fn of_rollup(&self) -> String {
        let name = self.name;
        match self.fold {
            Fold::Sum => format!("sum(s.`{name}`)"),
            Fold::Min => format!("toFloat64(min(s.`{name}`))"),
            Fold::Max => format!("toFloat64(max(s.`{name}`))"),
            Fold::Distinct => format!("toFloat64(uniqCombined64Merge(12)(s.`{name}`))"),
            Fold::Bounds | Fold::Histogram => format!("sumMap(s.`{name}`)"),
        }
    }
}

/// The bucket of a value, as the roll-ups' views compute it.
fn bucket(value: &str) -> String {
    format!(
        "if(assumeNotNull({value}) > 0, toInt16(ceil(log(assumeNotNull({value})) / log(1.02))), toInt16(-2000))"
    )
}

/// How a number is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Count,
    Microseconds,
    Milliseconds,
    Bytes,
    /// 0 to 1.
    Share,
    PerSecond,
    PerMinute,
    /// Of the metric's own unit.
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

/// Which direction is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Lower,
    Higher,
    Neither,
}

impl Better {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
            Self::Neither => "none",
        }
    }
}

/// A number that can be asked for.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    pub name: &'static str,
    pub unit: Unit,
    pub better: Better,
    pub formula: Formula,
}

/// How a measure follows from aggregates.
#[derive(Clone, Copy, Debug)]
pub enum Formula {
    Is(&'static str),
    /// The first over the second, times the third.
    Ratio(&'static str, &'static str, f64),
    /// The sum of the first two over the third.
    SumOver([&'static str; 2], &'static str),
    Plus(&'static str, &'static str),
    /// The value below which this share of a histogram lies.
    Percentile(&'static str, f64),
}

impl Formula {
    /// The aggregates it needs.
    pub(super) fn needs(&self) -> Vec<&'static str> {
        match *self {
            Self::Is(one) | Self::Percentile(one, _) => vec![one],
            Self::Ratio(above, below, _) => vec![above, below],
            Self::SumOver([first, second], below) => vec![first, second, below],
            Self::Plus(first, second) => vec![first, second],
        }
    }

    /// The measure over the aggregates of a subquery; NaN where nothing was measured.
    pub(super) fn sql(&self) -> String {
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
            Self::Plus(first, second) => format!("({} + {})", column(first), column(second)),
            Self::Percentile(histogram, share) => percentile(&column(histogram), *share),
        }
    }
}

/// The middle of the bucket in which the share is reached, by relative error: 2·1.02^b / (1.02 + 1), so within 1 % of the value.
fn percentile(histogram: &str, share: f64) -> String {
    let weights = format!("arrayCumSum(mapValues({histogram}))");
    let place =
        format!("arrayFirstIndex(sum -> sum >= {share:?} * {weights}[-1] - 1e-9, {weights})");
    format!(
        "if(empty({histogram}), nan, \
         if(mapKeys({histogram})[{place}] = -2000, 0., 2 * pow(1.02, mapKeys({histogram})[{place}]) / 2.02))"
    )
}
