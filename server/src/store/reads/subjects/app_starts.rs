//! App starts and their phases.

use crate::store::reads::aggregate::{Aggregate, Better, Fold, Formula, Measure, Unit};
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

const APP_STARTS_DIMENSIONS: &[Dimension] = &[
    Dimension::kept("kind", "s.kind"),
    Dimension::raw("page", "s.page"),
    Dimension::raw("network", "s.network"),
];

const APP_STARTS_AGGREGATES: &[Aggregate] = &[
    Aggregate {
        name: "count",
        fold: Fold::Sum,
        raw: "1",
    },
    Aggregate {
        name: "sum_ms",
        fold: Fold::Sum,
        raw: "s.duration_ms",
    },
    Aggregate {
        name: "late",
        fold: Fold::Sum,
        raw: "(1) * (s.received_at > s.start + INTERVAL 1 HOUR)",
    },
    Aggregate {
        name: "durations_ms",
        fold: Fold::Histogram { weight: "1" },
        raw: "s.duration_ms",
    },
    Aggregate {
        name: "installs",
        fold: Fold::Distinct,
        raw: "s.install_id",
    },
];

const APP_STARTS_MEASURES: &[Measure] = &[
    Measure {
        name: "count",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("count"),
    },
    Measure {
        name: "installs",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("installs"),
    },
    Measure {
        name: "mean_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Ratio("sum_ms", "count", 1.),
    },
    Measure {
        name: "p50_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("durations_ms", 0.5),
    },
    Measure {
        name: "p75_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("durations_ms", 0.75),
    },
    Measure {
        name: "p90_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("durations_ms", 0.9),
    },
    Measure {
        name: "p95_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("durations_ms", 0.95),
    },
    Measure {
        name: "late_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("late", "count", 1.),
    },
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
    Aggregate {
        name: "count",
        fold: Fold::Sum,
        raw: "1",
    },
    Aggregate {
        name: "sum_ms",
        fold: Fold::Sum,
        raw: "phase_ms",
    },
    Aggregate {
        name: "durations_ms",
        fold: Fold::Histogram { weight: "1" },
        raw: "phase_ms",
    },
    Aggregate {
        name: "installs",
        fold: Fold::Distinct,
        raw: "s.install_id",
    },
];

const START_PHASES_MEASURES: &[Measure] = &[
    Measure {
        name: "count",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("count"),
    },
    Measure {
        name: "installs",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("installs"),
    },
    Measure {
        name: "mean_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Ratio("sum_ms", "count", 1.),
    },
    Measure {
        name: "p50_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("durations_ms", 0.5),
    },
    Measure {
        name: "p75_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("durations_ms", 0.75),
    },
    Measure {
        name: "p95_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("durations_ms", 0.95),
    },
];
