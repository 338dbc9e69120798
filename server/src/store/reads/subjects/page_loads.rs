//! Page loads and their requests.

use crate::store::reads::aggregate::Formula::{Is, Percentile, Ratio};
use crate::store::reads::aggregate::Unit::{Count, Milliseconds, Share};
use crate::store::reads::aggregate::{Aggregate, Measure};
use crate::store::reads::define::{Dimension, Subject, Time};

use super::uptime::UPTIME;

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
    UPTIME,
];

const PAGE_LOADS_AGGREGATES: &[Aggregate] = &[
    Aggregate::sum("count", "1 / s.sample_rate"),
    Aggregate::sum("samples", "1"),
    Aggregate::sum("sum_ms", "s.total_ms / s.sample_rate"),
    Aggregate::sum(
        "late",
        "(1 / s.sample_rate) * (s.received_at > s.start + INTERVAL 1 HOUR)",
    ),
    Aggregate::sum(
        "completed",
        "if(s.outcome = 'completed', 1 / s.sample_rate, 0)",
    ),
    Aggregate::histogram("t1_ms", "s.t1_ms", "1 / s.sample_rate"),
    Aggregate::histogram("t2_ms", "s.t2_ms", "1 / s.sample_rate"),
    Aggregate::histogram("t3_ms", "s.t3_ms", "1 / s.sample_rate"),
    Aggregate::histogram("totals_ms", "s.total_ms", "1 / s.sample_rate"),
    Aggregate::distinct("installs", "s.install_id"),
];

const PAGE_LOADS_MEASURES: &[Measure] = &[
    Measure::neutral("count", Count, Is("count")),
    Measure::neutral("samples", Count, Is("samples")),
    Measure::neutral("installs", Count, Is("installs")),
    Measure::lower("mean_ms", Milliseconds, Ratio("sum_ms", "count", 1.)),
    Measure::higher("completed_share", Share, Ratio("completed", "count", 1.)),
    Measure::lower("t1_p50_ms", Milliseconds, Percentile("t1_ms", 0.5)),
    Measure::lower("t1_p75_ms", Milliseconds, Percentile("t1_ms", 0.75)),
    Measure::lower("t1_p95_ms", Milliseconds, Percentile("t1_ms", 0.95)),
    Measure::lower("t2_p50_ms", Milliseconds, Percentile("t2_ms", 0.5)),
    Measure::lower("t2_p75_ms", Milliseconds, Percentile("t2_ms", 0.75)),
    Measure::lower("t2_p95_ms", Milliseconds, Percentile("t2_ms", 0.95)),
    Measure::lower("t3_p50_ms", Milliseconds, Percentile("t3_ms", 0.5)),
    Measure::lower("t3_p75_ms", Milliseconds, Percentile("t3_ms", 0.75)),
    Measure::lower("t3_p95_ms", Milliseconds, Percentile("t3_ms", 0.95)),
    Measure::lower("total_p50_ms", Milliseconds, Percentile("totals_ms", 0.5)),
    Measure::lower("total_p75_ms", Milliseconds, Percentile("totals_ms", 0.75)),
    Measure::lower("total_p95_ms", Milliseconds, Percentile("totals_ms", 0.95)),
    Measure::lower("late_share", Share, Ratio("late", "count", 1.)),
];

/// The network requests of page loads. They have no roll-up.
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
    Aggregate::sum("count", "1 / s.sample_rate"),
    Aggregate::sum(
        "failed",
        "if(http_status = 0 OR http_status >= 400, 1 / s.sample_rate, 0)",
    ),
    Aggregate::sum("sum_ms", "request_ms / s.sample_rate"),
    Aggregate::histogram("durations_ms", "request_ms", "1 / s.sample_rate"),
    Aggregate::histogram("offsets_ms", "offset_ms", "1 / s.sample_rate"),
    Aggregate::distinct("installs", "s.install_id"),
];

const PAGE_REQUESTS_MEASURES: &[Measure] = &[
    Measure::neutral("count", Count, Is("count")),
    Measure::neutral("installs", Count, Is("installs")),
    Measure::lower("failed_share", Share, Ratio("failed", "count", 1.)),
    Measure::lower("mean_ms", Milliseconds, Ratio("sum_ms", "count", 1.)),
    Measure::lower("p50_ms", Milliseconds, Percentile("durations_ms", 0.5)),
    Measure::lower("p75_ms", Milliseconds, Percentile("durations_ms", 0.75)),
    Measure::lower("p95_ms", Milliseconds, Percentile("durations_ms", 0.95)),
    Measure::lower("offset_p50_ms", Milliseconds, Percentile("offsets_ms", 0.5)),
];
