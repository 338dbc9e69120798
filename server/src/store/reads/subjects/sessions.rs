//! Sessions, and how many of them had an ANR.

use crate::store::reads::aggregate::Formula::{Is, Ratio};
use crate::store::reads::aggregate::Unit::{Count, Share};
use crate::store::reads::aggregate::{Aggregate, Measure, OtherSignal};
use crate::store::reads::define::{Subject, Time};

/// The sessions that sent data, by the time of arrival of their batches.
pub(super) static SESSIONS: Subject = Subject {
    name: "sessions",
    raw: "batches AS s",
    is_from_devices: true,
    time: Time::Instant("received_at"),
    hourly: Some("usage_hourly"),
    daily: Some("usage_daily"),
    rollup_join: "",
    lead: None,
    dimensions: &[],
    aggregates: SESSIONS_AGGREGATES,
    measures: SESSIONS_MEASURES,
};

/// The same sessions as *Sessions with an ANR* on the overview.
static WITH_ANR: OtherSignal = OtherSignal {
    signal: "janks",
    aggregate: "sessions",
    filters: &[("kind", "anr"), ("not_a_cause", "false")],
};

const SESSIONS_AGGREGATES: &[Aggregate] = &[
    Aggregate::distinct("sessions", "s.session_id"),
    Aggregate::distinct("installs", "s.install_id"),
    Aggregate::of_other("anr_sessions", &WITH_ANR),
];

const SESSIONS_MEASURES: &[Measure] = &[
    Measure::neutral("count", Count, Is("sessions")),
    Measure::neutral("samples", Count, Is("sessions")),
    Measure::neutral("installs", Count, Is("installs")),
    Measure::lower("anr_sessions", Count, Is("anr_sessions")),
    Measure::lower("anr_share", Share, Ratio("anr_sessions", "sessions", 1.)),
];
