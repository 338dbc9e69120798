//! Invitations: links that let somebody in once, to set up the instance, to join it, or to set a new password.

use async_trait::async_trait;
use serde_json::json;
use uuid::Uuid;

use super::audit::{Action, Actor};
use super::backend::{Backend, values};
use super::change::{Change, Entry};
use super::checks;
use super::closed::closed;
use super::error::ControlError;
use super::grant::Grant;
use super::secrets::SecretHash;

closed! {
    /// What the holder of an invitation may do, once.
    Purpose { Setup = "setup", Invite = "invite", Reset = "reset" }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    pub token_hash: SecretHash,
    pub purpose: Purpose,
    /// Whose password is set with it. A setup has no user yet.
    pub user: Option<Uuid>,
    pub expires_at: i64,
}

const INSERT: &str = "INSERT INTO invitations (token_hash, purpose, user_id, created_at, expires_at, created_by) \
     VALUES ($1, $2, $3, $4, $5, $6)";
/// One statement decides who takes it: of two at once, the second finds it used.
const TAKE: &str = "UPDATE invitations SET used_at = $3 \
     WHERE token_hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3 \
     RETURNING user_id, expires_at";
/// A link that was not taken is of no use once another was, a password was set, or its user is disabled.
pub(super) const END_INVITATIONS: &str =
    "UPDATE invitations SET used_at = $2 WHERE user_id = $1 AND used_at IS NULL";
const IS_ADMIN: &str = "SELECT is_admin FROM users WHERE id = $1 AND disabled_at IS NULL";

#[async_trait]
pub trait Invitations: Backend {
    async fn create_invitation(
        &self,
        invitation: &Invitation,
        actor: &Actor,
        at: i64,
    ) -> Result<(), ControlError> {
        let Invitation { purpose, user, .. } = invitation;
        if (*purpose == Purpose::Setup) == user.is_some() {
            return Err(checks::invalid(
                "a setup is for nobody yet, an invitation or a reset is for a user",
            ));
        }
        let mut change = Change::begin(self, actor, at).await?;
        if let Some(user) = user {
            let found = change.row(IS_ADMIN, values![*user]).await?;
            let found = found.ok_or(ControlError::NotFound)?;
            let grant = Grant::of_a_person(found.get("is_admin")?);
            change.grants(grant).await?;
            // The latest link is the one that counts.
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

    /// Answers it to the first who asks in time. Everybody else hears that there is none: used, expired and unknown look alike.
    async fn take_invitation(
        &self,
        token_hash: SecretHash,
        purpose: Purpose,
        actor: &Actor,
        at: i64,
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
