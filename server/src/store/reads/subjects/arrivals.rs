//! What arrived and what was lost, as counted by devices and by the server.

use crate::store::reads::aggregate::{Aggregate, Better, Fold, Formula, Measure, Unit};
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
    Aggregate {
        name: "count",
        fold: Fold::Sum,
        raw: "1",
    },
    Aggregate {
        name: "accepted",
        fold: Fold::Sum,
        raw: "s.accepted",
    },
    Aggregate {
        name: "rejected",
        fold: Fold::Sum,
        raw: "s.rejected",
    },
    Aggregate {
        name: "wire_bytes",
        fold: Fold::Sum,
        raw: "s.wire_bytes",
    },
    Aggregate {
        name: "skewed",
        fold: Fold::Sum,
        raw: "abs(s.skew_us) > 30000000",
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

const USAGE_MEASURES: &[Measure] = &[
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
        name: "sessions",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("sessions"),
    },
    Measure {
        name: "accepted",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("accepted"),
    },
    Measure {
        name: "rejected",
        unit: Unit::Count,
        better: Better::Lower,
        formula: Formula::Is("rejected"),
    },
    Measure {
        name: "wire_bytes",
        unit: Unit::Bytes,
        better: Better::Neither,
        formula: Formula::Is("wire_bytes"),
    },
    Measure {
        name: "skewed_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("skewed", "count", 1.),
    },
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
    Aggregate {
        name: "count",
        fold: Fold::Sum,
        raw: "1",
    },
    Aggregate {
        name: "overhead_us",
        fold: Fold::Sum,
        raw: "s.overhead_us",
    },
    Aggregate {
        name: "upload_bytes",
        fold: Fold::Sum,
        raw: "s.upload_bytes",
    },
    Aggregate {
        name: "queue_bytes",
        fold: Fold::Max,
        raw: "s.queue_bytes",
    },
    Aggregate {
        name: "installs",
        fold: Fold::Distinct,
        raw: "s.install_id",
    },
];

const SDK_HEALTH_MEASURES: &[Measure] = &[
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
        name: "overhead_us",
        unit: Unit::Microseconds,
        better: Better::Lower,
        formula: Formula::Is("overhead_us"),
    },
    Measure {
        name: "overhead_us_per_install",
        unit: Unit::Microseconds,
        better: Better::Lower,
        formula: Formula::Ratio("overhead_us", "installs", 1.),
    },
    Measure {
        name: "upload_bytes",
        unit: Unit::Bytes,
        better: Better::Neither,
        formula: Formula::Is("upload_bytes"),
    },
    Measure {
        name: "queue_bytes",
        unit: Unit::Bytes,
        better: Better::Neither,
        formula: Formula::Is("queue_bytes"),
    },
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
    Aggregate {
        name: "count",
        fold: Fold::Sum,
        raw: "dropped",
    },
    Aggregate {
        name: "installs",
        fold: Fold::Distinct,
        raw: "s.install_id",
    },
];

const SDK_DROPS_MEASURES: &[Measure] = &[
    Measure {
        name: "count",
        unit: Unit::Count,
        better: Better::Lower,
        formula: Formula::Is("count"),
    },
    Measure {
        name: "installs",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("installs"),
    },
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

const OUTCOMES_AGGREGATES: &[Aggregate] = &[Aggregate {
    name: "count",
    fold: Fold::Sum,
    raw: "s.count",
}];

const OUTCOMES_MEASURES: &[Measure] = &[Measure {
    name: "count",
    unit: Unit::Count,
    better: Better::Neither,
    formula: Formula::Is("count"),
}];
