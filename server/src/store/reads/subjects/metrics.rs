//! Metrics.

use crate::store::reads::aggregate::{Aggregate, Better, Fold, Formula, Measure, Unit};
use crate::store::reads::define::{Dimension, Subject, Time};

/// Samples that the monitors take.
pub(super) static METRICS: Subject = Subject {
    name: "metrics",
    raw: "metrics AS s",
    is_from_devices: true,
    time: Time::Instant("time"),
    hourly: Some("metrics_hourly"),
    daily: Some("metrics_daily"),
    rollup_join: "",
    lead: Some("name"),
    dimensions: METRICS_DIMENSIONS,
    aggregates: METRICS_AGGREGATES,
    measures: METRICS_MEASURES,
};

const METRICS_DIMENSIONS: &[Dimension] = &[
    Dimension::kept("name", "s.name"),
    Dimension::kept("page", "s.page"),
    Dimension::kept(
        "uptime",
        "multiIf(s.uptime_ms < 60000, 'under_1m', s.uptime_ms < 300000, '1m_5m', s.uptime_ms < 900000, '5m_15m', s.uptime_ms < 3600000, '15m_1h', 'over_1h')",
    ),
    Dimension::raw("network", "s.network"),
];

const METRICS_AGGREGATES: &[Aggregate] = &[
    Aggregate {
        name: "count",
        fold: Fold::Sum,
        raw: "greatest(s.count, 1) / s.sample_rate",
    },
    Aggregate {
        name: "samples",
        fold: Fold::Sum,
        raw: "1",
    },
    Aggregate {
        name: "sum",
        fold: Fold::Sum,
        raw: "s.value * greatest(s.count, 1) / s.sample_rate",
    },
    Aggregate {
        name: "min",
        fold: Fold::Min,
        raw: "if(s.count > 1, s.min, s.value)",
    },
    Aggregate {
        name: "max",
        fold: Fold::Max,
        raw: "if(s.count > 1, s.max, s.value)",
    },
    Aggregate {
        name: "late",
        fold: Fold::Sum,
        raw: "(1 / s.sample_rate) * (s.received_at > s.time + INTERVAL 1 HOUR)",
    },
    Aggregate {
        name: "values",
        fold: Fold::Histogram {
            weight: "greatest(s.count, 1) / s.sample_rate",
        },
        raw: "s.value",
    },
    Aggregate {
        name: "installs",
        fold: Fold::Distinct,
        raw: "s.install_id",
    },
];

const METRICS_MEASURES: &[Measure] = &[
    Measure {
        name: "count",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("count"),
    },
    Measure {
        name: "samples",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("samples"),
    },
    Measure {
        name: "installs",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("installs"),
    },
    Measure {
        name: "mean",
        unit: Unit::Value,
        better: Better::Neither,
        formula: Formula::Ratio("sum", "count", 1.),
    },
    Measure {
        name: "min",
        unit: Unit::Value,
        better: Better::Neither,
        formula: Formula::Is("min"),
    },
    Measure {
        name: "max",
        unit: Unit::Value,
        better: Better::Neither,
        formula: Formula::Is("max"),
    },
    Measure {
        name: "p50",
        unit: Unit::Value,
        better: Better::Neither,
        formula: Formula::Percentile("values", 0.5),
    },
    Measure {
        name: "p75",
        unit: Unit::Value,
        better: Better::Neither,
        formula: Formula::Percentile("values", 0.75),
    },
    Measure {
        name: "p95",
        unit: Unit::Value,
        better: Better::Neither,
        formula: Formula::Percentile("values", 0.95),
    },
    Measure {
        name: "late_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("late", "count", 1.),
    },
];
