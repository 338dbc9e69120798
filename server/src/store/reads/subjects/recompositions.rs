//! Recompositions.

use crate::store::reads::aggregate::{Aggregate, Better, Fold, Formula, Measure, Unit};
use crate::store::reads::define::{Dimension, Subject, Time};

/// How often UI functions are redrawn.
pub(super) static RECOMPOSITIONS: Subject = Subject {
    name: "recompositions",
    raw: "recompositions AS s",
    is_from_devices: true,
    time: Time::Instant("start"),
    hourly: Some("recompositions_hourly"),
    daily: Some("recompositions_daily"),
    rollup_join: "",
    lead: Some("function"),
    dimensions: RECOMPOSITIONS_DIMENSIONS,
    aggregates: RECOMPOSITIONS_AGGREGATES,
    measures: RECOMPOSITIONS_MEASURES,
};

const RECOMPOSITIONS_DIMENSIONS: &[Dimension] = &[
    Dimension::kept("function", "s.function"),
    Dimension::kept("page", "s.page"),
    Dimension::kept("cause", "s.cause"),
    Dimension::raw("network", "s.network"),
];

const RECOMPOSITIONS_AGGREGATES: &[Aggregate] = &[
    Aggregate {
        name: "count",
        fold: Fold::Sum,
        raw: "s.count / s.sample_rate",
    },
    Aggregate {
        name: "samples",
        fold: Fold::Sum,
        raw: "1",
    },
    Aggregate {
        name: "window_ms",
        fold: Fold::Sum,
        raw: "s.window_ms / s.sample_rate",
    },
    Aggregate {
        name: "late",
        fold: Fold::Sum,
        raw: "(1 / s.sample_rate) * (s.received_at > s.start + INTERVAL 1 HOUR)",
    },
    Aggregate {
        name: "installs",
        fold: Fold::Distinct,
        raw: "s.install_id",
    },
];

const RECOMPOSITIONS_MEASURES: &[Measure] = &[
    Measure {
        name: "count",
        unit: Unit::Count,
        better: Better::Lower,
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
        name: "per_minute",
        unit: Unit::PerMinute,
        better: Better::Lower,
        formula: Formula::Ratio("count", "window_ms", 60000.),
    },
    Measure {
        name: "late_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("late", "count", 1.),
    },
];
