//! Recompositions.

use crate::store::reads::aggregate::Formula::{Is, Ratio};
use crate::store::reads::aggregate::Unit::{Count, PerMinute, Share};
use crate::store::reads::aggregate::{Aggregate, Measure};
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
    Aggregate::sum("count", "s.count / s.sample_rate"),
    Aggregate::sum("samples", "1"),
    Aggregate::sum("window_ms", "s.window_ms / s.sample_rate"),
    Aggregate::sum(
        "late",
        "(1 / s.sample_rate) * (s.received_at > s.start + INTERVAL 1 HOUR)",
    ),
    Aggregate::distinct("installs", "s.install_id"),
];

const RECOMPOSITIONS_MEASURES: &[Measure] = &[
    Measure::lower("count", Count, Is("count")),
    Measure::neutral("samples", Count, Is("samples")),
    Measure::neutral("installs", Count, Is("installs")),
    Measure::lower("per_minute", PerMinute, Ratio("count", "window_ms", 60000.)),
    Measure::lower("late_share", Share, Ratio("late", "count", 1.)),
];
