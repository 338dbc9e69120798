//! Traffic.

use crate::store::reads::aggregate::{Aggregate, Better, Fold, Formula, Measure, Unit};
use crate::store::reads::define::{Dimension, Subject, Time};

/// Bytes by source, network and calendar day of the device.
pub(super) static TRAFFIC: Subject = Subject {
    name: "traffic",
    raw: "traffic AS s",
    is_from_devices: true,
    time: Time::Day("day"),
    hourly: None,
    daily: Some("traffic_daily"),
    rollup_join: "",
    lead: None,
    dimensions: TRAFFIC_DIMENSIONS,
    aggregates: TRAFFIC_AGGREGATES,
    measures: TRAFFIC_MEASURES,
};

const TRAFFIC_DIMENSIONS: &[Dimension] = &[
    Dimension::kept("source", "s.source"),
    Dimension::kept("network", "s.network"),
    Dimension::kept("day", "toString(s.day)").converted(),
];

const TRAFFIC_AGGREGATES: &[Aggregate] = &[
    Aggregate {
        name: "tx_bytes",
        fold: Fold::Sum,
        raw: "s.tx_bytes",
    },
    Aggregate {
        name: "rx_bytes",
        fold: Fold::Sum,
        raw: "s.rx_bytes",
    },
    Aggregate {
        name: "requests",
        fold: Fold::Sum,
        raw: "s.requests",
    },
    Aggregate {
        name: "failed_requests",
        fold: Fold::Sum,
        raw: "s.failed_requests",
    },
    Aggregate {
        name: "installs",
        fold: Fold::Distinct,
        raw: "s.install_id",
    },
];

const TRAFFIC_MEASURES: &[Measure] = &[
    Measure {
        name: "bytes",
        unit: Unit::Bytes,
        better: Better::Lower,
        formula: Formula::Plus("tx_bytes", "rx_bytes"),
    },
    Measure {
        name: "tx_bytes",
        unit: Unit::Bytes,
        better: Better::Lower,
        formula: Formula::Is("tx_bytes"),
    },
    Measure {
        name: "rx_bytes",
        unit: Unit::Bytes,
        better: Better::Lower,
        formula: Formula::Is("rx_bytes"),
    },
    Measure {
        name: "requests",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("requests"),
    },
    Measure {
        name: "failed_requests",
        unit: Unit::Count,
        better: Better::Lower,
        formula: Formula::Is("failed_requests"),
    },
    Measure {
        name: "failed_share",
        unit: Unit::Share,
        better: Better::Lower,
        formula: Formula::Ratio("failed_requests", "requests", 1.),
    },
    Measure {
        name: "installs",
        unit: Unit::Count,
        better: Better::Neither,
        formula: Formula::Is("installs"),
    },
    Measure {
        name: "bytes_per_install",
        unit: Unit::Bytes,
        better: Better::Lower,
        formula: Formula::SumOver(["tx_bytes", "rx_bytes"], "installs"),
    },
];
