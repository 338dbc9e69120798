//! A message before it is formatted for a channel, and what all formats share.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use unjank_database::{IncidentSnapshot, Severity};
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::digest::Digest;
use super::signature::hex;

/// The content of a notification, as saved in its body.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Message {
    Incidents(IncidentMessage),
    Digest { digest: Box<Digest> },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IncidentMessage {
    /// `firing` or `resolved`.
    pub status: String,
    pub incidents: Vec<IncidentSnapshot>,
}

/// A message to send.
pub struct OutgoingMessage<'a> {
    pub project: &'a str,
    /// The idempotency key, the same for every attempt.
    pub key: &'a str,
    pub subject: &'a str,
    pub message: &'a Message,
    /// Without a trailing slash.
    pub public_url: &'a str,
    pub now: UnixTime,
}

/// The alert of a test message ends after this time.
const TEST_LASTS: Duration = Duration::from_secs(300);

impl Message {
    /// Returns the message that tests a channel.
    #[must_use]
    pub fn test(project: &str, now: UnixTime) -> Self {
        let labels = [
            ("alertname", "UnjankTest"),
            ("project", project),
            ("severity", "info"),
        ];
        let incident = IncidentSnapshot {
            id: Uuid::nil(),
            rule: Uuid::nil(),
            group_key: "{}".to_owned(),
            title: "Test of this channel".to_owned(),
            severity: Severity::Info,
            owner: String::new(),
            labels: labels
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            summary: "Nothing is wrong: this message tests whether notifications arrive."
                .to_owned(),
            link: String::new(),
            started_at: now,
            resolved_at: Some(now + TEST_LASTS),
        };
        Self::Incidents(IncidentMessage {
            status: "firing".to_owned(),
            incidents: vec![incident],
        })
    }
}

impl OutgoingMessage<'_> {
    /// Returns the URL of the incident's page. A test message has no incident, so its URL is that of the list.
    pub(super) fn link(&self, incident: &IncidentSnapshot) -> String {
        incident_page(self.public_url, self.project, incident.id)
    }

    /// Returns the labels with names that are valid in Prometheus, including name, severity and project.
    pub(super) fn labels(&self, incident: &IncidentSnapshot) -> BTreeMap<String, String> {
        let mut labels: BTreeMap<String, String> = incident
            .labels
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (label_name(name), value.clone()))
            .collect();
        let own = [
            ("alertname", incident.title.as_str()),
            ("severity", incident.severity.as_str()),
            ("project", self.project),
        ];
        for (name, value) in own {
            labels
                .entry(name.to_owned())
                .or_insert_with(|| value.to_owned());
        }
        labels
    }

    pub(super) fn annotations(
        &self,
        incident: &IncidentSnapshot,
    ) -> BTreeMap<&'static str, String> {
        let all = [
            ("title", incident.title.clone()),
            ("summary", incident.summary.clone()),
            ("owner", incident.owner.clone()),
            ("link", self.link(incident)),
        ];
        let all = all.into_iter().filter(|(_, value)| !value.is_empty());
        all.collect()
    }
}

/// Returns the URL of an incident's page, or that of the list.
pub(super) fn incident_page(public_url: &str, project: &str, incident: Uuid) -> String {
    let of_one = if incident.is_nil() {
        String::new()
    } else {
        format!("/{incident}")
    };
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("project", project)
        .finish();
    format!("{public_url}/incidents{of_one}?{query}")
}

fn label_name(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|char| {
            if char.is_ascii_alphanumeric() {
                char
            } else {
                '_'
            }
        })
        .collect();
    match name.chars().next() {
        Some(first) if !first.is_ascii_digit() => name,
        _ => format!("_{name}"),
    }
}

/// Returns a hash of the labels.
pub(super) fn fingerprint(labels: &BTreeMap<String, String>) -> String {
    let digest = Sha256::digest(json!(labels).to_string());
    hex(digest.get(..8).unwrap_or_default())
}

/// RFC 3339.
pub(super) fn time(time: UnixTime) -> Value {
    json!(time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_names_are_valid_in_prometheus() {
        assert_eq!(label_name("device_class"), "device_class");
        assert_eq!(label_name("http.status-code"), "http_status_code");
        assert_eq!(label_name("5g"), "_5g");
        assert_eq!(label_name(""), "_");
    }
}
