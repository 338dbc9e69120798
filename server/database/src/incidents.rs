//! Incidents, and the states of rules that lead to them. A state and its incident are saved in one transaction.

use std::collections::BTreeMap;

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::assignee::{Assignee, assignee_columns, may_see};
use super::backend::{Notice, Row, Statements, values};
use super::change::Change;
use super::channels::Severity;
use super::checks;
use super::error::ControlError;
use super::json_text::JsonText;
use super::text_enum::text_enum;

text_enum! {
    /// Whether an incident is open.
    IncidentState { Firing = "firing", Resolved = "resolved" }
}

text_enum! {
    /// The kind of finding: a value got worse, or only the mix of devices changed.
    IncidentKind { Alert = "alert", MixShift = "mix_shift" }
}

text_enum! {
    /// The state of a group of a rule. A group without a state is ok.
    GroupState { Pending = "pending", Firing = "firing", Shifted = "shifted" }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    pub id: Uuid,
    pub project: String,
    pub rule: Uuid,
    /// The values of the rule's dimensions: a map of strings.
    pub group_key: JsonText,
    pub kind: IncidentKind,
    pub title: String,
    pub severity: Severity,
    pub owner: String,
    pub labels: BTreeMap<String, String>,
    pub summary: String,
    pub link: String,
    pub evidence: JsonText,
    pub state: IncidentState,
    pub started_at: UnixTime,
    pub resolved_at: Option<UnixTime>,
    pub resolved_because: Option<String>,
    pub acknowledged_at: Option<UnixTime>,
    pub acknowledged_by: Option<String>,
    /// The person who works on it. `None` also if the person may no longer see the project.
    pub assignee: Option<Assignee>,
    /// The outcome of its action. `None` if no action was tried.
    pub action: Option<JsonText>,
}

impl Incident {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            project: row.get("project")?,
            rule: row.id("rule")?,
            group_key: JsonText::from_column(row, "group_key")?,
            kind: row.parsed("kind")?,
            title: row.get("title")?,
            severity: row.parsed("severity")?,
            owner: row.get("owner")?,
            labels: row.json("labels")?,
            summary: row.get("summary")?,
            link: row.get("link")?,
            evidence: JsonText::from_column(row, "evidence")?,
            state: row.parsed("state")?,
            started_at: row.get("started_at")?,
            resolved_at: row.get("resolved_at")?,
            resolved_because: row.get("resolved_because")?,
            acknowledged_at: row.get("acknowledged_at")?,
            acknowledged_by: row.get("acknowledged_by")?,
            assignee: Assignee::read_any(row)?,
            action: JsonText::from_optional_column(row, "action")?,
        })
    }
}

text_enum! {
    /// The outcome of an incident's action: `placed`, `refused` (no override was placed) or `ended` (the override was
    /// removed, or changed by hand).
    ActionState { Placed = "placed", Refused = "refused", Ended = "ended" }
}

/// A new outcome of an incident's action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionNote {
    pub incident: Uuid,
    /// The outcome that it replaces. Any other saved outcome is a conflict.
    pub before: Option<JsonText>,
    pub state: ActionState,
    pub outcome: JsonText,
}

impl ActionNote {
    /// Saves the outcome. Returns `false` if another server saved one first.
    pub(super) async fn keep(self, change: &mut Change<'_>) -> Result<bool, ControlError> {
        Ok(change.execute(NOTE_ACTION, self.values()).await? > 0)
    }

    fn values(self) -> super::backend::Values {
        values![
            self.incident,
            self.state.as_str(),
            self.outcome,
            self.before
        ]
    }
}

/// The state of a group that is not ok.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertState {
    pub group_key: JsonText,
    pub state: GroupState,
    pub since: UnixTime,
    pub seen_at: UnixTime,
    pub base: Option<String>,
    pub incident: Option<Uuid>,
}

impl AlertState {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            group_key: JsonText::from_column(row, "group_key")?,
            state: row.parsed("state")?,
            since: row.get("since")?,
            seen_at: row.get("seen_at")?,
            base: row.get("base")?,
            incident: row.maybe_id("incident")?,
        })
    }
}

/// The changes of an evaluation, saved as a whole or not at all.
#[derive(Clone, Debug)]
pub struct Evaluated {
    pub rule: Uuid,
    pub revision: i64,
    /// The time of the previous evaluation, as known when this one began.
    pub before: Option<UnixTime>,
    pub at: UnixTime,
    pub outcome: &'static str,
    pub error: Option<String>,
    /// Groups that have another key now, in the order of their moves. All other changes name the new keys.
    pub moved: Vec<GroupMove>,
    /// The new states of groups that are not ok.
    pub states: Vec<AlertState>,
    /// Groups that are ok again.
    pub ok: Vec<JsonText>,
    pub opened: Vec<Incident>,
    /// Incidents that end, with the reason.
    pub resolved: Vec<(Uuid, &'static str)>,
}

impl Evaluated {
    /// Starts an evaluation of a rule at a revision, without any changes yet.
    #[must_use]
    pub fn new((rule, revision): (Uuid, i64), before: Option<UnixTime>, at: UnixTime) -> Self {
        Self {
            rule,
            revision,
            before,
            at,
            outcome: "failed",
            error: None,
            moved: Vec::new(),
            states: Vec::new(),
            ok: Vec::new(),
            opened: Vec::new(),
            resolved: Vec::new(),
        }
    }
}

/// The group of a rule's state that has another key now.
#[derive(Clone, Debug)]
pub struct GroupMove {
    pub rule: Uuid,
    pub from: JsonText,
    pub to: JsonText,
    pub incident: Option<Uuid>,
    /// The values of the new group by dimension.
    pub group: BTreeMap<String, String>,
}

/// A filter of a project's incidents.
#[derive(Clone, Debug, Default)]
pub struct IncidentFilter {
    pub rule: Option<Uuid>,
    pub state: Option<IncidentState>,
    pub owner: Option<String>,
    pub assignee: Option<Uuid>,
    /// Only incidents before this one, given by its start and its id.
    pub before: Option<(UnixTime, Uuid)>,
}

macro_rules! incidents_where {
    ($rest:literal) => {
        concat!(
            "
    SELECT incidents.id AS id, project, rule, group_key, kind, title, severity, owner, labels, summary, link, evidence,
        state, started_at, resolved_at, resolved_because, acknowledged_at, acknowledged_by, action,
        ",
            assignee_columns!(),
            "
    FROM incidents
    LEFT JOIN users AS person ON person.id = incidents.assignee
      AND ",
            may_see!("incidents.project"),
            "
    WHERE ",
            $rest
        )
    };
}

const STATES: &str = "
    SELECT group_key, state, since, seen_at, base, incident
    FROM alert_states
    WHERE rule = $1
    ORDER BY group_key";
/// Locks the rule for the transaction if it is still the one that was evaluated.
const HOLD: &str = "
    UPDATE alert_rules
    SET revision = revision
    WHERE id = $1
      AND revision = $2
      AND enabled
      AND deleted_at IS NULL";
/// Replaces only the evaluation that was known, because two servers with different clocks may both believe they hold the lease.
const NOTE: &str = "
    INSERT INTO alert_evaluations (rule, evaluated_at, outcome, error)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (rule) DO UPDATE SET evaluated_at = $2, outcome = $3, error = $4
    WHERE alert_evaluations.evaluated_at = $5";
const SET_STATE: &str = "
    INSERT INTO alert_states (rule, group_key, state, since, seen_at, base, incident)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (rule, group_key) DO UPDATE SET state = $3, since = $4, seen_at = $5, base = $6, incident = $7";
const SET_OK: &str = "DELETE FROM alert_states WHERE rule = $1 AND group_key = $2";
const OPEN: &str = "
    INSERT INTO incidents (id, project, rule, group_key, kind, title, severity, owner, labels, summary, link,
        evidence, state, started_at, resolved_at, resolved_because, told)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
const RESOLVE: &str = "
    UPDATE incidents
    SET state = 'resolved', resolved_at = $2, resolved_because = $3
    WHERE id = $1
      AND state = 'firing'";
const NOTE_ACTION: &str = "
    UPDATE incidents
    SET action_state = $2, action = $3
    WHERE id = $1
      AND COALESCE(action, '') = COALESCE($4, '')";
const MOVE_STATE: &str =
    "UPDATE alert_states SET group_key = $3 WHERE rule = $1 AND group_key = $2";
const MOVE_INCIDENT: &str = "UPDATE incidents SET group_key = $2, labels = $3 WHERE id = $1";
const MOVE_MUTES: &str = "UPDATE mutes SET group_key = $3 WHERE rule = $1 AND group_key = $2";
const LABELS: &str = "SELECT labels FROM incidents WHERE id = $1";

impl Control {
    /// Returns the states of the groups that are not ok.
    pub async fn alert_states(&self, rule: Uuid) -> Result<Vec<AlertState>, ControlError> {
        self.records(STATES, values![rule], AlertState::read).await
    }

    /// Saves an evaluation. Returns `false` and saves nothing if, since it began, the rule was changed, disabled, deleted or evaluated
    /// by another server.
    pub async fn save_evaluation(&self, done: Evaluated) -> Result<bool, ControlError> {
        let (rule, at) = (done.rule, done.at);
        let mut statements = self.begin().await?;
        let held = statements
            .execute(HOLD, values![rule, done.revision])
            .await?;
        if held == 0 {
            return Ok(false);
        }
        let note = values![
            rule,
            at,
            done.outcome,
            done.error,
            done.before.unwrap_or_default()
        ];
        if statements.execute(NOTE, note).await? == 0 {
            return Ok(false);
        }
        for moved in done.moved {
            move_group(&mut *statements, moved).await?;
        }
        for group in done.ok {
            statements.execute(SET_OK, values![rule, group]).await?;
        }
        for (incident, because) in done.resolved {
            statements
                .execute(RESOLVE, values![incident, at, because])
                .await?;
        }
        for incident in done.opened {
            statements.execute(OPEN, opening(incident)).await?;
        }
        for one in done.states {
            let values = values![
                rule,
                one.group_key,
                one.state.as_str(),
                one.since,
                one.seen_at,
                one.base,
                one.incident,
            ];
            statements.execute(SET_STATE, values).await?;
        }
        statements.commit(Notice::Silent).await?;
        Ok(true)
    }

    pub async fn incident(&self, project: &str, id: Uuid) -> Result<Incident, ControlError> {
        const GET: &str = incidents_where!("project = $1 AND incidents.id = $2");
        Incident::read(&self.row(GET, values![project, id]).await?)
    }

    /// Returns a page of incidents, latest first.
    pub async fn incidents(
        &self,
        project: &str,
        filter: &IncidentFilter,
        limit: u32,
    ) -> Result<Vec<Incident>, ControlError> {
        const LIST: &str = incidents_where!(
            "project = $1
      AND ($2 = '' OR rule = $2)
      AND ($3 = '' OR state = $3)
      AND (started_at < $4 OR (started_at = $4 AND incidents.id < $5))
      AND ($7 = '' OR owner = $7)
      AND ($8 = '' OR person.id = $8)
    ORDER BY started_at DESC, incidents.id DESC
    LIMIT $6"
        );
        let (before_at, before_id) = filter
            .before
            .map_or((UnixTime::MAX, String::new()), |(at, id)| {
                (at, id.to_string())
            });
        let values = values![
            project,
            filter.rule.map(|id| id.to_string()).unwrap_or_default(),
            filter.state.map_or("", IncidentState::as_str),
            before_at,
            before_id,
            checks::page(limit),
            filter.owner.as_deref().unwrap_or_default(),
            filter.assignee.map(|id| id.to_string()).unwrap_or_default(),
        ];
        self.records(LIST, values, Incident::read).await
    }

    /// Returns the open incidents of a rule whose action was not tried yet, oldest first.
    pub async fn incidents_to_act_on(&self, rule: Uuid) -> Result<Vec<Incident>, ControlError> {
        const WAITING: &str = incidents_where!(
            "rule = $1 AND state = 'firing' AND action_state IS NULL ORDER BY started_at, incidents.id"
        );
        self.records(WAITING, values![rule], Incident::read).await
    }

    /// Returns the incidents of all projects whose override is in place, including resolved incidents.
    pub async fn incidents_with_overrides(&self) -> Result<Vec<Incident>, ControlError> {
        const INCIDENT_ID_PREFIX: &str =
            incidents_where!("action_state = 'placed' ORDER BY project, started_at, incidents.id");
        self.records(INCIDENT_ID_PREFIX, values![], Incident::read)
            .await
    }

    /// Saves the outcome of an action that saved no configuration. Returns `false` if another server saved one first.
    pub async fn save_action_outcome(&self, note: ActionNote) -> Result<bool, ControlError> {
        let mut statements = self.begin().await?;
        let kept = statements.execute(NOTE_ACTION, note.values()).await?;
        statements.commit(Notice::Silent).await?;
        Ok(kept > 0)
    }

    /// Counts the open incidents of all projects.
    pub async fn firing_incidents(&self) -> Result<i64, ControlError> {
        const FIRING: &str = "SELECT count(*) AS firing FROM incidents WHERE state = 'firing'";
        self.row(FIRING, values![]).await?.get("firing")
    }
}

/// Gives a group of a rule another key, together with its open incident and its mutes.
async fn move_group(statements: &mut dyn Statements, moved: GroupMove) -> Result<(), ControlError> {
    let keys = || values![moved.rule, moved.from.as_str(), moved.to.as_str()];
    statements.execute(MOVE_STATE, keys()).await?;
    statements.execute(MOVE_MUTES, keys()).await?;
    if let Some(incident) = moved.incident
        && let Some(row) = statements.rows(LABELS, values![incident]).await?.first()
    {
        let mut labels: BTreeMap<String, String> = row.json("labels")?;
        labels.extend(moved.group);
        let values = values![incident, moved.to.as_str(), json!(labels).to_string()];
        statements.execute(MOVE_INCIDENT, values).await?;
    }
    Ok(())
}

fn opening(incident: Incident) -> super::backend::Values {
    // A mix shift is marked as announced, so that it creates no notification.
    let told = match incident.kind {
        IncidentKind::Alert => None,
        IncidentKind::MixShift => Some("resolved"),
    };
    values![
        incident.id,
        incident.project,
        incident.rule,
        incident.group_key,
        incident.kind.as_str(),
        incident.title,
        incident.severity.as_str(),
        incident.owner,
        json!(incident.labels).to_string(),
        incident.summary,
        incident.link,
        incident.evidence,
        incident.state.as_str(),
        incident.started_at,
        incident.resolved_at,
        incident.resolved_because,
        told,
    ]
}
