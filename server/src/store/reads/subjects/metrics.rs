//! Metrics.

use crate::store::reads::aggregate::Formula::{Is, Percentile, Ratio};
use crate::store::reads::aggregate::Unit::{Count, Share, Value};
use crate::store::reads::aggregate::{Aggregate, Measure};
use crate::store::reads::define::{Dimension, Subject, Time};

use super::uptime;

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
    Dimension::kept("uptime", uptime::STEP),
    Dimension::raw("network", "s.network"),
    Dimension::raw(
        "since_last",
        "multiIf(s.attributes['since_last_ms'] = '', 'unknown', toUInt64OrZero(s.attributes['since_last_ms']) < 1000, 'under_1s', toUInt64OrZero(s.attributes['since_last_ms']) < 10000, '1s_10s', toUInt64OrZero(s.attributes['since_last_ms']) < 60000, '10s_1m', toUInt64OrZero(s.attributes['since_last_ms']) < 600000, '1m_10m', 'over_10m')",
    ),
];

const METRICS_AGGREGATES: &[Aggregate] = &[
    Aggregate::sum("count", "greatest(s.count, 1) / s.sample_rate"),
    Aggregate::sum("samples", "1"),
    Aggregate::sum("sum", "s.value * greatest(s.count, 1) / s.sample_rate"),
    Aggregate::min("min", "if(s.count > 1, s.min, s.value)"),
    Aggregate::max("max", "if(s.count > 1, s.max, s.value)"),
    Aggregate::sum(
        "late",
        "(1 / s.sample_rate) * (s.received_at > s.time + INTERVAL 1 HOUR)",
    ),
    Aggregate::histogram("values", "s.value", "greatest(s.count, 1) / s.sample_rate"),
    Aggregate::distinct("installs", "s.install_id"),
];

const METRICS_MEASURES: &[Measure] = &[
    Measure::neutral("count", Count, Is("count")),
    Measure::neutral("samples", Count, Is("samples")),
    Measure::neutral("installs", Count, Is("installs")),
    Measure::neutral("sum", Value, Is("sum")),
    Measure::neutral("mean", Value, Ratio("sum", "count", 1.)),
    Measure::neutral("min", Value, Is("min")),
    Measure::neutral("max", Value, Is("max")),
    Measure::neutral("p50", Value, Percentile("values", 0.5)),
    Measure::neutral("p75", Value, Percentile("values", 0.75)),
    Measure::neutral("p95", Value, Percentile("values", 0.95)),
    Measure::lower("late_share", Share, Ratio("late", "count", 1.)),
];
