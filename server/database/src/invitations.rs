//! Invitations: single-use links to join the installation, or to set a new password.

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::values;
use super::change::{Change, Entry};
use super::checks;
use super::error::ControlError;
use super::grant::Grant;
use super::secrets::SecretHash;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    pub token_hash: SecretHash,
    /// The user whose password is set.
    pub user: Uuid,
    pub expires_at: UnixTime,
}

/// An invitation that was neither used nor cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenInvitation {
    pub user: Uuid,
    /// May be in the past, because an expired invitation stays open.
    pub expires_at: UnixTime,
}

const INSERT: &str = "
    INSERT INTO invitations (token_hash, purpose, user_id, created_at, expires_at, created_by)
    VALUES ($1, 'invite', $2, $3, $4, $5)";
/// A single statement takes the invitation: of two concurrent attempts, the second finds it used.
const TAKE: &str = "
    UPDATE invitations
    SET used_at = $2
    WHERE token_hash = $1
      AND purpose = 'invite'
      AND used_at IS NULL
      AND expires_at > $2
    RETURNING user_id";
/// Ends a user's open links, after another one was taken, a password was set, or the user was disabled.
pub(super) const END_INVITATIONS: &str =
    "UPDATE invitations SET used_at = $2 WHERE user_id = $1 AND used_at IS NULL";
const INVITED: &str = "
    SELECT is_admin, password_hash IS NOT NULL AS has_password
    FROM users
    WHERE id = $1
      AND disabled_at IS NULL";
const OPEN: &str = "
    SELECT user_id, MAX(expires_at) AS expires_at
    FROM invitations
    WHERE used_at IS NULL
      AND user_id IN (SELECT id FROM users WHERE email > $1 ORDER BY email LIMIT $2)
    GROUP BY user_id";

impl Control {
    pub async fn create_invitation(
        &self,
        invitation: &Invitation,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let Invitation {
            token_hash,
            user,
            expires_at,
        } = *invitation;
        let mut change = Change::begin(self, actor, at).await?;
        let invited = change.row(INVITED, values![user]).await?;
        let invited = invited.ok_or(ControlError::NotFound)?;
        let grant = Grant::of_a_person(invited.get("is_admin")?);
        change.grants(grant).await?;
        // Only the latest link is valid.
        change.execute(END_INVITATIONS, values![user, at]).await?;
        let values = values![token_hash, user, at, expires_at, actor.to_string()];
        change.execute(INSERT, values).await?;
        let purpose = match invited.get("has_password")? {
            true => "reset",
            false => "invite",
        };
        let detail = json!({"purpose": purpose, "expires_at": expires_at});
        let (action, subject) = (Action::InvitationCreated, user.to_string());
        change
            .commit(Entry::of_installation(action, &subject, detail))
            .await
    }

    /// Takes an invitation and returns its user. Returns the same [`ControlError::NotFound`] if it is used, expired or
    /// unknown.
    pub async fn take_invitation(
        &self,
        token_hash: SecretHash,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Uuid, ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        let taken = change.row(TAKE, values![token_hash, at]).await?;
        let user = taken.ok_or(ControlError::NotFound)?.id("user_id")?;
        change.execute(END_INVITATIONS, values![user, at]).await?;
        let (action, subject) = (Action::InvitationTaken, user.to_string());
        change
            .commit(Entry::of_installation(action, &subject, json!({})))
            .await?;
        Ok(user)
    }

    /// Cancels the open invitation of a user.
    pub async fn cancel_invitation(
        &self,
        user: Uuid,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let subject = user.to_string();
        let entry = Entry::of_installation(Action::InvitationCancelled, &subject, json!({}));
        self.change_once((END_INVITATIONS, values![user, at]), entry, actor, at)
            .await
    }

    /// Returns the open invitations of the users on the same page of [`Control::users`].
    pub async fn open_invitations(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<OpenInvitation>, ControlError> {
        let values = values![after.unwrap_or_default(), checks::page(limit)];
        self.records(OPEN, values, |row| {
            Ok(OpenInvitation {
                user: row.id("user_id")?,
                expires_at: row.get("expires_at")?,
            })
        })
        .await
    }
}
