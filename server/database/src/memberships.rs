//! Memberships: the roles of users in projects.

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, values};
use super::change::{Change, Entry};
use super::error::ControlError;
use super::grant::Grant;
use super::role::Role;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    pub user: Uuid,
    pub project: String,
    pub role: Role,
}

impl Membership {
    pub(super) fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            user: row.id("user_id")?,
            project: row.get("project")?,
            role: row.parsed("role")?,
        })
    }
}

const SET: &str = "
    INSERT INTO memberships (user_id, project, role)
    VALUES ($1, $2, $3)
    ON CONFLICT (user_id, project) DO UPDATE SET role = excluded.role";
const ONE: &str = "SELECT role FROM memberships WHERE user_id = $1 AND project = $2";
pub(super) const REMOVE: &str = "DELETE FROM memberships WHERE user_id = $1 AND project = $2";
pub(super) const OF_USER: &str =
    "SELECT user_id, project, role FROM memberships WHERE user_id = $1 ORDER BY project";
const OF_PROJECT: &str =
    "SELECT user_id, project, role FROM memberships WHERE project = $1 ORDER BY user_id";

impl Control {
    /// Sets a user's role. A user who is no longer admin loses the tokens they created for the project.
    pub async fn set_membership(
        &self,
        membership: &Membership,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let Membership {
            user,
            project,
            role,
        } = membership;
        let mut change = Change::begin(self, actor, at).await?;
        let grant = Grant {
            project: Some(project),
            role: *role,
            until: None,
        };
        change.grants(grant).await?;
        let before = change.row(ONE, values![*user, project.as_str()]).await?;
        let before = before.map(|row| row.get::<String>("role")).transpose()?;
        let values = values![*user, project.as_str(), role.as_str()];
        change.execute(SET, values).await?;
        // Only admins create tokens.
        let revoked = match role {
            Role::Admin => 0,
            _ => {
                change
                    .revoke_tokens_of(&Actor::user(*user), Some(project))
                    .await?
            }
        };
        change
            .commit(Entry {
                action: Action::MembershipSet,
                project: Some(project),
                subject: &user.to_string(),
                detail: json!({"role": role.as_str(), "role_before": before, "tokens_revoked": revoked}),
            })
            .await
    }

    /// Removes a user from a project, and revokes the tokens the user created for it.
    pub async fn remove_membership(
        &self,
        user: Uuid,
        project: &str,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        change.execute_found(REMOVE, values![user, project]).await?;
        let revoked = change
            .revoke_tokens_of(&Actor::user(user), Some(project))
            .await?;
        change
            .commit(Entry {
                action: Action::MembershipRemoved,
                project: Some(project),
                subject: &user.to_string(),
                detail: json!({"tokens_revoked": revoked}),
            })
            .await
    }

    /// Returns a user's memberships, ordered by project.
    pub async fn roles_of(&self, user: Uuid) -> Result<Vec<Membership>, ControlError> {
        self.records(OF_USER, values![user], Membership::read).await
    }

    pub async fn members_of(&self, project: &str) -> Result<Vec<Membership>, ControlError> {
        self.records(OF_PROJECT, values![project], Membership::read)
            .await
    }
}
