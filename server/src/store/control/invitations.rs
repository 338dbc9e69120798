//! Invitations: single-use links to set up the installation, to join it, or to set a new password.

use serde_json::json;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::values;
use super::change::{Change, Entry};
use super::checks;
use super::error::ControlError;
use super::grant::Grant;
use super::secrets::SecretHash;
use super::text_enum::text_enum;
use crate::clock::UnixTime;

text_enum! {
    /// The purpose of an invitation.
    Purpose { Setup = "setup", Invite = "invite", Reset = "reset" }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    pub token_hash: SecretHash,
    pub purpose: Purpose,
    /// The user whose password is set. A setup has no user yet.
    pub user: Option<Uuid>,
    pub expires_at: UnixTime,
}

const INSERT: &str = "
    INSERT INTO invitations (token_hash, purpose, user_id, created_at, expires_at, created_by)
    VALUES ($1, $2, $3, $4, $5, $6)";
/// A single statement takes the invitation: of two concurrent attempts, the second finds it used.
const TAKE: &str = "
    UPDATE invitations
    SET used_at = $3
    WHERE token_hash = $1
      AND purpose = $2
      AND used_at IS NULL
      AND expires_at > $3
    RETURNING user_id, expires_at";
/// Ends a user's open links, after another one was taken, a password was set, or the user was disabled.
pub(super) const END_INVITATIONS: &str =
    "UPDATE invitations SET used_at = $2 WHERE user_id = $1 AND used_at IS NULL";
const IS_ADMIN: &str = "SELECT is_admin FROM users WHERE id = $1 AND disabled_at IS NULL";

impl Control {
    pub async fn create_invitation(
        &self,
        invitation: &Invitation,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let Invitation { purpose, user, .. } = invitation;
        if (*purpose == Purpose::Setup) == user.is_some() {
            return Err(checks::invalid(
                "a setup must not name a user; an invitation or a reset must",
            ));
        }
        let mut change = Change::begin(self, actor, at).await?;
        if let Some(user) = user {
            let found = change.row(IS_ADMIN, values![*user]).await?;
            let found = found.ok_or(ControlError::NotFound)?;
            let grant = Grant::of_a_person(found.get("is_admin")?);
            change.grants(grant).await?;
            // Only the latest link is valid.
            change.execute(END_INVITATIONS, values![*user, at]).await?;
        }
        let values = values![
            invitation.token_hash,
            purpose.as_str(),
            *user,
            at,
            invitation.expires_at,
            actor.to_string(),
        ];
        change.execute(INSERT, values).await?;
        let detail = json!({"purpose": purpose.as_str(), "expires_at": invitation.expires_at});
        let (action, subject) = (Action::InvitationCreated, subject(*user));
        change.commit(entry(action, &subject, detail)).await
    }

    /// Takes an invitation. Returns [`ControlError::NotFound`] alike if it is used, expired or unknown.
    pub async fn take_invitation(
        &self,
        token_hash: SecretHash,
        purpose: Purpose,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Invitation, ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        let values = values![token_hash, purpose.as_str(), at];
        let taken = change.row(TAKE, values).await?;
        let taken = taken.ok_or(ControlError::NotFound)?;
        let invitation = Invitation {
            token_hash,
            purpose,
            user: taken.maybe_id("user_id")?,
            expires_at: taken.get("expires_at")?,
        };
        if let Some(user) = invitation.user {
            change.execute(END_INVITATIONS, values![user, at]).await?;
        }
        let detail = json!({"purpose": purpose.as_str()});
        let (action, subject) = (Action::InvitationTaken, subject(invitation.user));
        change.commit(entry(action, &subject, detail)).await?;
        Ok(invitation)
    }
}

fn subject(user: Option<Uuid>) -> String {
    user.map_or_else(|| "instance".to_owned(), |user| user.to_string())
}

fn entry(action: Action, subject: &str, detail: serde_json::Value) -> Entry<'_> {
    Entry {
        action,
        project: None,
        subject,
        detail,
    }
}
