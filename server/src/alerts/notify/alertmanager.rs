//! Pushes alerts to an Alertmanager, which forgets alerts that are not repeated. Each firing alert carries an end time and is sent
//! again before it.

use std::time::Duration;

use serde_json::{Value, json};

use super::message::{Message, OutgoingMessage, time};

/// How long an Alertmanager keeps a firing alert that is not repeated. If this server is down for longer, its alerts resolve there
/// and fire again once it is back.
pub(super) const LIFETIME: Duration = Duration::from_secs(1_800);
/// How often alerts are repeated.
pub(super) const REFRESH: Duration = Duration::from_secs(300);

/// The body of `POST /api/v2/alerts`.
pub(super) fn body(parcel: &OutgoingMessage<'_>) -> Value {
    let Message::Incidents(message) = parcel.message else {
        return json!([]);
    };
    let alerts = message.incidents.iter().map(|incident| {
        json!({
            "labels": parcel.labels(incident), "annotations": parcel.annotations(incident),
            "startsAt": time(incident.started_at),
            "endsAt": time(incident.resolved_at.unwrap_or(parcel.now + LIFETIME)),
            "generatorURL": parcel.link(incident),
        })
    });
    alerts.collect()
}
