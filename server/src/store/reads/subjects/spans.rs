//! Spans.

use crate::store::reads::aggregate::Formula::{Is, Maximum, Percentile, Ratio};
use crate::store::reads::aggregate::Unit::{Count, Microseconds, Share};
use crate::store::reads::aggregate::{Aggregate, Measure};
use crate::store::reads::define::{Dimension, Subject, Time};
use crate::store::reads::functions::OfFunction;

use super::requests::{HOST, PATH};
use super::uptime::UPTIME;

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
    Dimension::kept("name", "s.name").of_function(OfFunction::Name),
    Dimension::kept("kind", "s.kind"),
    UPTIME,
    HOST,
    PATH,
    Dimension::raw("page", "s.page"),
    Dimension::raw("network", "s.network"),
    Dimension::raw("status", "s.status"),
    Dimension::raw("thread", "s.thread"),
    Dimension::raw("on_main_thread", "if(s.on_main_thread, 'true', 'false')"),
    Dimension::raw("root", "if(s.parent_span_id = 0, 'true', 'false')"),
    Dimension::raw("code_class", "s.code_class").of_function(OfFunction::Class),
    Dimension::raw("code_function", "s.code_function").of_function(OfFunction::Function),
    Dimension::raw("package", PACKAGE).of_function(OfFunction::Package),
];

const SPANS_AGGREGATES: &[Aggregate] = &[
    Aggregate::sum("count", "1 / s.sample_rate"),
    Aggregate::sum("samples", "1"),
    Aggregate::sum("sum_us", "s.duration_us / s.sample_rate"),
    Aggregate::sum(
        "main_thread_us",
        "if(s.on_main_thread, s.duration_us / s.sample_rate, 0)",
    ),
    Aggregate::sum("errors", "if(s.status = 'error', 1 / s.sample_rate, 0)"),
    Aggregate::sum(
        "late",
        "(1 / s.sample_rate) * (s.received_at > s.start + INTERVAL 1 HOUR)",
    ),
    Aggregate::histogram("durations_us", "s.duration_us", "1 / s.sample_rate"),
    Aggregate::distinct("installs", "s.install_id"),
];

const SPANS_MEASURES: &[Measure] = &[
    Measure::neutral("count", Count, Is("count")),
    Measure::neutral("samples", Count, Is("samples")),
    Measure::neutral("installs", Count, Is("installs")),
    Measure::neutral("sum_us", Microseconds, Is("sum_us")),
    Measure::lower("mean_us", Microseconds, Ratio("sum_us", "count", 1.)),
    Measure::lower("p50_us", Microseconds, Percentile("durations_us", 0.5)),
    Measure::lower("p75_us", Microseconds, Percentile("durations_us", 0.75)),
    Measure::lower("p90_us", Microseconds, Percentile("durations_us", 0.9)),
    Measure::lower("p95_us", Microseconds, Percentile("durations_us", 0.95)),
    Measure::lower("p99_us", Microseconds, Percentile("durations_us", 0.99)),
    // From the last bucket, so that roll-ups have it too.
    Measure::lower("max_us", Microseconds, Maximum("durations_us")),
    Measure::lower(
        "main_thread_share",
        Share,
        Ratio("main_thread_us", "sum_us", 1.),
    ),
    Measure::lower("error_share", Share, Ratio("errors", "count", 1.)),
    Measure::lower("late_share", Share, Ratio("late", "count", 1.)),
];

/// See [`package`](crate::store::reads::functions::package).
const PACKAGE: &str =
    "substringIndex(replaceRegexpOne(s.code_class, '(?s)(?:::|[.]?[{]).*', ''), '.', 3)";
