//! Spans.

use crate::store::reads::aggregate::{Aggregate, Better, Fold, Formula, Measure, Unit};
use crate::store::reads::define::{Dimension, Subject, Time};

/// The time between two points in the code.
pub(super) static SPANS: Subject = Subject {
    name: "spans",
    raw: "spans AS s",
    is_from_devices: true,
    time: Time::Instant("start"),
    hourly: Some("spans_hourly"),
    daily: Some("spans_daily"),
    rollup_join: "",
    lead: Some("name"),
    dimensions: SPANS_DIMENSIONS,
    aggregates: SPANS_AGGREGATES,
    measures: SPANS_MEASURES,
};

const SPANS_DIMENSIONS: &[Dimension] = &[
    Dimension::kept("name", "s.name"),
    Dimension::kept("kind", "s.kind"),
    Dimension::raw("page", "s.page"),
    Dimension::raw("network", "s.network"),
    Dimension::raw("status", "s.status"),
    Dimension::raw("thread", "s.thread"),
    Dimension::raw("on_main_thread", "if(s.on_main_thread, 'true', 'false')"),
    Dimension::raw("root", "if(s.parent_span_id = 0, 'true', 'false')"),
    Dimension::raw("code_class", "s.code_class"),
    Dimension::raw("code_function", "s.code_function"),
    Dimension::raw("package", PACKAGE),
];

const SPANS_AGGREGATES: &[Aggregate] = &[
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
        name: "sum_us",
        fold: Fold::Sum,
        raw: "s.duration_us / s.sample_rate",
    },
    Aggregate {
        name: "main_thread_us",
        fold: Fold::Sum,
        raw: "if(s.on_main_thread, s.duration_us / s.sample_rate, 0)",
    },
    Aggregate {
        name: "errors",
        fold: Fold::Sum,
        raw: "if(s.status = 'error', 1 / s.sample_rate, 0)",
    },
    Aggregate {
        name: "late",
        fold: Fold::Sum,
        raw: "(1 / s.sample_rate) * (s.received_at > s.start + INTERVAL 1 HOUR)",
    },
    Aggregate {
        name: "durations_us",
        fold: Fold::Histogram {
            weight: "1 / s.sample_rate",
        },
        raw: "s.duration_us",
    },
    Aggregate {
        name: "installs",
        fold: Fold::Distinct,
        raw: "s.install_id",
    },
];

const SPANS_MEASURES: &[Measure] = &[
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
        name: "sum_us",
        unit: Unit::Microseconds,
        better: Better::Neither,
        formula: Formula::Is("sum_us"),
    },
    Measure {
        name: "mean_us",
        unit: Unit::Microseconds,
        better: Better::Lower,
        formula: Formula::Ratio("sum_us", "count", 1.),
    },
    Measure {
        name: "p50_us",
        unit: Unit::Microseconds,
        better: Better::Lower,
        formula: Formula::Percentile("durations_us", 0.5),
    },
    Measure {
        name: "p75_us",
        unit: Unit::Microseconds,
        better: Better::Lower,
        formula: Formula::Percentile("durations_us", 0.75),
    },
    Measure {
        name: "p90_us",
        unit: Unit::Microseconds,
        better: Better::Lower,
        formula: Formula::Percentile("durations_us", 0.9),
    },
    Measure {
        name: "p95_us",
        unit: Unit::Microseconds,
        better: Better::Lower,
        formula: Formula::Percentile("durations_us", 0.95),
    },
    Measure {
        name: "p99_us",
        unit: Unit::Microseconds,
        better: Better::Lower,
        formula: Formula::Percentile("durations_us", 0.99),
    },
    Measure {
        name: "main_thread_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("main_thread_us", "sum_us", 1.),
    },
    Measure {
        name: "error_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("errors", "count", 1.),
    },
    Measure {
        name: "late_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("late", "count", 1.),
    },
];

/// The owner of the code: the first three segments of a Java package, or the crate of a Rust path. It uses only functions that
/// ClickHouse evaluates once per dictionary entry instead of once per row; array functions do not qualify.
pub(in crate::store::reads) const PACKAGE: &str =
    "substringIndex(replaceRegexpOne(s.code_class, '(?s)::.*', ''), '.', 3)";
