//! ClickHouse's part of a backup: its own `BACKUP` and `RESTORE`, in three parts.
//!
//! The parts are taken in the reverse of the order in which the writer fills the tables. Then each row's proof is in the backup too, or the
//! row is not: a roll-up never has a fold whose raw rows are missing, and no table has rows of a batch that `batches` lacks. What the later
//! parts have in addition, the writer finds as after a crash.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::clickhouse::{ClickHouse, Failure};
use super::raw::RAW;
use super::rebuild::SCRATCH;
use super::roll_ups::RollUpTable;

/// Tables that are copied together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupPart {
    pub name: String,
    pub tables: Vec<String>,
}

/// How far ClickHouse is with a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupState {
    pub bytes: u64,
    pub is_done: bool,
}

#[derive(clickhouse::Row, Deserialize)]
struct Told {
    status: String,
    error: String,
    num_files: u64,
    total_size: u64,
}

/// ClickHouse collects the parts of all tables within this time.
const COLLECTED_WITHIN: Duration = Duration::from_secs(120);
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

    /// Begins to copy a part, and returns once later changes to the tables no longer reach the copy. `to` is ClickHouse's expression of
    /// a destination, such as `File('backups/1')`.
    pub async fn begin_backup(
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
        // ClickHouse 26.7 counts files only after it has collected the parts of all tables. Even an empty table has a file.
        loop {
            let told = self.told(id).await?;
            if told.num_files > 0 || told.status == "BACKUP_CREATED" {
                return Ok(());
            }
            if begun.elapsed() > COLLECTED_WITHIN {
                let reason = "ClickHouse did not collect the tables of the backup in two minutes";
                return Err(Failure::Later(reason.to_owned()));
            }
            sleep(PAUSE).await;
        }
    }

    /// Begins to restore a part, and returns its id.
    pub async fn begin_restore(&self, from: &str) -> Result<Uuid, Failure> {
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
            "the database `{}` of ClickHouse has tables already, maybe of a restore that failed: restore into an empty database (DROP DATABASE … SYNC)",
            self.database()
        );
        Ok(())
    }

    /// Returns how far a copy is. Fails if it failed.
    pub async fn backup_state(&self, id: Uuid) -> Result<BackupState, Failure> {
        let told = self.told(id).await?;
        Ok(BackupState {
            bytes: told.total_size,
            is_done: ["BACKUP_CREATED", "RESTORED"].contains(&told.status.as_str()),
        })
    }

    async fn told(&self, id: Uuid) -> Result<Told, Failure> {
        let sql = "SELECT toString(status) AS status, error, num_files, total_size FROM system.backups WHERE id = ?";
        let told = self.client()?.query(sql).bind(id.to_string());
        let told: Option<Told> = told.fetch_optional().await?;
        let lost = "ClickHouse has restarted, so the copy has ended";
        let told = told.ok_or_else(|| Failure::Content(lost.to_owned()))?;
        match told.status.as_str() {
            "CREATING_BACKUP" | "BACKUP_CREATED" | "RESTORING" | "RESTORED" => Ok(told),
            _ => Err(Failure::Content(told.error)),
        }
    }

    /// Ends all copies of the embedded engine that are still being made.
    pub async fn end_backups(&self) -> Result<(), Failure> {
        let sql = "KILL QUERY WHERE query_id IN (SELECT query_id FROM system.backups WHERE status = 'CREATING_BACKUP') SYNC FORMAT Null";
        Ok(self.client()?.query(sql).execute().await?)
    }

    /// Ends a copy that is no longer needed.
    pub async fn end_backup(&self, id: Uuid) -> Result<(), Failure> {
        let sql = "KILL QUERY WHERE query_id = (SELECT query_id FROM system.backups WHERE id = ?) SYNC FORMAT Null";
        let kill = self.client()?.query(sql).bind(id.to_string());
        Ok(kill.execute().await?)
    }
}
