//! Projects, to which keys, members, configurations and events belong.

use serde_json::json;
use unjank_foundation::clock::UnixTime;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, values};
use super::change::{Change, Entry};
use super::checks;
use super::erasures::refuse_erased;
use super::error::ControlError;
use super::signal_quotas::SignalQuotas;
use super::text_enum::text_enum;

/// Limits on what a project or a key may send. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    pub events_per_second: Option<u64>,
    pub bytes_per_day: Option<u64>,
}

impl Quotas {
    /// Whether one of the limits is higher than the other's, or missing.
    #[must_use]
    pub fn allow_more_than(&self, other: &Self) -> bool {
        let is_more = |own: Option<u64>, other: Option<u64>| {
            other.is_some_and(|other| own.is_none_or(|own| own > other))
        };
        is_more(self.events_per_second, other.events_per_second)
            || is_more(self.bytes_per_day, other.bytes_per_day)
    }

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

text_enum! {
    /// Whether devices must use tokens from the app's own back end, or may use an ingest key.
    DeviceTokens { Optional = "optional", Required = "required" }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// `^[a-z0-9][a-z0-9-]{0,62}$`. It never changes.
    pub id: String,
    pub settings: ProjectSettings,
    pub created_at: UnixTime,
}

impl Project {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.get("id")?,
            settings: ProjectSettings {
                name: row.get("name")?,
                quotas: Quotas::read(row)?,
                signal_quotas: SignalQuotas::read(row)?,
                device_tokens: row.parsed("device_tokens")?,
            },
            created_at: row.get("created_at")?,
        })
    }
}

/// The settings of a new or existing project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectSettings {
    pub name: String,
    pub quotas: Quotas,
    /// Limits on individual signals.
    pub signal_quotas: SignalQuotas,
    pub device_tokens: DeviceTokens,
}

impl ProjectSettings {
    /// Returns settings without limits, and with ingest keys allowed.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            quotas: Quotas::default(),
            signal_quotas: SignalQuotas::default(),
            device_tokens: DeviceTokens::Optional,
        }
    }
}

macro_rules! columns {
    () => {
        "id, name, events_per_second, bytes_per_day, signal_quotas, device_tokens, created_at"
    };
}

/// A new project has no device key yet, so it cannot require tokens.
const INSERT: &str = concat!(
    "
    INSERT INTO projects (id, name, events_per_second, bytes_per_day, signal_quotas, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    RETURNING ",
    columns!()
);
/// Tokens cannot be required while the project has no active device key.
const UPDATE: &str = concat!(
    "
    UPDATE projects
    SET name = $2, events_per_second = $3, bytes_per_day = $4, signal_quotas = $5, device_tokens = $6
    WHERE id = $1
      AND ($6 = device_tokens OR $6 <> 'required' OR EXISTS (SELECT 1 FROM device_keys
          WHERE device_keys.project = projects.id AND device_keys.revoked_at IS NULL))
    RETURNING ",
    columns!()
);
/// Locks a project until the transaction ends, so that what was read stays true.
const LOCK: &str = concat!(
    "UPDATE projects SET name = name WHERE id = $1 RETURNING ",
    columns!()
);
const GET: &str = concat!("SELECT ", columns!(), " FROM projects WHERE id = $1");
const LIST: &str = concat!("SELECT ", columns!(), " FROM projects ORDER BY id");

impl Control {
    pub async fn create_project(
        &self,
        id: &str,
        settings: ProjectSettings,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Project, ControlError> {
        checks::slug(id)?;
        checks::name(&settings.name)?;
        if settings.device_tokens == DeviceTokens::Required {
            return Err(no_device_key());
        }
        let (per_second, per_day) = quotas(&settings)?;
        let mut change = Change::begin(self, actor, at).await?;
        refuse_erased(&mut change, id).await?;
        let signals = settings.signal_quotas.json().to_string();
        let values = values![id, settings.name, per_second, per_day, signals, at];
        let inserted = change.row(INSERT, values).await?;
        let project = Project::read(&inserted.ok_or(ControlError::NotFound)?)?;
        change
            .commit(entry(Action::ProjectCreated, &project))
            .await?;
        Ok(project)
    }

    /// Replaces the settings with those that `change_settings` makes of them. Nobody else changes them in between.
    pub async fn update_project<E: From<ControlError>>(
        &self,
        id: &str,
        change_settings: impl FnOnce(ProjectSettings) -> Result<ProjectSettings, E>,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Project, E> {
        let mut change = Change::begin(self, actor, at).await?;
        let locked = change.row(LOCK, values![id]).await?;
        let known = Project::read(&locked.ok_or(ControlError::NotFound)?)?;
        let settings = change_settings(known.settings)?;
        checks::name(&settings.name)?;
        let (per_second, per_day) = quotas(&settings)?;
        let signals = settings.signal_quotas.json().to_string();
        let tokens = settings.device_tokens.as_str();
        let values = values![id, settings.name, per_second, per_day, signals, tokens];
        let updated = change.row(UPDATE, values).await?;
        let project = Project::read(&updated.ok_or_else(no_device_key)?)?;
        change
            .commit(entry(Action::ProjectUpdated, &project))
            .await?;
        Ok(project)
    }

    pub async fn project(&self, id: &str) -> Result<Project, ControlError> {
        Project::read(&self.row(GET, values![id]).await?)
    }

    /// Returns all projects, ordered by id.
    pub async fn projects(&self) -> Result<Vec<Project>, ControlError> {
        self.records(LIST, values![], Project::read).await
    }
}

fn quotas(settings: &ProjectSettings) -> Result<(Option<i64>, Option<i64>), ControlError> {
    Ok((
        checks::quota(settings.quotas.events_per_second)?,
        checks::quota(settings.quotas.bytes_per_day)?,
    ))
}

fn no_device_key() -> ControlError {
    checks::invalid(
        "the project has no active device key, so every device would be locked out; register one first",
    )
}

fn entry(action: Action, project: &Project) -> Entry<'_> {
    let settings = &project.settings;
    Entry {
        action,
        project: Some(&project.id),
        subject: &project.id,
        detail: json!({
            "name": settings.name, "quotas": settings.quotas.json(), "signal_quotas": settings.signal_quotas.json(),
            "device_tokens": settings.device_tokens.as_str(),
        }),
    }
}
