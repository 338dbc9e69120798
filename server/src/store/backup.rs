//! ClickHouse's part of a backup: its own `BACKUP` and `RESTORE`, in three parts.
//!
//! ClickHouse copies the parts in the reverse of the order in which the writer fills the tables: roll-ups and `outcomes`, raw tables,
//! `batches` and the rest. So the copy of a roll-up never contains a fold whose raw rows are missing in the copy, and the copy of a raw table
//! never contains rows of a batch that is missing in the copy of `batches`. After a restore, the writer completes what is missing, as it does
//! after a crash.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::clickhouse::{ClickHouse, Failure};
use super::raw_tables::RAW;
use super::roll_ups::RollUpTable;
use super::upkeep::rebuild::SCRATCH;

/// Tables that are copied together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupPart {
    pub name: String,
    pub tables: Vec<String>,
}

/// The progress of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupState {
    pub bytes: u64,
    pub is_done: bool,
}

#[derive(clickhouse::Row, Deserialize)]
struct Status {
    status: String,
    error: String,
    num_files: u64,
    total_size: u64,
}

/// Maximum time for the snapshot of a part.
const SNAPSHOT_WITHIN: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(50);

impl ClickHouse {
    /// Returns all tables of the database, in the order in which they are copied.
    pub async fn backup_parts(&self) -> Result<Vec<BackupPart>, Failure> {
        let tables = "SELECT name FROM system.tables WHERE database = {database:String} AND NOT match(name, {scratch:String}) ORDER BY name";
        let tables = self.client()?.query(tables);
        let tables: Vec<String> = tables
            .param("database", self.database())
            .param("scratch", SCRATCH)
            .fetch_all()
            .await?;
        let rolled_up: BTreeSet<&str> = RollUpTable::all().map(|table| table.name).collect();
        let is_rolled_up = |name: &str| name == "outcomes" || rolled_up.contains(name);
        let is_event = |name: &str| name != "batches" && RAW.iter().any(|raw| raw.name == name);
        let (rolled_up, others): (Vec<_>, Vec<_>) =
            tables.into_iter().partition(|name| is_rolled_up(name));
        let (events, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(|name| is_event(name));
        let part = |name: &str, tables| BackupPart {
            name: name.to_owned(),
            tables,
        };
        let parts = [
            part("rollups", rolled_up),
            part("events", events),
            part("rest", rest),
        ];
        Ok(parts
            .into_iter()
            .filter(|part| !part.tables.is_empty())
            .collect())
    }

    /// Returns the size of the rows on disk.
    pub async fn stored_bytes(&self) -> Result<u64, Failure> {
        let sql = "SELECT sum(bytes_on_disk) FROM system.parts WHERE database = {database:String} AND active";
        let query = self.client()?.query(sql);
        Ok(query.param("database", self.database()).fetch_one().await?)
    }

    /// Starts the copy of a part. Returns when ClickHouse has taken its snapshot: the copy does not contain later changes. `to` is the
    /// destination of a `BACKUP` statement, such as `File('backups/1')`.
    pub async fn start_backup(
        &self,
        id: Uuid,
        part: &BackupPart,
        to: &str,
        most_bytes_per_second: u64,
    ) -> Result<(), Failure> {
        let table = |name: &String| format!("TABLE `{}`.`{name}`", self.database());
        let tables: Vec<String> = part.tables.iter().map(table).collect();
        let sql = format!(
            "BACKUP {} TO {to} SETTINGS id = '{id}', async = 1, max_backup_bandwidth = {most_bytes_per_second}",
            tables.join(", ")
        );
        self.client()?.query(&sql).execute().await?;
        let begun = Instant::now();
        // ClickHouse 26.7 counts files only after it has taken the snapshot of all tables. Even an empty table has a file.
        loop {
            let status = self.backup_status(id).await?;
            if status.num_files > 0 || status.status == "BACKUP_CREATED" {
                return Ok(());
            }
            if begun.elapsed() > SNAPSHOT_WITHIN {
                let reason = "ClickHouse took no snapshot of the tables within two minutes";
                return Err(Failure::Later(reason.to_owned()));
            }
            sleep(PAUSE).await;
        }
    }

    /// Starts the restore of a part. Returns the id of the restore.
    pub async fn start_restore(&self, from: &str) -> Result<Uuid, Failure> {
        let id = Uuid::new_v4();
        let sql = format!("RESTORE ALL FROM {from} SETTINGS id = '{id}', async = 1");
        self.client()?.query(&sql).execute().await?;
        Ok(id)
    }

    /// Creates the database for a restore. Fails if it has tables.
    pub async fn create_empty(&self) -> anyhow::Result<()> {
        let sql = format!("CREATE DATABASE IF NOT EXISTS `{}`", self.database());
        self.client()?.query(&sql).execute().await?;
        let parts = self.backup_parts().await?;
        anyhow::ensure!(
            parts.is_empty(),
            "the database `{}` of ClickHouse already has tables, maybe from a failed restore: restore into an empty database (DROP DATABASE … SYNC)",
            self.database()
        );
        Ok(())
    }

    /// Returns the progress of a copy or of a restore, or the error that ended it.
    pub async fn backup_state(&self, id: Uuid) -> Result<BackupState, Failure> {
        let status = self.backup_status(id).await?;
        Ok(BackupState {
            bytes: status.total_size,
            is_done: ["BACKUP_CREATED", "RESTORED"].contains(&status.status.as_str()),
        })
    }

    async fn backup_status(&self, id: Uuid) -> Result<Status, Failure> {
        let sql = "SELECT toString(status) AS status, error, num_files, total_size FROM system.backups WHERE id = ?";
        let query = self.client()?.query(sql).bind(id.to_string());
        let status: Option<Status> = query.fetch_optional().await?;
        let lost = "ClickHouse has restarted, which ended the copy";
        let status = status.ok_or_else(|| Failure::Content(lost.to_owned()))?;
        match status.status.as_str() {
            "CREATING_BACKUP" | "BACKUP_CREATED" | "RESTORING" | "RESTORED" => Ok(status),
            _ => Err(Failure::Content(status.error)),
        }
    }

    /// Cancels all running copies.
    pub async fn cancel_backups(&self) -> Result<(), Failure> {
        let sql = "KILL QUERY WHERE query_id IN (SELECT query_id FROM system.backups WHERE status = 'CREATING_BACKUP') SYNC FORMAT Null";
        Ok(self.client()?.query(sql).execute().await?)
    }

    /// Cancels a copy.
    pub async fn cancel_backup(&self, id: Uuid) -> Result<(), Failure> {
        let sql = "KILL QUERY WHERE query_id = (SELECT query_id FROM system.backups WHERE id = ?) SYNC FORMAT Null";
        let kill = self.client()?.query(sql).bind(id.to_string());
        Ok(kill.execute().await?)
    }
}
