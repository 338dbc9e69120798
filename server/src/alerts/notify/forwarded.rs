//! Hands announced incidents with their evidence to the queue of the collector to which a project forwards them.

use unjank_database::{ControlError, Incident, IncidentSnapshot};
use unjank_foundation::clock::UnixTime;

use super::Notifier;
use super::message::incident_page;
use crate::forward::{ForwardedIncident, encode_incidents};

impl Notifier {
    /// Forwards incidents that were announced just now, if their project forwards incidents.
    pub(super) async fn forward(&self, project: &str, announced: &[IncidentSnapshot]) {
        let forward = self.access.forward(project);
        if !forward.is_some_and(|forward| forward.document().incidents) {
            return;
        }
        let mut incidents = Vec::new();
        for snapshot in announced {
            match self.control.incident(project, snapshot.id).await {
                Ok(incident) => incidents.push(self.forwarded(incident)),
                Err(ControlError::NotFound) => {}
                Err(error) => {
                    tracing::warn!(%error, incident = %snapshot.id, "failed to read an incident to forward");
                }
            }
        }
        let pieces = encode_incidents(project, &incidents);
        if !pieces.is_empty() {
            self.forward.offer(&project.into(), pieces);
        }
    }

    fn forwarded(&self, incident: Incident) -> ForwardedIncident {
        ForwardedIncident {
            id: incident.id.to_string(),
            rule: incident.rule.to_string(),
            severity: incident.severity.as_str(),
            link: incident_page(&self.public_url, &incident.project, incident.id),
            started_at_us: incident.started_at.as_micros(),
            resolved_at_us: incident.resolved_at.map(UnixTime::as_micros),
            group: incident.group_key.read().unwrap_or_default(),
            evidence: incident.evidence.read().unwrap_or_default(),
            title: incident.title,
            owner: incident.owner,
            summary: incident.summary,
        }
    }
}
