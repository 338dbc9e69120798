//! Sessions: logins, extended by single-use refresh tokens.
//!
//! Each row of the table is one refresh token. The tokens of a login form a family, whose id is the session's id. A
//! token that is reused is known to two parties, of whom either may be a thief, so the whole session ends. Within
//! [`AT_ONCE`], the reuse may come from the same party, which then gets the same successor again. A token has only one
//! successor, and that is single-use too.

use std::time::Duration;

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Notice, Row, values};
use super::change::{Change, Entry, new_id};
use super::error::ControlError;
use super::secrets::SecretHash;

/// How long a used token may be reused. This covers two tabs of a browser and lost responses.
const AT_ONCE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Stays the same when the refresh token changes.
    pub id: Uuid,
    pub user: Uuid,
    pub created_at: UnixTime,
    pub last_used_at: UnixTime,
    pub expires_at: UnixTime,
    pub revoked_at: Option<UnixTime>,
}

impl Session {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("family")?,
            user: row.id("user_id")?,
            created_at: row.get("created_at")?,
            last_used_at: row.get("last_used_at")?,
            expires_at: row.get("expires_at")?,
            revoked_at: row.get("revoked_at")?,
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct NewSession {
    pub user: Uuid,
    pub token_hash: SecretHash,
    pub expires_at: UnixTime,
    /// When the session ends, even if it is refreshed.
    pub ends_at: Option<UnixTime>,
}

/// The exchange of a refresh token for a new one. The successor must be deterministic, so that an immediate reuse gets
/// the same one.
#[derive(Clone, Copy, Debug)]
pub struct TokenExchange {
    pub old: SecretHash,
    pub new: SecretHash,
    /// When the new token, and with it the session, expires if unused.
    pub expires_at: UnixTime,
}

/// The outcome of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// Rotated now, or a moment ago by the same exchange.
    Rotated(Session),
    /// The token had already been used. The session is now revoked.
    Reused { session: Uuid, user: Uuid },
    /// The token is revoked or expired, or its user is disabled.
    Ended,
}

/// Inserts a session unless the user is disabled, with check and insert in one statement.
const INSERT: &str = "
    INSERT INTO sessions (id, family, user_id, token_hash, created_at, last_used_at, expires_at, ends_at)
    SELECT $1,
        $1, id, $3, $4, $4, $5, $6
    FROM users
    WHERE id = $2
      AND disabled_at IS NULL
    RETURNING family, user_id, created_at, last_used_at, expires_at, revoked_at";
const INSERT_NEXT: &str = "
    INSERT INTO sessions (id, family, user_id, token_hash, created_at, last_used_at, expires_at, ends_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    RETURNING family, user_id, created_at, last_used_at, expires_at, revoked_at";
/// A single statement rotates a token: of two concurrent attempts, the second finds it used. It checks the whole
/// family, because a revocation does not see a token that a concurrent rotation is about to add.
const ROTATE: &str = "
    UPDATE sessions
    SET rotated_to = $2, last_used_at = $3
    WHERE token_hash = $1
      AND rotated_to IS NULL
      AND revoked_at IS NULL
      AND expires_at > $3
      AND EXISTS (SELECT 1 FROM users WHERE users.id = sessions.user_id AND users.disabled_at IS NULL)
      AND NOT EXISTS (SELECT 1 FROM sessions AS kin WHERE kin.family = sessions.family AND kin.revoked_at IS NOT NULL)
    RETURNING family, user_id, created_at, ends_at";
/// The successor of a recently used token, if it is the requested one and its session has not ended.
const JUST_ROTATED: &str = "
    SELECT next.family, next.user_id, next.created_at, next.last_used_at, next.expires_at, next.revoked_at
    FROM sessions AS used
    JOIN sessions AS next ON next.id = used.rotated_to
    WHERE used.token_hash = $1
      AND next.token_hash = $2
      AND used.last_used_at > $3
      AND next.expires_at > $4
      AND EXISTS (SELECT 1 FROM users WHERE users.id = used.user_id AND users.disabled_at IS NULL)
      AND NOT EXISTS (SELECT 1 FROM sessions AS kin WHERE kin.family = used.family AND kin.revoked_at IS NOT NULL)";
const BY_TOKEN: &str = "SELECT family, user_id, rotated_to FROM sessions WHERE token_hash = $1";
const REVOKE: &str = "UPDATE sessions SET revoked_at = $2 WHERE family = $1 AND revoked_at IS NULL";
pub(super) const REVOKE_ALL_OF_USER: &str =
    "UPDATE sessions SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL";
/// The last token of each family represents the session.
const LIST: &str = "
    SELECT family, user_id, created_at, last_used_at, expires_at, revoked_at
    FROM sessions
    WHERE user_id = $1
      AND rotated_to IS NULL
      AND expires_at > $2
      AND NOT EXISTS (SELECT 1 FROM sessions AS kin WHERE kin.family = sessions.family AND kin.revoked_at IS NOT NULL)
    ORDER BY last_used_at DESC, id DESC
    LIMIT 100";
const FORGET: &str = "DELETE FROM sessions WHERE expires_at < $1";
const FORGET_INVITATIONS: &str = "DELETE FROM invitations WHERE expires_at < $1";

impl Control {
    /// Creates a session, unless the user is disabled.
    pub async fn create_session(
        &self,
        new: NewSession,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Session, ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        let expires_at = not_after(new.expires_at, new.ends_at);
        let id = new_id(at);
        let values = values![id, new.user, new.token_hash, at, expires_at, new.ends_at];
        let inserted = change.row(INSERT, values).await?;
        let session = Session::read(&inserted.ok_or(ControlError::NotFound)?)?;
        let detail = json!({"user": session.user, "expires_at": session.expires_at});
        let (action, subject) = (Action::SessionCreated, session.id.to_string());
        change
            .commit(Entry::of_installation(action, &subject, detail))
            .await?;
        Ok(session)
    }

    /// Exchanges a refresh token. Writes an audit entry only if a token is reused. Returns [`ControlError::NotFound`]
    /// for an unknown token.
    pub async fn rotate_session(
        &self,
        exchange: TokenExchange,
        at: UnixTime,
    ) -> Result<Rotation, ControlError> {
        // Looks the token up before taking the writer, so that invented tokens do not delay writes.
        self.row(BY_TOKEN, values![exchange.old]).await?;
        let actor = Actor::system("sessions");
        let mut change = Change::begin(self, &actor, at).await?;
        let next = new_id(at);
        let used = change.row(ROTATE, values![exchange.old, next, at]).await?;
        let Some(used) = used else {
            let values = values![exchange.old, exchange.new, at - AT_ONCE, at];
            if let Some(next) = change.row(JUST_ROTATED, values).await? {
                return Session::read(&next).map(Rotation::Rotated);
            }
            return refuse(change, exchange.old, at).await;
        };
        let ends_at: Option<UnixTime> = used.get("ends_at")?;
        let values = values![
            next,
            used.id("family")?,
            used.id("user_id")?,
            exchange.new,
            used.get::<UnixTime>("created_at")?,
            at,
            not_after(exchange.expires_at, ends_at),
            ends_at,
        ];
        let inserted = change.row(INSERT_NEXT, values).await?;
        let session = Session::read(&inserted.ok_or(ControlError::NotFound)?)?;
        change.commit_unrecorded(Notice::Silent).await?;
        Ok(Rotation::Rotated(session))
    }

    pub async fn revoke_session(
        &self,
        id: Uuid,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let subject = id.to_string();
        let entry = Entry::of_installation(Action::SessionRevoked, &subject, json!({}));
        self.change_once((REVOKE, values![id, at]), entry, actor, at)
            .await
    }

    pub async fn revoke_sessions_of(
        &self,
        user: Uuid,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        change
            .execute(REVOKE_ALL_OF_USER, values![user, at])
            .await?;
        let (action, subject) = (Action::SessionsOfUserRevoked, user.to_string());
        change
            .commit(Entry::of_installation(action, &subject, json!({})))
            .await
    }

    /// Returns the active sessions of a user, most recently used first, at most 100. Older ones are ignored.
    pub async fn sessions_of(
        &self,
        user: Uuid,
        now: UnixTime,
    ) -> Result<Vec<Session>, ControlError> {
        self.records(LIST, values![user, now], Session::read).await
    }

    /// Deletes sessions and invitations that expired before a time. Each refresh of a session leaves a row behind.
    pub async fn forget_expired(&self, before: UnixTime) -> Result<u64, ControlError> {
        let actor = Actor::system("sessions");
        let mut change = Change::begin(self, &actor, before).await?;
        let sessions = change.execute(FORGET, values![before]).await?;
        let invitations = change.execute(FORGET_INVITATIONS, values![before]).await?;
        change.commit_unrecorded(Notice::Silent).await?;
        Ok(sessions + invitations)
    }
}

fn not_after(expires_at: UnixTime, ends_at: Option<UnixTime>) -> UnixTime {
    ends_at.map_or(expires_at, |end| expires_at.min(end))
}

/// Returns why a token was not rotated. If it was reused, revokes its session.
async fn refuse(
    mut change: Change<'_>,
    token: SecretHash,
    at: UnixTime,
) -> Result<Rotation, ControlError> {
    let known = change.row(BY_TOKEN, values![token]).await?;
    let known = known.ok_or(ControlError::NotFound)?;
    if known.get::<Option<String>>("rotated_to")?.is_none() {
        return Ok(Rotation::Ended);
    }
    let (session, user) = (known.id("family")?, known.id("user_id")?);
    change.execute(REVOKE, values![session, at]).await?;
    let detail = json!({"user": user});
    let (action, subject) = (Action::SessionReused, session.to_string());
    change
        .commit(Entry::of_installation(action, &subject, detail))
        .await?;
    Ok(Rotation::Reused { session, user })
}
