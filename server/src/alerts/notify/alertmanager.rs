//! Alerts pushed to an Alertmanager, which forgets what it does not hear again: each firing alert says until when it is to be
//! believed, and is sent again before that.

use serde_json::{Value, json};

use super::SECOND;
use super::message::{Message, Parcel, time};

/// How long an Alertmanager believes that an alert fires when it hears nothing more: when this server is gone for longer, all its
/// alerts are over there, and come back with it.
const BELIEVED: i64 = 1_800 * SECOND;
/// How often it hears of what still fires.
pub(super) const REFRESH: i64 = 300 * SECOND;

/// The body of `POST /api/v2/alerts`.
pub(super) fn body(parcel: &Parcel<'_>) -> Value {
    let Message::Incidents(told) = parcel.message else {
        return json!([]);
    };
    let alerts = told.incidents.iter().map(|incident| {
        json!({
            "labels": parcel.labels(incident), "annotations": parcel.annotations(incident),
            "startsAt": time(incident.started_at),
            "endsAt": time(incident.resolved_at.unwrap_or(parcel.now + BELIEVED)),
            "generatorURL": parcel.link(incident),
        })
    });
    alerts.collect()
}
