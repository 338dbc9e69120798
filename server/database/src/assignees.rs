//! Assignees: who works on an incident, and who could.

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::assignee::{Assignee, assignee_columns, may_see};
use super::audit::{Action, Actor};
use super::backend::values;
use super::checks;
use super::error::ControlError;
use super::incidents::Incident;

/// More people than a list of a screen shows.
const MOST_PEOPLE: i64 = 1_000;

const LIST: &str = concat!(
    "
    SELECT ",
    assignee_columns!(),
    "
    FROM users AS person
    WHERE ",
    may_see!("$1"),
    "
    ORDER BY assigned_name, assigned_to
    LIMIT $2"
);
const ONE: &str = concat!(
    "
    SELECT ",
    assignee_columns!(),
    "
    FROM users AS person
    WHERE person.id = $2
      AND ",
    may_see!("$1")
);
const ASSIGN: &str = "
    UPDATE incidents
    SET assignee = $3
    WHERE project = $1
      AND id = $2
      AND COALESCE(assignee, '') <> COALESCE($3, '')";

impl Control {
    /// Returns the people who may see a project, by name, at most 1000.
    pub async fn assignees(&self, project: &str) -> Result<Vec<Assignee>, ControlError> {
        self.records(LIST, values![project, MOST_PEOPLE], Assignee::read)
            .await
    }

    /// Assigns an incident to a person who may see the project, or to nobody. Writes an audit entry only if the incident changes.
    pub async fn assign_incident(
        &self,
        (project, id): (&str, Uuid),
        user: Option<Uuid>,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Incident, ControlError> {
        let (action, detail) = match user {
            Some(user) => {
                let found = self.records(ONE, values![project, user], Assignee::read);
                let found = found.await?.into_iter().next();
                let assignee = found.ok_or_else(|| {
                    checks::invalid("only a person who may see the project can be assigned")
                })?;
                let detail = json!({"assignee": assignee.name, "user": user});
                (Action::IncidentAssigned, detail)
            }
            None => (Action::IncidentUnassigned, json!({})),
        };
        let update = (ASSIGN, values![project, id, user]);
        self.change_incident((project, id), update, (action, detail), (actor, at))
            .await
    }
}
