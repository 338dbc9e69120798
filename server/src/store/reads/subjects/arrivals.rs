//! Arrived and lost events, as counted by devices and by the server.

use crate::store::reads::aggregate::Formula::{Is, Ratio};
use crate::store::reads::aggregate::Unit::{Bytes, Count, Microseconds, Share};
use crate::store::reads::aggregate::{Aggregate, Measure};
use crate::store::reads::define::{Dimension, Subject, Time};

/// Batches by their time of arrival, with the SDKs that sent them.
pub(super) static USAGE: Subject = Subject {
    name: "usage",
    raw: "batches AS s",
    is_from_devices: true,
    time: Time::Instant("received_at"),
    hourly: Some("usage_hourly"),
    daily: Some("usage_daily"),
    rollup_join: "",
    lead: None,
    dimensions: USAGE_DIMENSIONS,
    aggregates: USAGE_AGGREGATES,
    measures: USAGE_MEASURES,
};

const USAGE_DIMENSIONS: &[Dimension] = &[
    Dimension::kept("sdk_name", "s.sdk_name"),
    Dimension::kept("sdk_version", "s.sdk_version"),
];

const USAGE_AGGREGATES: &[Aggregate] = &[
    Aggregate::sum("count", "1"),
    Aggregate::sum("accepted", "s.accepted"),
    Aggregate::sum("rejected", "s.rejected"),
    Aggregate::sum("wire_bytes", "s.wire_bytes"),
    Aggregate::sum("skewed", "abs(s.skew_us) > 30000000"),
    Aggregate::distinct("installs", "s.install_id"),
    Aggregate::distinct("sessions", "s.session_id"),
];

const USAGE_MEASURES: &[Measure] = &[
    Measure::neutral("count", Count, Is("count")),
    Measure::neutral("installs", Count, Is("installs")),
    Measure::neutral("sessions", Count, Is("sessions")),
    Measure::neutral("accepted", Count, Is("accepted")),
    Measure::lower("rejected", Count, Is("rejected")),
    Measure::neutral("wire_bytes", Bytes, Is("wire_bytes")),
    Measure::lower("skewed_share", Share, Ratio("skewed", "count", 1.)),
];

/// The overhead of the SDK.
pub(super) static SDK_HEALTH: Subject = Subject {
    name: "sdk_health",
    raw: "sdk_health AS s",
    is_from_devices: true,
    time: Time::Instant("received_at"),
    hourly: Some("sdk_health_hourly"),
    daily: Some("sdk_health_daily"),
    rollup_join: "",
    lead: None,
    dimensions: SDK_HEALTH_DIMENSIONS,
    aggregates: SDK_HEALTH_AGGREGATES,
    measures: SDK_HEALTH_MEASURES,
};

const SDK_HEALTH_DIMENSIONS: &[Dimension] = &[];

const SDK_HEALTH_AGGREGATES: &[Aggregate] = &[
    Aggregate::sum("count", "1"),
    Aggregate::sum("overhead_us", "s.overhead_us"),
    Aggregate::sum("upload_bytes", "s.upload_bytes"),
    Aggregate::max("queue_bytes", "s.queue_bytes"),
    Aggregate::distinct("installs", "s.install_id"),
];

const SDK_HEALTH_MEASURES: &[Measure] = &[
    Measure::neutral("count", Count, Is("count")),
    Measure::neutral("installs", Count, Is("installs")),
    Measure::lower("overhead_us", Microseconds, Is("overhead_us")),
    Measure::lower(
        "overhead_us_per_install",
        Microseconds,
        Ratio("overhead_us", "installs", 1.),
    ),
    Measure::neutral("upload_bytes", Bytes, Is("upload_bytes")),
    Measure::neutral("queue_bytes", Bytes, Is("queue_bytes")),
];

/// Events that devices dropped, with the reasons.
pub(super) static SDK_DROPS: Subject = Subject {
    name: "sdk_drops",
    raw: "sdk_health AS s ARRAY JOIN s.`dropped.signal` AS signal, s.`dropped.reason` AS reason, s.`dropped.count` AS dropped",
    is_from_devices: true,
    time: Time::Instant("received_at"),
    hourly: Some("sdk_drops_hourly"),
    daily: Some("sdk_drops_daily"),
    rollup_join: "",
    lead: None,
    dimensions: SDK_DROPS_DIMENSIONS,
    aggregates: SDK_DROPS_AGGREGATES,
    measures: SDK_DROPS_MEASURES,
};

const SDK_DROPS_DIMENSIONS: &[Dimension] = &[
    Dimension::kept("signal", "signal"),
    Dimension::kept("reason", "reason"),
];

const SDK_DROPS_AGGREGATES: &[Aggregate] = &[
    Aggregate::sum("count", "dropped"),
    Aggregate::distinct("installs", "s.install_id"),
];

const SDK_DROPS_MEASURES: &[Measure] = &[
    Measure::lower("count", Count, Is("count")),
    Measure::neutral("installs", Count, Is("installs")),
];

/// The outcome of every received event, by the hour of its arrival.
pub(super) static OUTCOMES: Subject = Subject {
    name: "outcomes",
    raw: "outcomes AS s",
    is_from_devices: false,
    time: Time::Hour("hour"),
    hourly: None,
    daily: None,
    rollup_join: "",
    lead: None,
    dimensions: OUTCOMES_DIMENSIONS,
    aggregates: OUTCOMES_AGGREGATES,
    measures: OUTCOMES_MEASURES,
};

const OUTCOMES_DIMENSIONS: &[Dimension] = &[
    Dimension::raw("signal", "s.signal"),
    Dimension::raw("outcome", "s.outcome"),
    Dimension::raw("reason", "s.reason"),
];

const OUTCOMES_AGGREGATES: &[Aggregate] = &[Aggregate::sum("count", "s.count")];

const OUTCOMES_MEASURES: &[Measure] = &[Measure::neutral("count", Count, Is("count"))];
