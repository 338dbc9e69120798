//! Mutes: periods in which a project, a rule or a group of a rule opens no incidents.

use std::time::Duration;

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, values};
use super::change::{Change, Entry, new_id};
use super::checks;
use super::error::ControlError;
use super::json_text::JsonText;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mute {
    pub id: Uuid,
    pub project: String,
    /// `None`: all rules of the project.
    pub rule: Option<Uuid>,
    /// `None`: all groups.
    pub group_key: Option<JsonText>,
    pub starts_at: UnixTime,
    pub ends_at: UnixTime,
    pub reason: String,
    pub created_by: String,
    pub created_at: UnixTime,
}

impl Mute {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            project: row.get("project")?,
            rule: row.maybe_id("rule")?,
            group_key: JsonText::from_optional_column(row, "group_key")?,
            starts_at: row.get("starts_at")?,
            ends_at: row.get("ends_at")?,
            reason: row.get("reason")?,
            created_by: row.get("created_by")?,
            created_at: row.get("created_at")?,
        })
    }

    #[must_use]
    pub fn holds_at(&self, now: UnixTime) -> bool {
        (self.starts_at..self.ends_at).contains(&now)
    }

    /// Whether the mute covers a group of a rule.
    #[must_use]
    pub fn concerns(&self, rule: Uuid, group_key: &JsonText) -> bool {
        self.rule.is_none_or(|muted| muted == rule)
            && self.group_key.as_ref().is_none_or(|one| one == group_key)
    }
}

#[derive(Clone, Debug)]
pub struct NewMute {
    pub project: String,
    pub rule: Option<Uuid>,
    pub group_key: Option<JsonText>,
    pub starts_at: UnixTime,
    pub ends_at: UnixTime,
    pub reason: String,
}

const LONGEST: Duration = Duration::from_secs(366 * 86_400);

const INSERT: &str = "
    INSERT INTO mutes (id, project, rule, group_key, starts_at, ends_at, reason, created_by, created_at)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9
    WHERE $10 = ''
      OR EXISTS (SELECT 1 FROM alert_rules WHERE id = $10 AND project = $2 AND deleted_at IS NULL)
    RETURNING id, project, rule, group_key, starts_at, ends_at, reason, created_by, created_at";
const LIST: &str = "
    SELECT id, project, rule, group_key, starts_at, ends_at, reason, created_by, created_at
    FROM mutes
    WHERE project = $1
      AND ends_at > $2
    ORDER BY starts_at, id";
const END: &str = "UPDATE mutes SET ends_at = $3 WHERE project = $1 AND id = $2 AND ends_at > $3";

impl Control {
    pub async fn create_mute(
        &self,
        new: NewMute,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Mute, ControlError> {
        checks::name(&new.reason)?;
        let length = new.ends_at.since(new.starts_at);
        if length.is_zero() || length > LONGEST || new.ends_at <= at {
            return Err(checks::invalid(
                "a mute must end in the future, after its start and within a year of it",
            ));
        }
        let mut change = Change::begin(self, actor, at).await?;
        let values = values![
            new_id(at),
            new.project.as_str(),
            new.rule,
            new.group_key,
            new.starts_at,
            new.ends_at,
            new.reason.as_str(),
            actor.to_string(),
            at,
            new.rule.map(|rule| rule.to_string()).unwrap_or_default(),
        ];
        let inserted = change.row(INSERT, values).await?;
        let mute = Mute::read(&inserted.ok_or(ControlError::NotFound)?)?;
        change
            .commit(Entry {
                action: Action::MuteCreated,
                project: Some(&mute.project),
                subject: &mute.id.to_string(),
                detail: json!({"rule": mute.rule, "ends_at": mute.ends_at, "reason": mute.reason}),
            })
            .await?;
        Ok(mute)
    }

    /// Returns the mutes that have not ended.
    pub async fn mutes(&self, project: &str, now: UnixTime) -> Result<Vec<Mute>, ControlError> {
        self.records(LIST, values![project, now], Mute::read).await
    }

    /// Ends a mute now.
    pub async fn end_mute(
        &self,
        project: &str,
        id: Uuid,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let object = (project, id);
        self.change_object(END, Action::MuteEnded, object, actor, at)
            .await
    }
}
