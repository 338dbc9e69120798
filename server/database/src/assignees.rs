//! Assignees: who works on an incident, and who could.

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, values};
use super::checks;
use super::error::ControlError;
use super::incidents::Incident;

/// A person to whom incidents of a project can be assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignee {
    pub user: Uuid,
    pub name: String,
}

impl Assignee {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            user: row.id("assigned_to")?,
            name: row.get("assigned_name")?,
        })
    }

    /// Reads the assignee of an incident.
    pub(super) fn read_any(row: &Row) -> Result<Option<Self>, ControlError> {
        match row.maybe_id("assigned_to")? {
            Some(_) => Self::read(row).map(Some),
            None => Ok(None),
        }
    }
}

/// The columns of a `person`. A person without a name has the address in its place.
macro_rules! assignee_columns {
    () => {
        "person.id AS assigned_to,
        CASE person.name WHEN '' THEN person.email ELSE person.name END AS assigned_name"
    };
}
pub(super) use assignee_columns;

/// Whether a `person` may log in and see a project. An assignment is not deleted when its person loses access: access ends in many ways, and
/// people who get it back are still the assignees.
macro_rules! may_see {
    ($project:literal) => {
        concat!(
            "person.disabled_at IS NULL
      AND (
        person.is_admin
        OR EXISTS (
            SELECT 1
            FROM memberships
            WHERE memberships.user_id = person.id
              AND memberships.project = ",
            $project,
            "
        )
      )"
        )
    };
}
pub(super) use may_see;

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
