//! Projects: what keys, members, configurations and events belong to.

use async_trait::async_trait;
use serde_json::json;

use super::audit::{Action, Actor};
use super::backend::{Backend, Row, values};
use super::change::{Change, Entry, records, row};
use super::checks;
use super::error::ControlError;

/// The most that a project or a key may send. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    pub events_per_second: Option<u64>,
    pub bytes_per_day: Option<u64>,
}

impl Quotas {
    pub(super) fn read(row: &Row) -> Result<Self, ControlError> {
        let quota = |column| -> Result<Option<u64>, ControlError> {
            let kept = row.get::<Option<i64>>(column)?;
            Ok(kept.and_then(|most| u64::try_from(most).ok()))
        };
        Ok(Self {
            events_per_second: quota("events_per_second")?,
            bytes_per_day: quota("bytes_per_day")?,
        })
    }

    pub(super) fn json(&self) -> serde_json::Value {
        json!({"events_per_second": self.events_per_second, "bytes_per_day": self.bytes_per_day})
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// `^[a-z0-9][a-z0-9-]{0,62}$`, and for ever.
    pub id: String,
    pub name: String,
    pub quotas: Quotas,
    pub created_at: i64,
}

impl Project {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            quotas: Quotas::read(row)?,
            created_at: row.get("created_at")?,
        })
    }
}

/// What can be said of a project, new or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectSettings {
    pub name: String,
    pub quotas: Quotas,
}

const INSERT: &str = "INSERT INTO projects (id, name, events_per_second, bytes_per_day, created_at) \
     VALUES ($1, $2, $3, $4, $5)";
const UPDATE: &str = "UPDATE projects SET name = $2, events_per_second = $3, bytes_per_day = $4 WHERE id = $1 \
     RETURNING id, name, events_per_second, bytes_per_day, created_at";
const GET: &str =
    "SELECT id, name, events_per_second, bytes_per_day, created_at FROM projects WHERE id = $1";
const LIST: &str =
    "SELECT id, name, events_per_second, bytes_per_day, created_at FROM projects ORDER BY id";

#[async_trait]
pub trait Projects: Backend {
    async fn create_project(
        &self,
        id: &str,
        settings: ProjectSettings,
        actor: &Actor,
        at: i64,
    ) -> Result<Project, ControlError> {
        checks::slug(id)?;
        checks::name(&settings.name)?;
        let (per_second, per_day) = quotas(&settings)?;
        let mut change = Change::begin(self, actor, at).await?;
        let values = values![id, settings.name.as_str(), per_second, per_day, at];
        change.execute(INSERT, values).await?;
        change
            .commit(entry(Action::ProjectCreated, id, &settings))
            .await?;
        Ok(Project {
            id: id.to_owned(),
            name: settings.name,
            quotas: settings.quotas,
            created_at: at,
        })
    }

    async fn update_project(
        &self,
        id: &str,
        settings: ProjectSettings,
        actor: &Actor,
        at: i64,
    ) -> Result<Project, ControlError> {
        checks::name(&settings.name)?;
        let (per_second, per_day) = quotas(&settings)?;
        let mut change = Change::begin(self, actor, at).await?;
        let values = values![id, settings.name.as_str(), per_second, per_day];
        let updated = change.row(UPDATE, values).await?;
        let project = Project::read(&updated.ok_or(ControlError::NotFound)?)?;
        change
            .commit(entry(Action::ProjectUpdated, id, &settings))
            .await?;
        Ok(project)
    }

    async fn project(&self, id: &str) -> Result<Project, ControlError> {
        Project::read(&row(self, GET, values![id]).await?)
    }

    /// All of them, by id.
    async fn projects(&self) -> Result<Vec<Project>, ControlError> {
        records(self, LIST, values![], Project::read).await
    }
}

fn quotas(settings: &ProjectSettings) -> Result<(Option<i64>, Option<i64>), ControlError> {
    Ok((
        checks::quota(settings.quotas.events_per_second)?,
        checks::quota(settings.quotas.bytes_per_day)?,
    ))
}

fn entry<'a>(action: Action, id: &'a str, settings: &ProjectSettings) -> Entry<'a> {
    Entry {
        action,
        project: Some(id),
        subject: id,
        detail: json!({"name": settings.name, "quotas": settings.quotas.json()}),
    }
}
