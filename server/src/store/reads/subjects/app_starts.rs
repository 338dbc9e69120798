//! App starts and their phases.

use crate::store::reads::aggregate::Formula::{Is, Percentile, Ratio};
use crate::store::reads::aggregate::Unit::{Count, Milliseconds, Share};
use crate::store::reads::aggregate::{Aggregate, Measure};
use crate::store::reads::define::{Dimension, Subject, Time};

/// How long the app took to start.
pub(super) static APP_STARTS: Subject = Subject {
    name: "app_starts",
    raw: "app_starts AS s",
    is_from_devices: true,
    time: Time::Instant("start"),
    hourly: Some("app_starts_hourly"),
    daily: Some("app_starts_daily"),
    rollup_join: "",
    lead: None,
    dimensions: APP_STARTS_DIMENSIONS,
    aggregates: APP_STARTS_AGGREGATES,
    measures: APP_STARTS_MEASURES,
};

/// Buckets whose ends are nearest to 5 s, 2 s and 1.5 s: 4,990, 2,007 and 1,491 ms. From these durations on, Android vitals call a cold, a warm and
/// a hot start slow. Other kinds are judged like cold starts.
macro_rules! last_fast_bucket {
    () => {
        "multiIf(s.kind = 'warm', 384, s.kind = 'hot', 369, 430)"
    };
}

const APP_STARTS_DIMENSIONS: &[Dimension] = &[
    Dimension::kept("kind", "s.kind"),
    Dimension::raw("page", "s.page"),
    Dimension::raw("network", "s.network"),
];

const APP_STARTS_AGGREGATES: &[Aggregate] = &[
    Aggregate::sum("count", "1 / s.sample_rate"),
    Aggregate::sum("samples", "1"),
    Aggregate::sum("sum_ms", "s.duration_ms / s.sample_rate"),
    Aggregate::sum(
        "late",
        "(1 / s.sample_rate) * (s.received_at > s.start + INTERVAL 1 HOUR)",
    ),
    Aggregate::sum_of(
        "slow",
        concat!(
            "(1 / s.sample_rate) * (s.duration_ms > pow(1.02, ",
            last_fast_bucket!(),
            "))"
        ),
        concat!(
            "arraySum((bucket, starts) -> if(bucket > ",
            last_fast_bucket!(),
            ", starts, 0), mapKeys(s.durations_ms), mapValues(s.durations_ms))"
        ),
    ),
    Aggregate::histogram("durations_ms", "s.duration_ms", "1 / s.sample_rate"),
    Aggregate::distinct("installs", "s.install_id"),
];

const APP_STARTS_MEASURES: &[Measure] = &[
    Measure::neutral("count", Count, Is("count")),
    Measure::neutral("samples", Count, Is("samples")),
    Measure::neutral("installs", Count, Is("installs")),
    Measure::lower("mean_ms", Milliseconds, Ratio("sum_ms", "count", 1.)),
    Measure::lower("p50_ms", Milliseconds, Percentile("durations_ms", 0.5)),
    Measure::lower("p75_ms", Milliseconds, Percentile("durations_ms", 0.75)),
    Measure::lower("p90_ms", Milliseconds, Percentile("durations_ms", 0.9)),
    Measure::lower("p95_ms", Milliseconds, Percentile("durations_ms", 0.95)),
    Measure::lower("slow_start_share", Share, Ratio("slow", "count", 1.)),
    Measure::lower("late_share", Share, Ratio("late", "count", 1.)),
];

/// The phases of app starts.
pub(super) static START_PHASES: Subject = Subject {
    name: "start_phases",
    raw: "app_starts AS s ARRAY JOIN s.`phases.name` AS phase, s.`phases.duration_ms` AS phase_ms",
    is_from_devices: true,
    time: Time::Instant("start"),
    hourly: None,
    daily: None,
    rollup_join: "",
    lead: None,
    dimensions: START_PHASES_DIMENSIONS,
    aggregates: START_PHASES_AGGREGATES,
    measures: START_PHASES_MEASURES,
};

const START_PHASES_DIMENSIONS: &[Dimension] = &[
    Dimension::raw("kind", "s.kind"),
    Dimension::raw("phase", "phase"),
];

const START_PHASES_AGGREGATES: &[Aggregate] = &[
    Aggregate::sum("count", "1 / s.sample_rate"),
    Aggregate::sum("samples", "1"),
    Aggregate::sum("sum_ms", "phase_ms / s.sample_rate"),
    Aggregate::histogram("durations_ms", "phase_ms", "1 / s.sample_rate"),
    Aggregate::distinct("installs", "s.install_id"),
];

const START_PHASES_MEASURES: &[Measure] = &[
    Measure::neutral("count", Count, Is("count")),
    Measure::neutral("samples", Count, Is("samples")),
    Measure::neutral("installs", Count, Is("installs")),
    Measure::lower("mean_ms", Milliseconds, Ratio("sum_ms", "count", 1.)),
    Measure::lower("p50_ms", Milliseconds, Percentile("durations_ms", 0.5)),
    Measure::lower("p75_ms", Milliseconds, Percentile("durations_ms", 0.75)),
    Measure::lower("p95_ms", Milliseconds, Percentile("durations_ms", 0.95)),
];
