//! Sessions: logins, kept alive by refresh tokens of which each works once.
//!
//! A row of the table is one refresh token; the tokens of one login are a family, and the family's id is the session's. A token that
//! comes back after it was used is in two hands, and nobody can tell which is the thief's: the whole session ends. Only within
//! [`AT_ONCE`] it may be the same hand, and gets the same successor again: of the successors there is one, and it works once too.

use async_trait::async_trait;
use serde_json::json;
use uuid::Uuid;

use super::audit::{Action, Actor};
use super::backend::{Backend, Notice, Row, values};
use super::change::{Change, Entry, new_id, records, row};
use super::error::ControlError;
use super::secrets::SecretHash;

/// How long after its use a token may come again, in microseconds: two tabs of one browser, an answer that was lost.
const AT_ONCE: i64 = 30 * 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Stays the same however often the refresh token changes.
    pub id: Uuid,
    pub user: Uuid,
    pub created_at: i64,
    pub last_used_at: i64,
    pub expires_at: i64,
    pub revoked_at: Option<i64>,
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
    pub expires_at: i64,
    /// When the session ends however often it is refreshed.
    pub ends_at: Option<i64>,
}

/// An old refresh token for a new one. Only who always names the same successor is let on when the old one comes again at once.
#[derive(Clone, Copy, Debug)]
pub struct TokenExchange {
    pub old: SecretHash,
    pub new: SecretHash,
    /// When the new one, and with it the session, ends unless it is used.
    pub expires_at: i64,
}

/// What became of a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// Now, or a moment ago by the same exchange.
    Rotated(Session),
    /// It had been used already: the session is revoked now.
    Reused { session: Uuid, user: Uuid },
    /// Revoked, expired, or its user is disabled.
    Ended,
}

/// Only a user who is not disabled; the check and the insert are one statement.
const INSERT: &str = "INSERT INTO sessions (id, family, user_id, token_hash, created_at, last_used_at, expires_at, ends_at) \
     SELECT $1, $1, id, $3, $4, $4, $5, $6 FROM users WHERE id = $2 AND disabled_at IS NULL \
     RETURNING family, user_id, created_at, last_used_at, expires_at, revoked_at";
const INSERT_NEXT: &str = "INSERT INTO sessions (id, family, user_id, token_hash, created_at, last_used_at, expires_at, ends_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING family, user_id, created_at, last_used_at, expires_at, revoked_at";
/// One statement decides who rotates a token: of two at once, the second finds it used. It looks at the whole family, since a
/// revocation does not see the token that a rotation is just about to add.
const ROTATE: &str = "UPDATE sessions SET rotated_to = $2, last_used_at = $3 \
     WHERE token_hash = $1 AND rotated_to IS NULL AND revoked_at IS NULL AND expires_at > $3 \
     AND EXISTS (SELECT 1 FROM users WHERE users.id = sessions.user_id AND users.disabled_at IS NULL) \
     AND NOT EXISTS (SELECT 1 FROM sessions AS kin WHERE kin.family = sessions.family AND kin.revoked_at IS NOT NULL) \
     RETURNING family, user_id, created_at, ends_at";
/// The successor of a token that was used a moment ago, if it is the one that is asked for and its session lives.
const JUST_ROTATED: &str = "SELECT next.family, next.user_id, next.created_at, next.last_used_at, next.expires_at, next.revoked_at \
     FROM sessions AS used JOIN sessions AS next ON next.id = used.rotated_to \
     WHERE used.token_hash = $1 AND next.token_hash = $2 AND used.last_used_at > $3 AND next.expires_at > $4 \
     AND EXISTS (SELECT 1 FROM users WHERE users.id = used.user_id AND users.disabled_at IS NULL) \
     AND NOT EXISTS (SELECT 1 FROM sessions AS kin WHERE kin.family = used.family AND kin.revoked_at IS NOT NULL)";
const BY_TOKEN: &str = "SELECT family, user_id, rotated_to FROM sessions WHERE token_hash = $1";
const REVOKE: &str = "UPDATE sessions SET revoked_at = $2 WHERE family = $1 AND revoked_at IS NULL";
pub(super) const REVOKE_ALL_OF_USER: &str =
    "UPDATE sessions SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL";
/// The last token of each family stands for the session.
const LIST: &str = "SELECT family, user_id, created_at, last_used_at, expires_at, revoked_at FROM sessions \
     WHERE user_id = $1 AND rotated_to IS NULL AND expires_at > $2 \
     AND NOT EXISTS (SELECT 1 FROM sessions AS kin WHERE kin.family = sessions.family AND kin.revoked_at IS NOT NULL) \
     ORDER BY last_used_at DESC, id DESC LIMIT 100";
const FORGET: &str = "DELETE FROM sessions WHERE expires_at < $1";
const FORGET_INVITATIONS: &str = "DELETE FROM invitations WHERE expires_at < $1";

#[async_trait]
pub trait Sessions: Backend {
    /// Not for a user who is disabled.
    async fn create_session(
        &self,
        new: NewSession,
        actor: &Actor,
        at: i64,
    ) -> Result<Session, ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        let expires_at = not_after(new.expires_at, new.ends_at);
        let id = new_id(at);
        let values = values![id, new.user, new.token_hash, at, expires_at, new.ends_at];
        let inserted = change.row(INSERT, values).await?;
        let session = Session::read(&inserted.ok_or(ControlError::NotFound)?)?;
        let detail = json!({"user": session.user, "expires_at": session.expires_at});
        let (action, subject) = (Action::SessionCreated, session.id.to_string());
        change.commit(entry(action, &subject, detail)).await?;
        Ok(session)
    }

    /// Nothing that people did, so the audit hears of it only when a token comes back. An unknown token is not found.
    async fn rotate_session(
        &self,
        exchange: TokenExchange,
        at: i64,
    ) -> Result<Rotation, ControlError> {
        // Looks the token up before taking the writer: an invented token must not delay writes.
        row(self, BY_TOKEN, values![exchange.old]).await?;
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
        let ends_at: Option<i64> = used.get("ends_at")?;
        let values = values![
            next,
            used.id("family")?,
            used.id("user_id")?,
            exchange.new,
            used.get::<i64>("created_at")?,
            at,
            not_after(exchange.expires_at, ends_at),
            ends_at,
        ];
        let inserted = change.row(INSERT_NEXT, values).await?;
        let session = Session::read(&inserted.ok_or(ControlError::NotFound)?)?;
        change.commit_unrecorded(Notice::Silent).await?;
        Ok(Rotation::Rotated(session))
    }

    async fn revoke_session(&self, id: Uuid, actor: &Actor, at: i64) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        change.execute_found(REVOKE, values![id, at]).await?;
        let (action, subject) = (Action::SessionRevoked, id.to_string());
        change.commit(entry(action, &subject, json!({}))).await
    }

    async fn revoke_sessions_of(
        &self,
        user: Uuid,
        actor: &Actor,
        at: i64,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        change
            .execute(REVOKE_ALL_OF_USER, values![user, at])
            .await?;
        let (action, subject) = (Action::SessionsOfUserRevoked, user.to_string());
        change.commit(entry(action, &subject, json!({}))).await
    }

    /// Those that are alive, the one used last first: a hundred. Older ones do not count.
    async fn sessions_of(&self, user: Uuid, now: i64) -> Result<Vec<Session>, ControlError> {
        records(self, LIST, values![user, now], Session::read).await
    }

    /// Deletes sessions and invitations that expired before that time: a session leaves a row each time it is refreshed.
    async fn forget_expired(&self, before: i64) -> Result<u64, ControlError> {
        let actor = Actor::system("sessions");
        let mut change = Change::begin(self, &actor, before).await?;
        let sessions = change.execute(FORGET, values![before]).await?;
        let invitations = change.execute(FORGET_INVITATIONS, values![before]).await?;
        change.commit_unrecorded(Notice::Silent).await?;
        Ok(sessions + invitations)
    }
}

fn not_after(expires_at: i64, ends_at: Option<i64>) -> i64 {
    ends_at.map_or(expires_at, |end| expires_at.min(end))
}

/// Why a token did not rotate; one that was used before takes its session along.
async fn refuse(
    mut change: Change<'_>,
    token: SecretHash,
    at: i64,
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
    change.commit(entry(action, &subject, detail)).await?;
    Ok(Rotation::Reused { session, user })
}

fn entry(action: Action, session: &str, detail: serde_json::Value) -> Entry<'_> {
    Entry {
        action,
        project: None,
        subject: session,
        detail,
    }
}
