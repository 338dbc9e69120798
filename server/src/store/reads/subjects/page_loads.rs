//! Page loads and their requests.

use crate::store::reads::aggregate::{Aggregate, Better, Fold, Formula, Measure, Unit};
use crate::store::reads::define::{Dimension, Subject, Time};

/// The duration of page loads, in three parts.
pub(super) static PAGE_LOADS: Subject = Subject {
    name: "page_loads",
    raw: "page_loads AS s",
    is_from_devices: true,
    time: Time::Instant("start"),
    hourly: Some("page_loads_hourly"),
    daily: Some("page_loads_daily"),
    rollup_join: "",
    lead: Some("page"),
    dimensions: PAGE_LOADS_DIMENSIONS,
    aggregates: PAGE_LOADS_AGGREGATES,
    measures: PAGE_LOADS_MEASURES,
};

const PAGE_LOADS_DIMENSIONS: &[Dimension] = &[
    Dimension::kept("page", "s.page"),
    Dimension::kept("launch", "s.launch"),
    Dimension::kept("outcome", "s.outcome"),
    Dimension::kept("network", "s.network"),
];

const PAGE_LOADS_AGGREGATES: &[Aggregate] = &[
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
        raw: "s.total_ms / s.sample_rate",
    },
    Aggregate {
        name: "late",
        fold: Fold::Sum,
        raw: "(1 / s.sample_rate) * (s.received_at > s.start + INTERVAL 1 HOUR)",
    },
    Aggregate {
        name: "completed",
        fold: Fold::Sum,
        raw: "if(s.outcome = 'completed', 1 / s.sample_rate, 0)",
    },
    Aggregate {
        name: "t1_ms",
        fold: Fold::Histogram {
            weight: "1 / s.sample_rate",
        },
        raw: "s.t1_ms",
    },
    Aggregate {
        name: "t2_ms",
        fold: Fold::Histogram {
            weight: "1 / s.sample_rate",
        },
        raw: "s.t2_ms",
    },
    Aggregate {
        name: "t3_ms",
        fold: Fold::Histogram {
            weight: "1 / s.sample_rate",
        },
        raw: "s.t3_ms",
    },
    Aggregate {
        name: "totals_ms",
        fold: Fold::Histogram {
            weight: "1 / s.sample_rate",
        },
        raw: "s.total_ms",
    },
    Aggregate {
        name: "installs",
        fold: Fold::Distinct,
        raw: "s.install_id",
    },
];

const PAGE_LOADS_MEASURES: &[Measure] = &[
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
        name: "mean_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Ratio("sum_ms", "count", 1.),
    },
    Measure {
        name: "completed_share",
        unit: Unit::Share,
        better: Better::Higher,
        formula: Formula::Ratio("completed", "count", 1.),
    },
    Measure {
        name: "t1_p50_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("t1_ms", 0.5),
    },
    Measure {
        name: "t1_p75_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("t1_ms", 0.75),
    },
    Measure {
        name: "t1_p95_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("t1_ms", 0.95),
    },
    Measure {
        name: "t2_p50_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("t2_ms", 0.5),
    },
    Measure {
        name: "t2_p75_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("t2_ms", 0.75),
    },
    Measure {
        name: "t2_p95_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("t2_ms", 0.95),
    },
    Measure {
        name: "t3_p50_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("t3_ms", 0.5),
    },
    Measure {
        name: "t3_p75_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("t3_ms", 0.75),
    },
    Measure {
        name: "t3_p95_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("t3_ms", 0.95),
    },
    Measure {
        name: "total_p50_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("totals_ms", 0.5),
    },
    Measure {
        name: "total_p75_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("totals_ms", 0.75),
    },
    Measure {
        name: "total_p95_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("totals_ms", 0.95),
    },
    Measure {
        name: "late_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("late", "count", 1.),
    },
];

/// The network requests of page loads. There is no roll-up for them.
pub(super) static PAGE_REQUESTS: Subject = Subject {
    name: "page_requests",
    raw: "page_loads AS s ARRAY JOIN s.`requests.path` AS path, s.`requests.duration_ms` AS request_ms, s.`requests.offset_ms` AS offset_ms, s.`requests.status` AS http_status",
    is_from_devices: true,
    time: Time::Instant("start"),
    hourly: None,
    daily: None,
    rollup_join: "",
    lead: None,
    dimensions: PAGE_REQUESTS_DIMENSIONS,
    aggregates: PAGE_REQUESTS_AGGREGATES,
    measures: PAGE_REQUESTS_MEASURES,
};

const PAGE_REQUESTS_DIMENSIONS: &[Dimension] = &[
    Dimension::raw("page", "s.page"),
    Dimension::raw("launch", "s.launch"),
    Dimension::raw("outcome", "s.outcome"),
    Dimension::raw("network", "s.network"),
    Dimension::raw("path", "path"),
    Dimension::raw("http_status", "toString(http_status)"),
];

const PAGE_REQUESTS_AGGREGATES: &[Aggregate] = &[
    Aggregate {
        name: "count",
        fold: Fold::Sum,
        raw: "1 / s.sample_rate",
    },
    Aggregate {
        name: "failed",
        fold: Fold::Sum,
        raw: "if(http_status = 0 OR http_status >= 400, 1 / s.sample_rate, 0)",
    },
    Aggregate {
        name: "sum_ms",
        fold: Fold::Sum,
        raw: "request_ms / s.sample_rate",
    },
    Aggregate {
        name: "durations_ms",
        fold: Fold::Histogram {
            weight: "1 / s.sample_rate",
        },
        raw: "request_ms",
    },
    Aggregate {
        name: "offsets_ms",
        fold: Fold::Histogram {
            weight: "1 / s.sample_rate",
        },
        raw: "offset_ms",
    },
    Aggregate {
        name: "installs",
        fold: Fold::Distinct,
        raw: "s.install_id",
    },
];

const PAGE_REQUESTS_MEASURES: &[Measure] = &[
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
        name: "failed_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("failed", "count", 1.),
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
        name: "offset_p50_ms",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        formula: Formula::Percentile("offsets_ms", 0.5),
    },
];
