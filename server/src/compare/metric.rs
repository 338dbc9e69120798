//! The metrics that can be compared: a quantity and a statistic of its values, with the direction in which it gets worse.

use serde::{Deserialize, Deserializer, de};

use crate::test_run::{Measurable, Quantity};

/// How many values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statistic {
    /// Weighted: shares of frames by frames, rates by time.
    Mean,
    /// From 1 to 99.
    Percentile(u8),
}

/// A statistic of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric {
    pub quantity: Quantity,
    pub statistic: Statistic,
}

/// The properties of a quantity.
pub(super) struct Nature {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) more_is_worse: bool,
    /// The default absolute tolerance. Budgets may override it.
    pub(super) least_change: f64,
    /// The statistics to compare by default.
    pub(super) usual: &'static [Statistic],
}

const MEAN: &[Statistic] = &[Statistic::Mean];
const MEDIAN: &[Statistic] = &[Statistic::Percentile(50)];
const MEDIAN_AND_TAIL: &[Statistic] = &[Statistic::Percentile(50), Statistic::Percentile(95)];

/// All quantities, in the order of reports.
pub(super) const QUANTITIES: [Quantity; 15] = [
    Quantity::Fps,
    Quantity::SlowShare,
    Quantity::FrozenShare,
    Quantity::JankPerMinute,
    Quantity::Stalls,
    Quantity::StalledMs,
    Quantity::T1Ms,
    Quantity::T2Ms,
    Quantity::T3Ms,
    Quantity::TotalMs,
    Quantity::CpuPercent,
    Quantity::MemoryBytes,
    Quantity::DurationMs,
    Quantity::StartMs,
    Quantity::TrafficBytes,
];

/// Returns the properties of a quantity.
pub(super) fn nature(quantity: Quantity) -> Nature {
    let of = |name, unit, least_change, usual| Nature {
        name,
        unit,
        more_is_worse: quantity != Quantity::Fps,
        least_change,
        usual,
    };
    match quantity {
        Quantity::Fps => of("fps", "fps", 2.0, MEAN),
        Quantity::SlowShare => of("slow_frames_share", "share", 0.01, MEAN),
        Quantity::FrozenShare => of("frozen_frames_share", "share", 0.001, MEAN),
        Quantity::JankPerMinute => of("jank_ms_per_minute", "ms/min", 100.0, MEAN),
        Quantity::Stalls => of("stalls", "per run", 1.0, MEAN),
        Quantity::StalledMs => of("stalled_ms", "ms", 200.0, MEAN),
        Quantity::T1Ms => of("t1_ms", "ms", 10.0, MEDIAN),
        Quantity::T2Ms => of("t2_ms", "ms", 10.0, MEDIAN),
        Quantity::T3Ms => of("t3_ms", "ms", 10.0, MEDIAN),
        Quantity::TotalMs => of("total_ms", "ms", 10.0, MEDIAN_AND_TAIL),
        Quantity::CpuPercent => of("cpu_percent", "%", 2.0, MEAN),
        Quantity::MemoryBytes => of("memory_bytes", "bytes", 1_048_576.0, MEAN),
        Quantity::DurationMs => of("duration_ms", "ms", 1.0, MEDIAN_AND_TAIL),
        Quantity::StartMs => of("start_ms", "ms", 10.0, MEDIAN),
        Quantity::TrafficBytes => of("traffic_bytes", "bytes", 10_240.0, MEAN),
    }
}

impl Metric {
    pub(super) fn nature(self) -> Nature {
        nature(self.quantity)
    }

    /// Returns a label such as `t3_ms p75`.
    #[must_use]
    pub fn label(self) -> String {
        let name = self.nature().name;
        match self.statistic {
            Statistic::Mean => name.to_owned(),
            Statistic::Percentile(percent) => format!("{name} p{percent}"),
        }
    }
}

impl Statistic {
    pub(super) fn label(self) -> String {
        match self {
            Self::Mean => "mean".to_owned(),
            Self::Percentile(percent) => format!("p{percent}"),
        }
    }

    /// Computes the statistic over values with weights. A percentile is always a measured value, never interpolated.
    pub(super) fn compute(self, values: &[(f64, f64)]) -> Option<f64> {
        let all: f64 = values.iter().map(|(_, weight)| weight).sum();
        if all <= 0.0 {
            return None;
        }
        let Self::Percentile(percent) = self else {
            let sum: f64 = values.iter().map(|(value, weight)| value * weight).sum();
            return Some(sum / all);
        };
        let mut sorted = values.to_vec();
        sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut sum = 0.0;
        let found = sorted.iter().find(|(_, weight)| {
            sum += weight;
            // Sums of fractions are inexact.
            sum >= f64::from(percent) / 100.0 * all - 1e-9
        });
        found.or(sorted.last()).map(|(value, _)| *value)
    }
}

/// Whether a quantity can be measured for this kind of thing.
pub(super) fn fits(quantity: Quantity, of: &Measurable) -> bool {
    match of {
        Measurable::Span(_) => quantity == Quantity::DurationMs,
        Measurable::Start(_) => quantity == Quantity::StartMs,
        Measurable::Run => quantity == Quantity::TrafficBytes,
        Measurable::Page(_) => !matches!(
            quantity,
            Quantity::DurationMs | Quantity::StartMs | Quantity::TrafficBytes
        ),
    }
}

/// Deserializes a quantity from its name in a budget file.
pub(super) fn quantity<'de, D: Deserializer<'de>>(from: D) -> Result<Quantity, D::Error> {
    let name = String::deserialize(from)?;
    let known = QUANTITIES.into_iter().find(|one| nature(*one).name == name);
    known.ok_or_else(|| {
        let names = QUANTITIES.map(|one| nature(one).name);
        de::Error::custom(format!(
            "there is no metric `{name}`: use one of {}",
            names.join(", ")
        ))
    })
}

impl<'de> Deserialize<'de> for Statistic {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let percent = || {
            let percent = name.strip_prefix('p')?.parse().ok()?;
            (1..=99).contains(&percent).then_some(percent)
        };
        match name.as_str() {
            "mean" => Ok(Self::Mean),
            _ => percent().map(Self::Percentile).ok_or_else(|| {
                de::Error::custom(format!(
                    "a statistic must be `mean` or `p1` to `p99`, not `{name}`"
                ))
            }),
        }
    }
}
