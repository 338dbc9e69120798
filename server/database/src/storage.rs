//! The retention and disk quota of each project.

use serde::{Deserialize, Serialize};
use serde_json::json;
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Notice, Row, values};
use super::change::{Change, Entry};
use super::checks;
use super::error::ControlError;

/// How many days a project's rows are kept. `null`: the default of the installation. 0: forever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeepDays {
    /// Events.
    #[schema(maximum = 36_500)]
    pub raw_days: Option<u32>,
    /// Hourly roll-ups.
    #[schema(maximum = 36_500)]
    pub hourly_days: Option<u32>,
    /// Daily roll-ups.
    #[schema(maximum = 36_500)]
    pub daily_days: Option<u32>,
}

impl KeepDays {
    fn all(self) -> [Option<u32>; 3] {
        [self.raw_days, self.hourly_days, self.daily_days]
    }
}

/// The storage settings of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    pub project: String,
    pub keep: KeepDays,
    /// The disk quota of its rows, in bytes. `None` means no limit.
    pub disk_bytes: Option<u64>,
    /// Whether the events of the last two days alone exceed the quota. Batches are then rejected.
    pub is_over_quota: bool,
}

impl Storage {
    fn read(row: &Row) -> Result<Self, ControlError> {
        let most = row.get::<Option<i64>>("disk_bytes")?;
        Ok(Self {
            project: row.get("id")?,
            keep: row.json("retention")?,
            disk_bytes: most.and_then(|most| u64::try_from(most).ok()),
            is_over_quota: row.get("is_over_disk_quota")?,
        })
    }
}

const MOST_DAYS: u32 = 36_500;

const GET: &str =
    "SELECT id, retention, disk_bytes, is_over_disk_quota FROM projects WHERE id = $1";
const LIST: &str = "SELECT id, retention, disk_bytes, is_over_disk_quota FROM projects ORDER BY id";
/// A no-op if the quota has changed since it was read.
const SET: &str = "
    UPDATE projects
    SET retention = $2, disk_bytes = $3
    WHERE id = $1
      AND (disk_bytes = $4 OR (disk_bytes IS NULL AND $4 IS NULL))";
/// A no-op if the quota has changed since it was read.
const SET_OVER: &str = "
    UPDATE projects
    SET is_over_disk_quota = $2
    WHERE id = $1
      AND is_over_disk_quota <> $2
      AND (disk_bytes = $3 OR (disk_bytes IS NULL AND $3 IS NULL))";

impl Control {
    pub async fn storage(&self, project: &str) -> Result<Storage, ControlError> {
        Storage::read(&self.row(GET, values![project]).await?)
    }

    /// Returns the settings of all projects, ordered by id.
    pub async fn storage_of_all(&self) -> Result<Vec<Storage>, ControlError> {
        self.records(LIST, values![], Storage::read).await
    }

    /// Saves the settings. `known` is the disk quota that they replace.
    pub async fn set_storage(
        &self,
        storage: &Storage,
        known: Option<u64>,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        if storage
            .keep
            .all()
            .into_iter()
            .flatten()
            .any(|days| days > MOST_DAYS)
        {
            return Err(checks::invalid(&format!(
                "rows can be kept for at most {MOST_DAYS} days, or forever with 0"
            )));
        }
        let most = checks::quota(storage.disk_bytes)?;
        let keep = json!(storage.keep);
        let mut change = Change::begin(self, actor, at).await?;
        let known = checks::quota(known)?;
        let values = values![storage.project.as_str(), keep.to_string(), most, known];
        if change.execute(SET, values).await? == 0 {
            return Err(checks::invalid(
                "the disk quota has changed in the meantime; reload it and retry",
            ));
        }
        change
            .commit(Entry {
                action: Action::StorageSet,
                project: Some(&storage.project),
                subject: &storage.project,
                detail: json!({"keep": keep, "disk_bytes": storage.disk_bytes}),
            })
            .await
    }

    /// Records whether a project's rows exceed the disk quota in `storage`, unless `storage` says the same. Returns whether that changed.
    /// Another quota that was set in the meantime is left alone.
    pub async fn set_over_disk_quota(
        &self,
        storage: &Storage,
        is_over: bool,
    ) -> Result<bool, ControlError> {
        if storage.is_over_quota == is_over {
            return Ok(false);
        }
        let mut statements = self.begin().await?;
        let most = checks::quota(storage.disk_bytes)?;
        let values = values![storage.project.as_str(), is_over, most];
        let changed = statements.execute(SET_OVER, values).await?;
        let notice = match changed {
            0 => Notice::Silent,
            _ => Notice::Tick,
        };
        statements.commit(notice).await?;
        Ok(changed > 0)
    }
}
