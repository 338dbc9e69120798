//! Janks, by the classes of their stacks.

use crate::store::reads::aggregate::{Aggregate, Better, Fold, Formula, Measure, Unit};
use crate::store::reads::define::{Dimension, Subject, Time};

/// Stalls of the main loop.
pub(super) static JANKS: Subject = Subject {
    name: "janks",
    raw: "janks AS s",
    is_from_devices: true,
    time: Time::Instant("start"),
    hourly: Some("janks_hourly"),
    daily: Some("janks_daily"),
    rollup_join: "",
    lead: None,
    dimensions: JANKS_DIMENSIONS,
    aggregates: JANKS_AGGREGATES,
    measures: JANKS_MEASURES,
};

const JANKS_DIMENSIONS: &[Dimension] = &[
    Dimension::kept("kind", "s.kind"),
    Dimension::kept("page", "s.page"),
    Dimension::by_day("foreground", "if(s.foreground, 'true', 'false')").converted(),
    Dimension::by_day("stack_hash", "toString(s.stack_hash)").converted(),
    Dimension::raw("network", "s.network"),
    Dimension::raw("thread", "s.thread"),
    Dimension::class("group_id", "toString(c.group_id)"),
    Dimension::class("category", "c.category"),
    Dimension::class("culprit", "c.culprit"),
    Dimension::class("owner", "c.owner"),
    Dimension::class("title", "c.title"),
    Dimension::class("not_a_cause", "if(c.not_a_cause, 'true', 'false')"),
];

const JANKS_AGGREGATES: &[Aggregate] = &[
    Aggregate {
        name: "count",
        fold: Fold::Sum,
        raw: "1 / s.sample_rate",
    },
    Aggregate {
        name: "samples",
        fold: Fold::Sum,
        raw: "1",
    },
    Aggregate {
        name: "sum_ms",
        fold: Fold::Sum,
        raw: "s.duration_ms / s.sample_rate",
    },
    Aggregate {
        name: "late",
        fold: Fold::Sum,
        raw: "(1 / s.sample_rate) * (s.received_at > s.start + INTERVAL 1 HOUR)",
    },
    Aggregate {
        name: "durations_ms",
        fold: Fold::Histogram {
            weight: "1 / s.sample_rate",
        },
        raw: "s.duration_ms",
    },
    Aggregate {
        name: "installs",
        fold: Fold::Distinct,
        raw: "s.install_id",
    },
    Aggregate {
        name: "sessions",
        fold: Fold::Distinct,
        raw: "s.session_id",
    },
];

const JANKS_MEASURES: &[Measure] = &[
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
        better: Better::Lower,
        formula: Formula::Is("installs"),
    },
    Measure {
        name: "sessions",
        unit: Unit::Count,
        better: Better::Lower,
        formula: Formula::Is("sessions"),
    },
    Measure {
        name: "sum_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Is("sum_ms"),
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
    Measure {
        name: "late_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("late", "count", 1.),
    },
];
