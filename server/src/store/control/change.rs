//! A change: one transaction that says who did what. It cannot be committed without an entry for the audit, unless it says why not.

use serde_json::Value as Json;
use uuid::{NoContext, Timestamp, Uuid};

use super::audit::{Action, Actor};
use super::backend::{Backend, Notice, Row, Statements, Values, values};
use super::error::ControlError;

pub(super) struct Change<'a> {
    statements: Box<dyn Statements>,
    actor: &'a Actor,
    at: i64,
    /// What the entries recorded so far ask for.
    notice: Notice,
    /// How many entries were recorded so far.
    entries: i64,
}

/// What the audit keeps of a change. Never secrets, nor hashes of them.
pub(super) struct Entry<'a> {
    pub(super) action: Action,
    pub(super) project: Option<&'a str>,
    pub(super) subject: &'a str,
    pub(super) detail: Json,
}

const INSERT_AUDIT: &str = "INSERT INTO audit (id, at, actor, actor_kind, project, action, subject, detail) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

impl<'a> Change<'a> {
    pub(super) async fn begin(
        backend: &(impl Backend + ?Sized),
        actor: &'a Actor,
        at: i64,
    ) -> Result<Self, ControlError> {
        Ok(Self {
            statements: backend.begin().await?,
            actor,
            at,
            notice: Notice::Silent,
            entries: 0,
        })
    }

    pub(super) fn actor(&self) -> &'a Actor {
        self.actor
    }

    /// Microseconds since the epoch.
    pub(super) fn at(&self) -> i64 {
        self.at
    }

    pub(super) async fn rows(
        &mut self,
        sql: &'static str,
        values: Values,
    ) -> Result<Vec<Row>, ControlError> {
        self.statements.rows(sql, values).await
    }

    pub(super) async fn row(
        &mut self,
        sql: &'static str,
        values: Values,
    ) -> Result<Option<Row>, ControlError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Answers how many rows were affected.
    pub(super) async fn execute(
        &mut self,
        sql: &'static str,
        values: Values,
    ) -> Result<u64, ControlError> {
        self.statements.execute(sql, values).await
    }

    /// Runs a statement that must find what it changes.
    pub(super) async fn execute_found(
        &mut self,
        sql: &'static str,
        values: Values,
    ) -> Result<(), ControlError> {
        match self.execute(sql, values).await? {
            0 => Err(ControlError::NotFound),
            _ => Ok(()),
        }
    }

    pub(super) async fn commit(mut self, entry: Entry<'_>) -> Result<(), ControlError> {
        self.record(entry).await?;
        self.commit_recorded().await
    }

    /// Writes an entry for one of several things that this change does.
    pub(super) async fn record(&mut self, entry: Entry<'_>) -> Result<(), ControlError> {
        // A microsecond apart, so that the audit log keeps their order.
        let at = self.at + self.entries;
        let values = values![
            new_id(at),
            at,
            self.actor.name.as_str(),
            self.actor.kind.as_str(),
            entry.project,
            entry.action.as_str(),
            entry.subject,
            entry.detail.to_string(),
        ];
        self.statements.execute(INSERT_AUDIT, values).await?;
        self.entries += 1;
        if entry.action.notice() == Notice::Tick {
            self.notice = Notice::Tick;
        }
        Ok(())
    }

    /// Commits what was recorded entry by entry. A change without an entry changed nothing.
    pub(super) async fn commit_recorded(self) -> Result<(), ControlError> {
        self.statements.commit(self.notice).await
    }

    /// For what is a use or housekeeping rather than a change.
    pub(super) async fn commit_unrecorded(self, notice: Notice) -> Result<(), ControlError> {
        self.statements.commit(notice).await
    }
}

/// A UUID v7 of the time of the change, so that ids sort by it.
#[must_use]
pub fn new_id(at: i64) -> Uuid {
    let micros = u64::try_from(at).unwrap_or_default();
    let nanos = u32::try_from(micros % 1_000_000 * 1_000).unwrap_or_default();
    Uuid::new_v7(Timestamp::from_unix(NoContext, micros / 1_000_000, nanos))
}

/// The first row of a read.
pub(super) async fn row(
    backend: &(impl Backend + ?Sized),
    sql: &'static str,
    values: Values,
) -> Result<Row, ControlError> {
    let rows = backend.rows(sql, values).await?;
    rows.into_iter().next().ok_or(ControlError::NotFound)
}

/// All rows of a read, each as a record.
pub(super) async fn records<T>(
    backend: &(impl Backend + ?Sized),
    sql: &'static str,
    values: Values,
    read: impl Fn(&Row) -> Result<T, ControlError>,
) -> Result<Vec<T>, ControlError> {
    backend.rows(sql, values).await?.iter().map(read).collect()
}
