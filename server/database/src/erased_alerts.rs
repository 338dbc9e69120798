//! The traces that an install or a user id leaves in alerts: incidents, states, mutes and messages. An erasure deletes them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use unjank_foundation::clock::UnixTime;
use unjank_foundation::ids::canonical_id;
use uuid::Uuid;

use super::Control;
use super::backend::{Row, values};
use super::change::Change;
use super::erasure::{Erasure, ErasureKind};
use super::error::ControlError;

/// Whether a column with JSON has the member `$2`, such as `"user_id":"ann"`. A text in JSON cannot contain this, because its quotes are
/// escaped. `LIKE` differs between the engines.
macro_rules! has_member {
    ($column:literal) => {
        concat!("REPLACE(", $column, ", $2, '') <> ", $column)
    };
}

/// Incidents whose group is the subject, and incidents whose evidence has a filter of its dimension (`$3`).
const INCIDENTS: &str = concat!(
    "SELECT id, rule, group_key, evidence FROM incidents WHERE project = $1 AND (",
    has_member!("group_key"),
    " OR REPLACE(evidence, $3, '') <> evidence)"
);
/// By table, in an order that satisfies references.
const FORGET_INCIDENT: [(&str, &str); 4] = [
    (
        "incident_channels",
        "DELETE FROM incident_channels WHERE incident = $1",
    ),
    (
        "incident_comments",
        "DELETE FROM incident_comments WHERE incident = $1",
    ),
    (
        "alert_states",
        "DELETE FROM alert_states WHERE incident = $1",
    ),
    ("incidents", "DELETE FROM incidents WHERE id = $1"),
];
const FORGET_GROUP: [(&str, &str); 2] = [
    (
        "alert_states",
        concat!(
            "DELETE FROM alert_states WHERE rule IN (SELECT id FROM alert_rules WHERE project = $1) AND ",
            has_member!("group_key")
        ),
    ),
    (
        "mutes",
        concat!(
            "DELETE FROM mutes WHERE project = $1 AND ",
            has_member!("group_key")
        ),
    ),
];
/// Only locks the project, so that an erasure finishes before or after a message is saved.
pub(super) const LOCK_PROJECT: &str = "UPDATE projects SET id = id WHERE id = $1";
pub(super) const FINISHED: &str =
    "SELECT id, finished_at FROM erasures WHERE project = $1 AND state = 'done' ORDER BY id";
/// Evaluations that have read the erased rows are discarded, because they began before another evaluation. A rule that was never evaluated
/// gets an evaluation, so that its first one is discarded, too.
const DISCARD_EVALUATIONS: &str = "
    INSERT INTO alert_evaluations (rule, evaluated_at, outcome)
    SELECT id, $2, 'no_data'
    FROM alert_rules
    WHERE project = $1
      AND enabled
      AND deleted_at IS NULL
    ON CONFLICT (rule) DO UPDATE SET evaluated_at = alert_evaluations.evaluated_at + 1";
const MESSAGES: &str = concat!(
    "SELECT id, body FROM notifications WHERE project = $1 AND ",
    has_member!("body")
);
const CHANGE_MESSAGE: &str = "UPDATE notifications SET body = $2 WHERE id = $1";
const DELETE_MESSAGE: &str = "DELETE FROM notifications WHERE id = $1";

/// The erasures of a project that had finished when a reader began to read rows. If another one finishes in the meantime, what was read may name
/// its subject and is not saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedErasures(Vec<(Uuid, Option<UnixTime>)>);

impl FinishedErasures {
    pub(super) fn read(rows: &[Row]) -> Result<Self, ControlError> {
        let finished = rows
            .iter()
            .map(|row| -> Result<_, ControlError> { Ok((row.id("id")?, row.get("finished_at")?)) });
        finished.collect::<Result<_, _>>().map(Self)
    }
}

impl Control {
    /// Returns the finished erasures of a project. Call this before you read the rows of a message for [`Self::notify`].
    pub async fn finished_erasures(&self, project: &str) -> Result<FinishedErasures, ControlError> {
        FinishedErasures::read(&self.rows(FINISHED, values![project]).await?)
    }
}

/// Deletes what alerts have of the subject of an erasure. Returns the number of deleted rows and changed messages, by table.
pub(super) async fn forget(
    change: &mut Change<'_>,
    erasure: &Erasure,
) -> Result<BTreeMap<&'static str, u64>, ControlError> {
    let mut rows = BTreeMap::new();
    // Before the first statement that looks for messages, because it waits for those that are being saved.
    change
        .execute(LOCK_PROJECT, values![erasure.project.as_str()])
        .await?;
    let Some(subject) = Subject::new(erasure) else {
        return Ok(rows);
    };
    let (project, at) = (erasure.project.as_str(), change.at());
    // First, because it waits for evaluations that are being recorded: their incidents are then deleted, too.
    change
        .execute(DISCARD_EVALUATIONS, values![project, at])
        .await?;
    let named = subject.incidents(change, project).await?;
    for incident in &named.incidents {
        for (table, sql) in FORGET_INCIDENT {
            let deleted = change.execute(sql, values![*incident]).await?;
            *rows.entry(table).or_default() += deleted;
        }
    }
    let member = subject.member();
    for (table, sql) in FORGET_GROUP {
        let values = values![project, member.as_str()];
        let deleted = change.execute(sql, values).await?;
        *rows.entry(table).or_default() += deleted;
    }
    // Messages do not have the filters of a rule, so all messages about such a rule are searched.
    let mut texts = vec![member];
    for rule in &named.rules_by_filter {
        texts.push(format!("{}:{}", json!("rule"), json!(rule)));
    }
    let mut messages = BTreeMap::new();
    for text in texts {
        for row in change.rows(MESSAGES, values![project, text]).await? {
            messages.insert(row.id("id")?, row.json::<Json>("body")?);
        }
    }
    for (message, mut body) in messages {
        let is_changed = remove(&mut body, &|item| subject.is_named(item) || named.has(item));
        if !is_changed {
            continue;
        }
        let incidents = body.get("incidents").and_then(Json::as_array);
        let changed = match incidents.is_some_and(Vec::is_empty) {
            true => change.execute(DELETE_MESSAGE, values![message]).await?,
            false => {
                let values = values![message, body.to_string()];
                change.execute(CHANGE_MESSAGE, values).await?
            }
        };
        *rows.entry("notifications").or_default() += changed;
    }
    rows.retain(|_, rows| *rows > 0);
    Ok(rows)
}

/// The dimension and the value that alerts have for the subject of an erasure.
struct Subject {
    dimension: &'static str,
    id: String,
}

/// The incidents that name a subject.
#[derive(Default)]
struct Named {
    incidents: BTreeSet<Uuid>,
    /// The rules of the incidents that name the subject in a filter.
    rules_by_filter: BTreeSet<Uuid>,
}

impl Named {
    /// Whether an item of a message is one of these incidents.
    fn has(&self, item: &Json) -> bool {
        let id = item["id"].as_str().and_then(|id| id.parse().ok());
        id.is_some_and(|id: Uuid| self.incidents.contains(&id))
    }
}

impl Subject {
    fn new(erasure: &Erasure) -> Option<Self> {
        let subject = &erasure.subject;
        let (dimension, id) = match erasure.kind {
            ErasureKind::Install => ("install_id", subject.parse::<Uuid>().ok()?.to_string()),
            ErasureKind::User => ("user_id", subject.clone()),
            ErasureKind::Project => return None,
        };
        Some(Self { dimension, id })
    }

    fn member(&self) -> String {
        format!("{}:{}", json!(self.dimension), json!(self.id))
    }

    async fn incidents(
        &self,
        change: &mut Change<'_>,
        project: &str,
    ) -> Result<Named, ControlError> {
        let filter = format!("{}\":[", self.dimension);
        let values = values![project, self.member(), filter];
        let mut named = Named::default();
        for row in change.rows(INCIDENTS, values).await? {
            let (group, evidence): (Json, Json) = (row.json("group_key")?, row.json("evidence")?);
            let by_filter = self.is_in_filters(&evidence["metric"]["filters"]);
            if by_filter {
                named.rules_by_filter.insert(row.id("rule")?);
            }
            if by_filter || group[self.dimension] == self.id {
                named.incidents.insert(row.id("id")?);
            }
        }
        Ok(named)
    }

    /// Whether filters of a rule have the id. People may write install ids as the app does.
    fn is_in_filters(&self, filters: &Json) -> bool {
        let contains = format!("contains.{}", self.dimension);
        let lists = [self.dimension, contains.as_str()].map(|name| filters[name].as_array());
        let mut values = lists
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(Json::as_str);
        values.any(|value| match self.dimension {
            "install_id" => canonical_id(value) == self.id,
            _ => value == self.id,
        })
    }

    /// Whether an item of a message names the subject: an incident, or a line of a digest.
    fn is_named(&self, item: &Json) -> bool {
        item[self.dimension] == self.id || item["labels"][self.dimension] == self.id
    }
}

/// Removes the items of all lists that fit. Returns whether there were any.
fn remove(value: &mut Json, fits: &dyn Fn(&Json) -> bool) -> bool {
    match value {
        Json::Array(items) => {
            let before = items.len();
            items.retain(|item| !fits(item));
            let removed = items.len() < before;
            items
                .iter_mut()
                .fold(removed, |removed, item| remove(item, fits) || removed)
        }
        Json::Object(members) => {
            let removed = members.values_mut().map(|member| remove(member, fits));
            // Not `any`, which would stop at the first one.
            removed.max().unwrap_or(false)
        }
        _ => false,
    }
}
