//! Alert rules. A rule is a document with a revision, which counts its saves.

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

/// A rule, and the result of its latest evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertRule {
    pub id: Uuid,
    pub project: String,
    pub revision: i64,
    /// JSON.
    pub document: JsonText,
    pub enabled: bool,
    pub created_at: UnixTime,
    pub updated_at: UnixTime,
    pub updated_by: String,
    pub evaluated_at: Option<UnixTime>,
    /// `ok`, `pending`, `firing`, `no_data` or `failed`.
    pub outcome: Option<String>,
    pub last_error: Option<String>,
}

impl AlertRule {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            project: row.get("project")?,
            revision: row.get("revision")?,
            document: JsonText::from_column(row, "document")?,
            enabled: row.get("enabled")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
            updated_by: row.get("updated_by")?,
            evaluated_at: row.get("evaluated_at")?,
            outcome: row.get("outcome")?,
            last_error: row.get("error")?,
        })
    }
}

/// The new content of a rule.
#[derive(Clone, Debug)]
pub struct RuleText {
    pub document: JsonText,
    pub name: String,
    pub enabled: bool,
    /// Why this save ends open incidents. `None`: they stay open.
    pub ends: Option<&'static str>,
}

const MAX_TEXT_BYTES: usize = 64 * 1024;
/// More rules would take longer than a minute to evaluate.
const MOST_RULES: i64 = 500;

macro_rules! rules_where {
    ($rest:literal) => {
        concat!(
            "
    SELECT r.id, r.project, r.revision, r.document, r.enabled, r.created_at, r.updated_at, r.updated_by,
        e.evaluated_at, e.outcome, e.error
    FROM alert_rules AS r
    LEFT JOIN alert_evaluations AS e ON e.rule = r.id
    WHERE r.deleted_at IS NULL ",
            $rest
        )
    };
}

const INSERT: &str = "
    INSERT INTO alert_rules (id, project, revision, document, enabled, created_at, updated_at, updated_by)
    VALUES ($1, $2, 1, $3, $4, $5, $5, $6)";
const COUNT: &str =
    "SELECT count(*) AS rules FROM alert_rules WHERE project = $1 AND deleted_at IS NULL";
const UPDATE: &str = "
    UPDATE alert_rules
    SET revision = revision + 1, document = $4, enabled = $5, updated_at = $6, updated_by = $7
    WHERE project = $1
      AND id = $2
      AND revision = $3
      AND deleted_at IS NULL";
const DELETE: &str = "
    UPDATE alert_rules
    SET revision = revision + 1, enabled = FALSE, deleted_at = $3, updated_at = $3, updated_by = $4
    WHERE project = $1
      AND id = $2
      AND deleted_at IS NULL";
const RESOLVE: &str = "
    UPDATE incidents
    SET state = 'resolved', resolved_at = $2, resolved_because = $3
    WHERE rule = $1
      AND state = 'firing'";
const FORGET: &str = "DELETE FROM alert_states WHERE rule = $1";
const FORGET_EVALUATION: &str = "DELETE FROM alert_evaluations WHERE rule = $1";

impl Control {
    pub async fn create_alert_rule(
        &self,
        project: &str,
        text: RuleText,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<AlertRule, ControlError> {
        fits(&text)?;
        let id = new_id(at);
        let mut change = Change::begin(self, actor, at).await?;
        let rules: i64 = change
            .row(COUNT, values![project])
            .await?
            .ok_or(ControlError::NotFound)?
            .get("rules")?;
        if rules >= MOST_RULES {
            return Err(checks::invalid(
                "a project can have at most 500 alert rules",
            ));
        }
        let values = values![
            id,
            project,
            text.document,
            text.enabled,
            at,
            actor.to_string()
        ];
        change.execute(INSERT, values).await?;
        change
            .commit(Entry {
                action: Action::AlertRuleCreated,
                project: Some(project),
                subject: &id.to_string(),
                detail: json!({"name": text.name, "enabled": text.enabled}),
            })
            .await?;
        self.alert_rule(project, id).await
    }

    /// Saves a rule if it still has this revision. Open incidents end in the same transaction if `text.ends` is set.
    pub async fn save_alert_rule(
        &self,
        (project, id, revision): (&str, Uuid, i64),
        text: RuleText,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<AlertRule, ControlError> {
        fits(&text)?;
        let mut change = Change::begin(self, actor, at).await?;
        let values = values![
            project,
            id,
            revision,
            text.document,
            text.enabled,
            at,
            actor.to_string()
        ];
        if change.execute(UPDATE, values).await? == 0 {
            drop(change);
            let current = self.alert_rule(project, id).await?.revision;
            return Err(ControlError::Conflict { current });
        }
        if let Some(because) = text.ends {
            change.execute(RESOLVE, values![id, at, because]).await?;
            change.execute(FORGET, values![id]).await?;
            change.execute(FORGET_EVALUATION, values![id]).await?;
        }
        change
            .commit(Entry {
                action: Action::AlertRuleUpdated,
                project: Some(project),
                subject: &id.to_string(),
                detail: json!({"name": text.name, "enabled": text.enabled, "revision": revision + 1}),
            })
            .await?;
        self.alert_rule(project, id).await
    }

    pub async fn delete_alert_rule(
        &self,
        project: &str,
        id: Uuid,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        change
            .execute_found(DELETE, values![project, id, at, actor.to_string()])
            .await?;
        change
            .execute(RESOLVE, values![id, at, "the rule was deleted"])
            .await?;
        change.execute(FORGET, values![id]).await?;
        change
            .commit(Entry {
                action: Action::AlertRuleDeleted,
                project: Some(project),
                subject: &id.to_string(),
                detail: json!({}),
            })
            .await
    }

    pub async fn alert_rule(&self, project: &str, id: Uuid) -> Result<AlertRule, ControlError> {
        const GET: &str = rules_where!("AND r.project = $1 AND r.id = $2");
        AlertRule::read(&self.row(GET, values![project, id]).await?)
    }

    /// Returns the rules of a project, oldest first.
    pub async fn alert_rules(&self, project: &str) -> Result<Vec<AlertRule>, ControlError> {
        const LIST: &str = rules_where!("AND r.project = $1 ORDER BY r.created_at, r.id");
        self.records(LIST, values![project], AlertRule::read).await
    }

    /// Returns the enabled rules of all projects.
    pub async fn enabled_alert_rules(&self) -> Result<Vec<AlertRule>, ControlError> {
        const ENABLED: &str = rules_where!("AND r.enabled ORDER BY r.project, r.created_at, r.id");
        self.records(ENABLED, values![], AlertRule::read).await
    }
}

fn fits(text: &RuleText) -> Result<(), ControlError> {
    checks::name(&text.name)?;
    if text.document.as_str().len() > MAX_TEXT_BYTES {
        return Err(checks::invalid("an alert rule can have at most 64 KiB"));
    }
    Ok(())
}
