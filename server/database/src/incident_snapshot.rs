//! An incident as a notification records it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::backend::Row;
use super::channels::{Channel, Severity};
use super::error::ControlError;

/// A snapshot of an incident, saved in the body of a notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncidentSnapshot {
    pub id: Uuid,
    pub rule: Uuid,
    pub group_key: String,
    pub title: String,
    pub severity: Severity,
    pub owner: String,
    pub labels: BTreeMap<String, String>,
    pub summary: String,
    pub link: String,
    pub started_at: UnixTime,
    pub resolved_at: Option<UnixTime>,
}

impl IncidentSnapshot {
    pub(super) fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            rule: row.id("rule")?,
            group_key: row.get("group_key")?,
            title: row.get("title")?,
            severity: row.parsed("severity")?,
            owner: row.get("owner")?,
            labels: row.json("labels")?,
            summary: row.get("summary")?,
            link: row.get("link")?,
            started_at: row.get("started_at")?,
            resolved_at: row.get("resolved_at")?,
        })
    }

    pub(super) fn is_for(&self, channel: &Channel) -> bool {
        self.severity >= channel.fields.least_severity
    }
}
