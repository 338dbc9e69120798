//! Janks, by the classes of their stacks.

use crate::store::reads::aggregate::Formula::{Is, Percentile, Ratio};
use crate::store::reads::aggregate::Unit::{Count, Milliseconds, Share};
use crate::store::reads::aggregate::{Aggregate, Measure};
use crate::store::reads::define::{Dimension, Subject, Time};
use crate::store::reads::janks_during_spans::During;

use super::uptime::UPTIME;

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
    DURATION,
    UPTIME,
    Dimension::raw("thread", "s.thread"),
    Dimension::raw("ended", "s.ended"),
    STRATEGY,
    Dimension::during("during_span", During::Span),
    Dimension::during("during_trace", During::Trace),
    Dimension::class("group_id", "toString(c.group_id)"),
    Dimension::class("category", "c.category"),
    Dimension::class("culprit", "c.culprit"),
    Dimension::class("owner", "c.owner"),
    Dimension::class("title", "c.title"),
    Dimension::class("not_a_cause", "if(c.not_a_cause, 'true', 'false')"),
];

/// The duration in steps: Apple calls a stall a hang from 250 ms (a micro hang), 500 ms and 2 s (a severe hang) on, Android an ANR from 5 s on.
const DURATION: Dimension = Dimension::raw(
    "duration",
    "multiIf(s.duration_ms < 250, 'under_250ms', s.duration_ms < 500, '250ms_500ms', s.duration_ms < 2000, '500ms_2s', s.duration_ms < 5000, '2s_5s', 'over_5s')",
);

/// The strategy that reported the stall, such as `5x300ms`: five of 300 ms within its period. Empty if no strategy reported it, as in OpenTelemetry.
const STRATEGY: Dimension = Dimension::raw(
    "strategy",
    "if(s.strategy_count = 0, '', concat(toString(s.strategy_count), 'x', toString(s.strategy_threshold_ms), 'ms'))",
);

const JANKS_AGGREGATES: &[Aggregate] = &[
    Aggregate::sum("count", "1 / s.sample_rate"),
    Aggregate::sum("samples", "1"),
    Aggregate::sum("sum_ms", "s.duration_ms / s.sample_rate"),
    Aggregate::sum(
        "late",
        "(1 / s.sample_rate) * (s.received_at > s.start + INTERVAL 1 HOUR)",
    ),
    Aggregate::histogram("durations_ms", "s.duration_ms", "1 / s.sample_rate"),
    Aggregate::distinct("installs", "s.install_id"),
    Aggregate::distinct("sessions", "s.session_id"),
];

const JANKS_MEASURES: &[Measure] = &[
    Measure::lower("count", Count, Is("count")),
    Measure::neutral("samples", Count, Is("samples")),
    Measure::lower("installs", Count, Is("installs")),
    Measure::lower("sessions", Count, Is("sessions")),
    Measure::lower("sum_ms", Milliseconds, Is("sum_ms")),
    Measure::lower("mean_ms", Milliseconds, Ratio("sum_ms", "count", 1.)),
    Measure::lower("p50_ms", Milliseconds, Percentile("durations_ms", 0.5)),
    Measure::lower("p75_ms", Milliseconds, Percentile("durations_ms", 0.75)),
    Measure::lower("p95_ms", Milliseconds, Percentile("durations_ms", 0.95)),
    Measure::lower("late_share", Share, Ratio("late", "count", 1.)),
];
