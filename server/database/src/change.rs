//! A change: a transaction with an actor. It is committed with an audit entry, or explicitly without one.

use std::time::Duration;

use serde_json::{Value as Json, json};
use unjank_foundation::clock::UnixTime;
use uuid::{NoContext, Timestamp, Uuid};

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Notice, Row, Statements, Values, values};
use super::error::ControlError;
use super::names;

pub(super) struct Change<'a> {
    statements: Box<dyn Statements>,
    actor: &'a Actor,
    at: UnixTime,
    /// The notice that the entries recorded so far require.
    notice: Notice,
    /// The number of entries recorded so far.
    entries: u64,
}

/// The audit entry of a change. It must contain neither secrets nor their hashes.
pub(super) struct Entry<'a> {
    pub(super) action: Action,
    pub(super) project: Option<&'a str>,
    pub(super) subject: &'a str,
    pub(super) detail: Json,
}

impl<'a> Entry<'a> {
    /// Returns the entry of a change that belongs to no project.
    pub(super) fn of_installation(action: Action, subject: &'a str, detail: Json) -> Self {
        Self {
            action,
            project: None,
            subject,
            detail,
        }
    }
}

const INSERT_AUDIT: &str = "
    INSERT INTO audit (id, at, actor, actor_kind, project, action, subject, detail)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

impl Control {
    /// Makes a change of one statement. Returns [`ControlError::NotFound`] if the statement affects no row.
    pub(super) async fn change_once(
        &self,
        (sql, values): (&'static str, Values),
        entry: Entry<'_>,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        change.execute_found(sql, values).await?;
        change.commit(entry).await
    }

    /// Like [`Self::change_once`], for an object of a project. The values of the statement are the project, the id of the object and the time.
    pub(super) async fn change_object(
        &self,
        sql: &'static str,
        action: Action,
        (project, id): (&str, Uuid),
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let entry = Entry {
            action,
            project: Some(project),
            subject: &id.to_string(),
            detail: json!({}),
        };
        self.change_once((sql, values![project, id, at]), entry, actor, at)
            .await
    }
}

impl<'a> Change<'a> {
    pub(super) async fn begin(
        control: &Control,
        actor: &'a Actor,
        at: UnixTime,
    ) -> Result<Self, ControlError> {
        Ok(Self {
            statements: control.begin().await?,
            actor,
            at,
            notice: Notice::Silent,
            entries: 0,
        })
    }

    pub(super) fn actor(&self) -> &'a Actor {
        self.actor
    }

    pub(super) fn at(&self) -> UnixTime {
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

    /// Executes a statement and returns the number of affected rows.
    pub(super) async fn execute(
        &mut self,
        sql: &'static str,
        values: Values,
    ) -> Result<u64, ControlError> {
        self.statements.execute(sql, values).await
    }

    /// Executes a statement and returns [`ControlError::NotFound`] if it affects no row.
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

    /// Adds an audit entry for one of several parts of this change.
    ///
    /// The entry gets the name of its subject, unless its detail has one already, because the subject may be deleted later.
    pub(super) async fn record(&mut self, mut entry: Entry<'_>) -> Result<(), ControlError> {
        if let Some(detail) = entry.detail.as_object_mut()
            && !detail.contains_key("name")
            && entry.subject.parse::<Uuid>().is_ok()
            && let Some(row) = self
                .row(names::NAMES, names::values_of([entry.subject]))
                .await?
        {
            detail.insert("name".to_owned(), names::read(&row)?.1.into());
        }
        // One microsecond apart, so that the audit log preserves the order.
        let at = self.at + Duration::from_micros(self.entries);
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

    /// Commits a change whose entries were recorded with [`Self::record`]. Without entries, it must not have changed
    /// anything.
    pub(super) async fn commit_recorded(self) -> Result<(), ControlError> {
        self.statements.commit(self.notice).await
    }

    /// Commits without an audit entry, for the recording of uses and for housekeeping.
    pub(super) async fn commit_unrecorded(self, notice: Notice) -> Result<(), ControlError> {
        self.statements.commit(notice).await
    }
}

/// Returns a UUID v7 with the time of the change, so that ids sort by time.
#[must_use]
pub fn new_id(at: UnixTime) -> Uuid {
    let micros = u64::try_from(at.as_micros()).unwrap_or_default();
    let nanos = u32::try_from(micros % 1_000_000 * 1_000).unwrap_or_default();
    Uuid::new_v7(Timestamp::from_unix(NoContext, micros / 1_000_000, nanos))
}
