//! The traces that an install or a user id leaves in alerts: incidents, states, mutes and messages. An erasure deletes them.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::backend::values;
use super::change::Change;
use super::erasures::{Erasure, ErasureKind};
use super::error::ControlError;

/// Whether a column with JSON has the member `$2`, such as `"user_id":"ann"`. A text in JSON cannot contain this, because its quotes are
/// escaped. `LIKE` differs between the engines.
macro_rules! has_member {
    ($column:literal) => {
        concat!("REPLACE(", $column, ", $2, '') <> ", $column)
    };
}
macro_rules! of_incidents {
    ($table:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE incident IN (SELECT id FROM incidents WHERE project = $1 AND ",
            has_member!("group_key"),
            ")"
        )
    };
}

/// By table, in an order that satisfies references.
const FORGET: [(&str, &str); 5] = [
    ("incident_channels", of_incidents!("incident_channels")),
    ("incident_comments", of_incidents!("incident_comments")),
    (
        "incidents",
        concat!(
            "DELETE FROM incidents WHERE project = $1 AND ",
            has_member!("group_key")
        ),
    ),
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
/// Evaluations that have read the erased rows are discarded, because they began before another evaluation.
const DISCARD_EVALUATIONS: &str = "
    UPDATE alert_evaluations SET evaluated_at = evaluated_at + 1
    WHERE rule IN (SELECT id FROM alert_rules WHERE project = $1)";
const MESSAGES: &str = concat!(
    "SELECT id, body FROM notifications WHERE project = $1 AND ",
    has_member!("body")
);
const CHANGE_MESSAGE: &str = "UPDATE notifications SET body = $2 WHERE id = $1";
const DELETE_MESSAGE: &str = "DELETE FROM notifications WHERE id = $1";

/// Deletes what alerts have of the subject of an erasure. Returns the number of deleted rows and changed messages, by table.
pub(super) async fn forget(
    change: &mut Change<'_>,
    erasure: &Erasure,
) -> Result<BTreeMap<&'static str, u64>, ControlError> {
    let mut rows = BTreeMap::new();
    let Some((dimension, id)) = member(erasure) else {
        return Ok(rows);
    };
    let project = erasure.project.as_str();
    let text = format!("{}:{}", json!(dimension), json!(id));
    // First, because it waits for evaluations that are being recorded: their incidents are then deleted, too.
    change
        .execute(DISCARD_EVALUATIONS, values![project])
        .await?;
    for (table, sql) in FORGET {
        let deleted = change.execute(sql, values![project, text.as_str()]).await?;
        rows.insert(table, deleted);
    }
    let messages = change.rows(MESSAGES, values![project, text]).await?;
    for row in &messages {
        let (message, mut body): (Uuid, Json) = (row.id("id")?, row.json("body")?);
        remove(&mut body, (dimension, id.as_str()));
        let incidents = body.get("incidents").and_then(Json::as_array);
        match incidents.is_some_and(Vec::is_empty) {
            true => change.execute(DELETE_MESSAGE, values![message]).await?,
            false => {
                let values = values![message, body.to_string()];
                change.execute(CHANGE_MESSAGE, values).await?
            }
        };
    }
    rows.insert("notifications", messages.len() as u64);
    rows.retain(|_, rows| *rows > 0);
    Ok(rows)
}

/// Returns the dimension and the value that groups of alerts have for the subject.
fn member(erasure: &Erasure) -> Option<(&'static str, String)> {
    let subject = &erasure.subject;
    match erasure.kind {
        ErasureKind::Install => Some(("install_id", subject.parse::<Uuid>().ok()?.to_string())),
        ErasureKind::User => Some(("user_id", subject.clone())),
        ErasureKind::Project => None,
    }
}

/// Removes the incidents and the lines of digests that name the subject.
fn remove(value: &mut Json, (dimension, id): (&str, &str)) {
    match value {
        Json::Array(items) => {
            items.retain(|item| item[dimension] != id && item["labels"][dimension] != id);
            for item in items {
                remove(item, (dimension, id));
            }
        }
        Json::Object(members) => {
            for member in members.values_mut() {
                remove(member, (dimension, id));
            }
        }
        _ => {}
    }
}
