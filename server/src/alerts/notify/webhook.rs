//! Webhooks in the format of Alertmanager (version 4), which common receivers of alerts support. The digest is sent as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use unjank_database::{Channel, IncidentSnapshot};

use super::message::{IncidentMessage, Message, OutgoingMessage, fingerprint, time};

/// The `endsAt` that Alertmanager sends for a firing alert.
const NOT_YET: &str = "0001-01-01T00:00:00Z";

pub(super) fn body(channel: &Channel, parcel: &OutgoingMessage<'_>) -> Value {
    match parcel.message {
        Message::Incidents(message) => alerts(channel, parcel, message),
        Message::Digest { digest } => json!({
            "kind": "digest", "subject": parcel.subject, "externalURL": parcel.public_url, "digest": digest,
        }),
    }
}

fn alerts(channel: &Channel, parcel: &OutgoingMessage<'_>, message: &IncidentMessage) -> Value {
    let labels: Vec<_> = message
        .incidents
        .iter()
        .map(|one| parcel.labels(one))
        .collect();
    let annotations: Vec<_> = message
        .incidents
        .iter()
        .map(|one| parcel.annotations(one))
        .collect();
    let each = message.incidents.iter().zip(&labels).zip(&annotations);
    let alerts: Vec<_> = each
        .map(|((incident, labels), annotations)| {
            json!({
                "status": message.status, "labels": labels, "annotations": annotations,
                "startsAt": time(incident.started_at), "endsAt": ends_at(message, incident),
                "generatorURL": parcel.link(incident), "fingerprint": fingerprint(labels),
            })
        })
        .collect();
    let common = in_all(&labels);
    let group = ["alertname", "project"].map(|name| (name, common.get(name)));
    let group: BTreeMap<_, _> = group
        .into_iter()
        .filter(|(_, value)| value.is_some())
        .collect();
    let rule = message.incidents.first().map(|one| one.rule.to_string());
    json!({
        "version": "4", "groupKey": format!("unjank/{}/{}", parcel.project, rule.unwrap_or_default()),
        "truncatedAlerts": 0, "status": message.status, "receiver": channel.fields.name,
        "groupLabels": group, "commonLabels": common, "commonAnnotations": in_all(&annotations),
        "externalURL": parcel.public_url, "alerts": alerts,
    })
}

fn ends_at(message: &IncidentMessage, incident: &IncidentSnapshot) -> Value {
    match incident.resolved_at {
        Some(at) if message.status == "resolved" => time(at),
        _ => json!(NOT_YET),
    }
}

/// Returns the entries that are the same in all maps.
fn in_all<K: Ord + Clone>(all: &[BTreeMap<K, String>]) -> BTreeMap<K, String> {
    let Some((first, others)) = all.split_first() else {
        return BTreeMap::new();
    };
    let mut common = first.clone();
    common.retain(|name, value| others.iter().all(|one| one.get(name) == Some(value)));
    common
}
