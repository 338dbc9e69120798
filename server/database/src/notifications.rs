//! Notifications: the messages to send and the delivery log.

use serde_json::Value as Json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Notice, Row, Statements, values};
use super::change::new_id;
use super::checks::{self, page};
use super::erased_alerts::{FINISHED, FinishedErasures, LOCK_PROJECT};
use super::error::ControlError;
use super::text_enum::text_enum;

text_enum! {
    /// The state of a notification.
    NotificationState { Waiting = "waiting", Sending = "sending", Delivered = "delivered", Failed = "failed" }
}

/// A message to send.
#[derive(Clone, Debug)]
pub struct NewNotification {
    pub project: String,
    pub channel: Uuid,
    pub key: String,
    pub thread: String,
    pub subject: String,
    pub body: Json,
}

/// A message of the delivery log.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    pub id: Uuid,
    pub project: String,
    pub channel: Uuid,
    pub key: String,
    pub subject: String,
    pub body: Json,
    pub state: NotificationState,
    pub attempts: i64,
    pub next_attempt_at: UnixTime,
    pub last_error: Option<String>,
    pub created_at: UnixTime,
    pub delivered_at: Option<UnixTime>,
}

impl Notification {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            project: row.get("project")?,
            channel: row.id("channel")?,
            key: row.get("key")?,
            subject: row.get("subject")?,
            body: row.json("body")?,
            state: row.parsed("state")?,
            attempts: row.get("attempts")?,
            next_attempt_at: row.get("next_attempt_at")?,
            last_error: row.get("last_error")?,
            created_at: row.get("created_at")?,
            delivered_at: row.get("delivered_at")?,
        })
    }
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    Delivered,
    /// The next attempt is at `at`.
    Later {
        at: UnixTime,
        error: String,
    },
    GivenUp {
        error: String,
    },
}

/// A filter of a project's notifications.
#[derive(Clone, Debug, Default)]
pub struct NotificationFilter {
    pub channel: Option<Uuid>,
    pub state: Option<NotificationState>,
    /// The last one of the previous page.
    pub before: Option<Uuid>,
}

/// The messages that are not finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    pub waiting: i64,
    pub oldest_created_at: Option<UnixTime>,
}

macro_rules! columns {
    () => {
        "id, project, channel, key, subject, body, state, attempts, next_attempt_at, last_error, created_at, delivered_at"
    };
}
/// `created_at` always increases within a thread, because the clocks of servers differ and may stall.
const INSERT: &str = "
    INSERT INTO notifications (id, project, channel, key, thread, subject, body, state, attempts, next_attempt_at,
        created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, 'waiting', 0, $8, (
        SELECT CASE WHEN COALESCE(MAX(created_at), 0) >= $8 THEN MAX(created_at) + 1 ELSE $8 END
        FROM notifications
        WHERE channel = $3 AND thread = $5
    ))
    ON CONFLICT (key) DO NOTHING";
const IS_DUE: &str = "
    SELECT id
    FROM notifications
    WHERE state IN ('waiting', 'sending')
      AND next_attempt_at <= $1
    LIMIT 1";
/// One message at a time per channel, so that a slow channel does not block the others. In order within a thread.
const CLAIM: &str = concat!(
    "
    UPDATE notifications
    SET state = 'sending', attempts = attempts + 1, next_attempt_at = $2
    WHERE state IN ('waiting', 'sending')
      AND next_attempt_at <= $1
      AND id IN (
        SELECT MIN(due.id)
        FROM notifications AS due
        WHERE due.state IN ('waiting', 'sending')
          AND due.next_attempt_at <= $1
          AND NOT EXISTS (
            SELECT 1
            FROM notifications AS other
            WHERE other.channel = due.channel
              AND other.state IN ('waiting', 'sending')
              AND ((other.thread = due.thread AND other.created_at < due.created_at)
                OR (other.state = 'sending' AND other.next_attempt_at > $1))
          )
        GROUP BY due.channel
        ORDER BY MIN(due.next_attempt_at)
        LIMIT $3
      )
    RETURNING ",
    columns!()
);
const IS_CLAIMED: &str = "
    SELECT id
    FROM notifications
    WHERE id = $1
      AND attempts = $2
      AND state = 'sending'";
/// Only for the current claim, because an expired one may belong to another server by now.
const SETTLE: &str = "
    UPDATE notifications
    SET state = $3, next_attempt_at = $4, last_error = $5, delivered_at = $6
    WHERE id = $1
      AND attempts = $2
      AND state = 'sending'";
const LIST: &str = concat!(
    "
    SELECT ",
    columns!(),
    "
    FROM notifications
    WHERE project = $1
      AND (CAST($2 AS TEXT) IS NULL OR channel = $2)
      AND (CAST($3 AS TEXT) IS NULL OR state = $3)
      AND (CAST($4 AS TEXT) IS NULL OR id < $4)
    ORDER BY id DESC
    LIMIT $5"
);
const RETRY: &str = "
    UPDATE notifications
    SET state = 'waiting', attempts = 0, next_attempt_at = $3
    WHERE project = $1
      AND id = $2
      AND state = 'failed'";
const BACKLOG: &str = "
    SELECT COUNT(*) AS waiting, MIN(created_at) AS oldest
    FROM notifications
    WHERE state IN ('waiting', 'sending')";
const HAS_KEY: &str = "SELECT id FROM notifications WHERE key = $1";
const FORGET: &str =
    "DELETE FROM notifications WHERE state IN ('delivered', 'failed') AND created_at < $1";
impl Control {
    /// Saves a message unless one with its key exists, or an erasure has finished since `before`, which is from before the rows of the message
    /// were read. Returns whether it was saved.
    pub async fn notify(
        &self,
        new: &NewNotification,
        before: &FinishedErasures,
        at: UnixTime,
    ) -> Result<bool, ControlError> {
        let mut statements = self.begin().await?;
        let project = new.project.as_str();
        statements.execute(LOCK_PROJECT, values![project]).await?;
        let finished = statements.rows(FINISHED, values![project]).await?;
        if FinishedErasures::read(&finished)? != *before {
            return Ok(false);
        }
        let written = insert(&mut *statements, new, at).await?;
        statements.commit(Notice::Silent).await?;
        Ok(written)
    }

    /// Whether a message with this key exists.
    pub async fn is_notified(&self, key: &str) -> Result<bool, ControlError> {
        Ok(!self.rows(HAS_KEY, values![key]).await?.is_empty())
    }

    /// Claims messages that are due, at most one per channel. The claims expire at `until`.
    pub async fn claim(
        &self,
        now: UnixTime,
        until: UnixTime,
        limit: u32,
    ) -> Result<Vec<Notification>, ControlError> {
        // Usually nothing is due, and this query takes no locks.
        if self.rows(IS_DUE, values![now]).await?.is_empty() {
            return Ok(Vec::new());
        }
        let mut statements = self.begin().await?;
        let rows = statements
            .rows(CLAIM, values![now, until, page(limit)])
            .await?;
        let claimed: Result<Vec<_>, _> = rows.iter().map(Notification::read).collect();
        statements.commit(Notice::Silent).await?;
        claimed
    }

    /// Whether no other server has claimed a message since, or saved its outcome.
    pub async fn is_claimed(&self, claimed: &Notification) -> Result<bool, ControlError> {
        let values = values![claimed.id, claimed.attempts];
        Ok(!self.rows(IS_CLAIMED, values).await?.is_empty())
    }

    /// Saves the outcome of a claimed message. Returns `false` if the claim was no longer valid.
    pub async fn settle(
        &self,
        claimed: &Notification,
        attempt: &Attempt,
        at: UnixTime,
    ) -> Result<bool, ControlError> {
        let (state, next, error) = match attempt {
            Attempt::Delivered => (NotificationState::Delivered, at, None),
            Attempt::Later { at, error } => (NotificationState::Waiting, *at, Some(error)),
            Attempt::GivenUp { error } => (NotificationState::Failed, at, Some(error)),
        };
        let delivered_at = (*attempt == Attempt::Delivered).then_some(at);
        let values = values![
            claimed.id,
            claimed.attempts,
            state.as_str(),
            next,
            error.cloned(),
            delivered_at,
        ];
        let mut statements = self.begin().await?;
        let settled = statements.execute(SETTLE, values).await?;
        statements.commit(Notice::Silent).await?;
        Ok(settled > 0)
    }

    /// Returns a page of the delivery log, latest first.
    pub async fn notifications(
        &self,
        project: &str,
        filter: &NotificationFilter,
        limit: u32,
    ) -> Result<Vec<Notification>, ControlError> {
        let values = values![
            project,
            filter.channel,
            filter.state.map(NotificationState::as_str),
            filter.before,
            page(limit),
        ];
        self.records(LIST, values, Notification::read).await
    }

    /// Sends a failed message again, with all its attempts.
    pub async fn retry_notification(
        &self,
        project: &str,
        id: Uuid,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let object = (project, id);
        self.change_object(RETRY, Action::NotificationRetried, object, actor, at)
            .await
    }

    pub async fn backlog(&self) -> Result<Backlog, ControlError> {
        let rows = self.rows(BACKLOG, values![]).await?;
        let row = rows.first().ok_or(ControlError::NotFound)?;
        Ok(Backlog {
            waiting: row.get("waiting")?,
            oldest_created_at: row.get("oldest")?,
        })
    }

    /// Deletes finished messages that were created before this time. Returns their number.
    pub async fn delete_finished_notifications(
        &self,
        before: UnixTime,
    ) -> Result<u64, ControlError> {
        let mut statements = self.begin().await?;
        let forgotten = statements.execute(FORGET, values![before]).await?;
        statements.commit(Notice::Silent).await?;
        Ok(forgotten)
    }
}

pub(super) async fn insert(
    statements: &mut dyn Statements,
    new: &NewNotification,
    at: UnixTime,
) -> Result<bool, ControlError> {
    if new.key.len() > 200 {
        return Err(checks::invalid("the key of a notification is too long"));
    }
    let values = values![
        new_id(at),
        new.project.as_str(),
        new.channel,
        new.key.as_str(),
        new.thread.as_str(),
        new.subject.as_str(),
        new.body.to_string(),
        at,
    ];
    Ok(statements.execute(INSERT, values).await? > 0)
}
