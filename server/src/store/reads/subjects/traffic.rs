//! Traffic.

use crate::store::reads::aggregate::Formula::{Is, Plus, Ratio, SumOver};
use crate::store::reads::aggregate::Unit::{Bytes, Count, Share};
use crate::store::reads::aggregate::{Aggregate, Measure};
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
    Aggregate::sum("tx_bytes", "s.tx_bytes"),
    Aggregate::sum("rx_bytes", "s.rx_bytes"),
    Aggregate::sum("requests", "s.requests"),
    Aggregate::sum("failed_requests", "s.failed_requests"),
    Aggregate::distinct("installs", "s.install_id"),
];

const TRAFFIC_MEASURES: &[Measure] = &[
    Measure::lower("bytes", Bytes, Plus("tx_bytes", "rx_bytes")),
    Measure::lower("tx_bytes", Bytes, Is("tx_bytes")),
    Measure::lower("rx_bytes", Bytes, Is("rx_bytes")),
    Measure::neutral("requests", Count, Is("requests")),
    Measure::lower("failed_requests", Count, Is("failed_requests")),
    Measure::lower(
        "failed_share",
        Share,
        Ratio("failed_requests", "requests", 1.),
    ),
    Measure::neutral("installs", Count, Is("installs")),
    Measure::lower(
        "bytes_per_install",
        Bytes,
        SumOver(["tx_bytes", "rx_bytes"], "installs"),
    ),
];
