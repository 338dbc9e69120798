//! An assignee of an incident, as statements of lists and incidents read it.

use uuid::Uuid;

use super::backend::Row;
use super::error::ControlError;

/// A person to whom incidents of a project can be assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignee {
    pub user: Uuid,
    pub name: String,
}

impl Assignee {
    pub(super) fn read(row: &Row) -> Result<Self, ControlError> {
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
