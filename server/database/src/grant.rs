//! Limits the access that an actor may grant: none that outranks or outlives the actor's own.
//!
//! Checked in the transaction that grants the access, so that no handler can omit the check and no concurrent change
//! can bypass it.

use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::audit::{Actor, ActorKind};
use super::backend::{Row, values};
use super::change::Change;
use super::error::ControlError;
use super::role::Role;

/// Access to be granted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant<'g> {
    /// `None` means the whole installation.
    pub(super) project: Option<&'g str>,
    pub(super) role: Role,
    /// When the access expires.
    pub(super) until: Option<UnixTime>,
}

impl Grant<'_> {
    /// Returns the access of a user, which does not expire and includes everything if the user is an admin of the
    /// installation.
    pub(super) fn of_a_person(is_admin: bool) -> Self {
        Self {
            project: None,
            role: if is_admin { Role::Admin } else { Role::Viewer },
            until: None,
        }
    }
}

// These only lock the row. On PostgreSQL, a concurrent revocation waits and then sees the new grant.
const TOKEN: &str = "
    UPDATE api_tokens
    SET role = role
    WHERE id = $1
    RETURNING project, role, expires_at, revoked_at";
const USER: &str =
    "UPDATE users SET is_admin = is_admin WHERE id = $1 RETURNING is_admin, disabled_at";
const ROLE: &str =
    "UPDATE memberships SET role = role WHERE user_id = $1 AND project = $2 RETURNING role";

impl Change<'_> {
    /// Rejects access that the actor of this change may not grant. The command line and the server itself may grant
    /// anything.
    pub(super) async fn grants(&mut self, grant: Grant<'_>) -> Result<(), ControlError> {
        let Actor { kind, name } = self.actor();
        let id = Uuid::try_parse(name);
        match (kind, id) {
            (ActorKind::Cli | ActorKind::System, _) => Ok(()),
            (ActorKind::Token, Ok(id)) => self.token_grants(id, grant).await,
            (ActorKind::User, Ok(id)) => self.user_grants(id, grant).await,
            (_, Err(_)) => Err(ControlError::ExceedsOwnRights),
        }
    }

    async fn token_grants(&mut self, id: Uuid, grant: Grant<'_>) -> Result<(), ControlError> {
        let token = self.row(TOKEN, values![id]).await?;
        let token = token.ok_or(ControlError::ExceedsOwnRights)?;
        let only: Option<String> = token.get("project")?;
        let in_scope = only.is_none() || only.as_deref() == grant.project;
        if !in_scope || role(&token)? < grant.role {
            return Err(ControlError::ExceedsOwnRights);
        }
        let ends: Option<UnixTime> = token.get("expires_at")?;
        let has_ended = token.get::<Option<UnixTime>>("revoked_at")?.is_some()
            || ends.is_some_and(|end| end <= self.at());
        let outlives = ends.is_some_and(|end| grant.until.is_none_or(|until| until > end));
        if has_ended || outlives {
            return Err(ControlError::OutlivesActor);
        }
        Ok(())
    }

    async fn user_grants(&mut self, id: Uuid, grant: Grant<'_>) -> Result<(), ControlError> {
        let user = self.row(USER, values![id]).await?;
        let user = user.ok_or(ControlError::ExceedsOwnRights)?;
        if user.get::<Option<UnixTime>>("disabled_at")?.is_some() {
            return Err(ControlError::OutlivesActor);
        }
        if user.get("is_admin")? {
            return Ok(());
        }
        let Some(project) = grant.project else {
            return Err(ControlError::ExceedsOwnRights);
        };
        let own = self.row(ROLE, values![id, project]).await?;
        let own = own.as_ref().map(role).transpose()?;
        if own.is_none_or(|own| own < grant.role) {
            return Err(ControlError::ExceedsOwnRights);
        }
        Ok(())
    }
}

fn role(row: &Row) -> Result<Role, ControlError> {
    row.parsed("role")
}

/// Revokes the tokens that an actor created, those created with them, and so on.
const REVOKE_MADE: &str = "
    WITH RECURSIVE made (id) AS (
        SELECT id
        FROM api_tokens
        WHERE created_by = $1
          AND ($3 IS NULL OR project = $3)
          AND revoked_at IS NULL
        UNION
        SELECT t.id
        FROM api_tokens AS t
        JOIN made AS m ON t.created_by = 'token:' || m.id
        WHERE t.revoked_at IS NULL
    )
    UPDATE api_tokens
    SET revoked_at = $2
    WHERE id IN (SELECT id FROM made)
      AND revoked_at IS NULL";
/// Ends the links created by an actor or with revoked tokens.
const END_LINKS: &str = "
    UPDATE invitations
    SET used_at = $2
    WHERE used_at IS NULL
      AND (created_by = $1 OR created_by IN (SELECT 'token:' || id FROM api_tokens WHERE revoked_at IS NOT NULL))";
const HAND_OVER: &str =
    "UPDATE api_tokens SET created_by = $2 WHERE created_by = $1 AND revoked_at IS NULL";

impl Change<'_> {
    /// Revokes the tokens that `maker` created, in a project or, together with its invitations, everywhere. Returns the
    /// number of revoked tokens.
    pub(super) async fn revoke_tokens_of(
        &mut self,
        maker: &Actor,
        project: Option<&str>,
    ) -> Result<u64, ControlError> {
        let values = values![maker.to_string(), self.at(), project];
        let revoked = self.execute(REVOKE_MADE, values).await?;
        // Links are for the whole installation, so they end with the maker, not with one of its roles.
        if project.is_none() {
            let values = values![maker.to_string(), self.at()];
            self.execute(END_LINKS, values).await?;
        }
        Ok(revoked)
    }

    /// Transfers the tokens that `maker` created to the actor of this change. Returns their number.
    pub(super) async fn transfer_tokens_of(&mut self, maker: &Actor) -> Result<u64, ControlError> {
        let values = values![maker.to_string(), self.actor().to_string()];
        self.execute(HAND_OVER, values).await
    }
}
