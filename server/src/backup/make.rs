//! Makes a set, while the server runs.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use unjank_database::copy_sqlite;
use unjank_foundation::clock::Clock;
use unjank_protocol::Timestamp;
use uuid::Uuid;

use super::bucket::BackupBucket;
use super::files::CopiedFile;
use super::place::Staging;
use super::set::{
    CLICKHOUSE, DEAD_LETTERS, FORMAT, LOG, POSTGRES, SECRET, SQLITE, SYMBOLS, TableFiles,
};
use super::upload::{INTERRUPTED, Upload};
use super::{BackupSet, ClickHouseAt, OnProgress, Place, files, finish, postgres};
use crate::store::{BackupPart, ClickHouse, LastBackup, LogHold};

/// What to copy, and to where.
#[derive(Clone, Debug)]
pub struct BackupPlan {
    /// The place of the set. It must be missing or empty.
    pub to: Place,
    pub data_dir: PathBuf,
    pub control: ControlAt,
    /// The destination of a `BACKUP` statement, with `{part}` for the name of a part. `None`: the embedded engine writes into the set.
    pub clickhouse_to: Option<String>,
    /// Limits how fast ClickHouse reads the tables. 0: no limit.
    pub most_bytes_per_second: u64,
    /// The free space below which the server rejects events (`--min-free-bytes`).
    pub min_free_bytes: u64,
}

impl BackupPlan {
    /// The free space that a running backup leaves to the server and to ClickHouse, on the disk of the data folder.
    fn spare_bytes(&self) -> u64 {
        SPARE_BYTES.max(self.min_free_bytes.saturating_mul(2))
    }
}

/// The control database, by its URL.
#[derive(Clone, Debug)]
pub enum ControlAt {
    Sqlite(String),
    Postgres(String),
}

impl ControlAt {
    #[must_use]
    pub fn url(url: String) -> Self {
        match url.starts_with("sqlite:") {
            true => Self::Sqlite(url),
            false => Self::Postgres(url),
        }
    }
}

/// The least free space that a running backup leaves. At its start, a backup needs twice as much.
const SPARE_BYTES: u64 = 1 << 30;
const ANOTHER_RUNS: &str = "another backup of this data folder is running: wait until it has ended";

/// Makes a set. If that fails, or if `interrupted` completes first, deletes the incomplete set.
pub async fn make(
    plan: &BackupPlan,
    store: &ClickHouse,
    interrupted: impl Future,
    report: OnProgress<'_>,
) -> anyhow::Result<BackupSet> {
    let mut interrupted = pin!(interrupted);
    // Until the end: another backup of this data folder would delete the tables that this one still needs.
    let lock = files::lock_folder(&plan.data_dir);
    let lock = lock.context(
        "run the command on the machine of the server, as its user and with its --data-dir",
    )?;
    let _lock = lock.context(ANOTHER_RUNS)?;
    let (to, upload) = match &plan.to {
        Place::Folder(folder) => {
            check_outside(folder, &plan.data_dir)?;
            (folder.clone(), None)
        }
        Place::Bucket { bucket, staging } => {
            let staging = tokio::select! {
                staged = stage(bucket, staging) => staged?,
                _ = &mut interrupted => anyhow::bail!(INTERRUPTED),
            };
            (staging.set(), Some((bucket, staging)))
        }
    };
    let to = to.as_path();
    anyhow::ensure!(
        files::is_empty(to)?,
        "{} is not empty: choose a folder that is missing or empty",
        to.display()
    );
    files::make_folder(to)?;
    let staged = Staged(
        plan.data_dir
            .join("engine/backups")
            .join(Uuid::new_v4().to_string()),
    );
    let job = Job {
        plan,
        to,
        store,
        staged,
        copies: Mutex::default(),
        report,
    };
    let made = tokio::select! {
        made = job.copy_all() => made,
        _ = &mut interrupted => Err(anyhow::anyhow!(INTERRUPTED)),
    };
    let made = match (made, &upload) {
        (Ok(set), Some((bucket, staging))) => {
            let upload = Upload {
                bucket,
                staging,
                check_room: &|| job.check_room_of_staging(),
                report,
            };
            upload.run(interrupted).await.map(|()| set)
        }
        (made, _) => made,
    };
    match &made {
        Ok(set) => {
            let saved = LastBackup::of(&plan.data_dir).save(set.complete_until);
            if let Err(error) = saved {
                tracing::warn!(%error, "the backup is complete, but the server cannot show when it was made");
            }
        }
        Err(_) => job.clean_up().await,
    }
    made
}

/// Fails if a folder for a set is in the data folder: the set would be lost together with it. `engine` may be a link to another place.
fn check_outside(folder: &Path, data_dir: &Path) -> anyhow::Result<()> {
    let path = std::path::absolute(folder)?;
    let nearest = path.ancestors().find_map(|path| path.canonicalize().ok());
    let inside = [data_dir.to_owned(), data_dir.join("engine")]
        .iter()
        .filter_map(|of_server| of_server.canonicalize().ok())
        .any(|of_server| {
            nearest
                .as_ref()
                .is_some_and(|path| path.starts_with(of_server))
        });
    anyhow::ensure!(
        !inside,
        "{} is in the data folder: choose a folder outside, best on another disk",
        folder.display()
    );
    Ok(())
}

/// Checks the bucket, deletes what a killed backup has left, and returns an empty folder for the set.
async fn stage(bucket: &BackupBucket, below: &Path) -> anyhow::Result<Staging> {
    let staging = Staging::take(below)?;
    staging.renew()?;
    // A missing bucket has no claims, and no record of one may be forgotten because of that.
    bucket.check_answers().await?;
    for claim in staging.claims()? {
        match bucket.end_left(&claim).await {
            Ok(()) => staging.forget(&claim),
            Err(error) => tracing::warn!(
                error = format!("{error:#}"),
                place = claim.url,
                "cannot delete what a killed backup has uploaded: the next backup to its bucket with the same staging folder tries again"
            ),
        }
    }
    bucket.check_empty().await?;
    Ok(staging)
}

/// A backup that is being made.
struct Job<'j> {
    plan: &'j BackupPlan,
    /// The folder of the set.
    to: &'j Path,
    store: &'j ClickHouse,
    staged: Staged,
    /// The ids of the copies that ClickHouse makes.
    copies: Mutex<Vec<Uuid>>,
    report: OnProgress<'j>,
}

impl Job<'_> {
    async fn copy_all(&self) -> anyhow::Result<BackupSet> {
        let plan = self.plan;
        let begun = now();
        let log = plan.data_dir.join(LOG);
        let hold = LogHold::take(&log).with_context(|| {
            format!(
                "cannot hold the ingest log {}: run the command on the machine of the server, as its user and with its --data-dir",
                log.display()
            )
        })?;
        let hold = hold.context(ANOTHER_RUNS)?;
        if plan.clickhouse_to.is_none() {
            // A killed backup may have left both.
            self.store.cancel_backups().await?;
            self.staged.remove_all()?;
        }
        if let ControlAt::Postgres(_) = plan.control {
            postgres::check().await?;
        }
        // Before the tables: an operator may retry a dead letter during the backup, and the copied tables may lack its rows.
        let mut copied = self.copy_folder(DEAD_LETTERS).await?;
        let (parts, table_bytes) = self.copy_tables().await?;
        let complete_until = now();
        copied.extend(self.copy_log(&hold).await?);
        drop(hold);
        copied.push(self.copy_control().await?);
        let secret = plan.data_dir.join(SECRET);
        if secret.exists() {
            copied.push(files::copy(&secret, self.to, Path::new(SECRET)).await?);
        }
        copied.extend(self.copy_folder(SYMBOLS).await?);
        let mut tables = None;
        if plan.clickhouse_to.is_none() {
            files::move_folder(&self.staged.0, &self.to.join(CLICKHOUSE)).await?;
            tables = Some(TableFiles::among(&files::sizes_below(self.to)?));
        }
        files::sync_all(self.to)?;
        let set = BackupSet {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            begun,
            complete_until,
            database: self.store.database().to_owned(),
            clickhouse: match plan.clickhouse_to {
                None => ClickHouseAt::Set,
                Some(_) => ClickHouseAt::Elsewhere,
            },
            parts,
            table_bytes,
            files: copied,
            tables,
        };
        set.write(self.to)?;
        Ok(set)
    }

    /// Copies all tables. Starts each part after ClickHouse has taken the snapshot of the previous part.
    async fn copy_tables(&self) -> anyhow::Result<(Vec<BackupPart>, u64)> {
        let (plan, store) = (self.plan, self.store);
        let parts = store.backup_parts().await?;
        anyhow::ensure!(
            !parts.is_empty(),
            "ClickHouse has no tables yet: start `unjank serve` first"
        );
        let expected = store.stored_bytes().await?;
        self.check_room(expected)?;
        let copied = async {
            for part in &parts {
                let to = match &plan.clickhouse_to {
                    Some(to) => to.replace("{part}", &part.name),
                    None => format!("File('{}/{}')", self.staged.name(), part.name),
                };
                let id = Uuid::new_v4();
                self.copies().push(id);
                store
                    .start_backup(id, part, &to, plan.most_bytes_per_second)
                    .await?;
            }
            let copies = self.copies().clone();
            finish(store, &copies, |bytes| {
                (self.report)("tables", bytes, expected);
                self.check_spare_room()
            })
            .await
        };
        let copied = copied
            .await
            .context("ClickHouse cannot copy its tables, so no backup was made")?;
        Ok((parts, copied))
    }

    /// Fails if a disk has too little room: a full disk stops ingest.
    fn check_room(&self, table_bytes: u64) -> anyhow::Result<()> {
        let plan = self.plan;
        let mut bytes = 0;
        for folder in [LOG, DEAD_LETTERS, SYMBOLS] {
            bytes += files::size(&plan.data_dir.join(folder))?;
        }
        let tables = match plan.clickhouse_to {
            None => table_bytes,
            Some(_) => 0,
        };
        let spare = plan.spare_bytes().saturating_mul(2);
        // The server needs space on the disk of its data folder only.
        let spare_there = match files::share_disk(self.to, &plan.data_dir) {
            true => spare,
            false => SPARE_BYTES * 2,
        };
        files::check_room(self.to, (bytes + tables).saturating_add(spare_there))?;
        files::check_room(&plan.data_dir, tables.saturating_add(spare))
    }

    /// Fails if the disk of the data folder runs short during the backup.
    fn check_spare_room(&self) -> anyhow::Result<()> {
        let room = files::check_room(&self.plan.data_dir, self.plan.spare_bytes());
        room.context("the backup was cancelled, so that the server does not run out of space")
    }

    /// The same during an upload, which needs no space except that of the staged set.
    fn check_room_of_staging(&self) -> anyhow::Result<()> {
        match files::share_disk(self.to, &self.plan.data_dir) {
            true => self.check_spare_room(),
            false => Ok(()),
        }
    }

    fn copies(&self) -> MutexGuard<'_, Vec<Uuid>> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn copy_log(&self, hold: &LogHold) -> anyhow::Result<Vec<CopiedFile>> {
        let held = || {
            hold.files()?.context(
                "while ClickHouse was copied, the ingest log became half full or the disk nearly full, so the server deleted records \
                 that the backup needs: raise --log-max-bytes, free some space, or make backups when there is less load",
            )
        };
        let mut copied = Vec::new();
        let log = held()?;
        for path in log.others.iter().chain(&log.segments) {
            self.check_spare_room()?;
            let name = Path::new(LOG).join(path.file_name().unwrap_or_default());
            copied.push(files::copy(path, self.to, &name).await?);
        }
        held()?;
        Ok(copied)
    }

    async fn copy_control(&self) -> anyhow::Result<CopiedFile> {
        self.check_spare_room()?;
        let failed = "cannot copy the control database";
        let name = match &self.plan.control {
            ControlAt::Sqlite(url) => {
                let file = self.to.join(SQLITE);
                copy_sqlite(url, &file).await.context(failed)?;
                SQLITE
            }
            ControlAt::Postgres(url) => {
                let file = self.to.join(POSTGRES);
                postgres::dump(url, &file).await.context(failed)?;
                POSTGRES
            }
        };
        files::describe(self.to, Path::new(name)).await
    }

    /// Copies a folder of the data folder, without files that the server deletes meanwhile.
    async fn copy_folder(&self, folder: &str) -> anyhow::Result<Vec<CopiedFile>> {
        let from = self.plan.data_dir.join(folder);
        let mut copied = Vec::new();
        for path in files::files_below(&from)? {
            self.check_spare_room()?;
            let source = from.join(&path);
            match files::copy(&source, self.to, &Path::new(folder).join(&path)).await {
                Ok(file) => copied.push(file),
                Err(_) if !source.exists() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(copied)
    }

    /// Cancels the copies in ClickHouse, and deletes the incomplete set.
    async fn clean_up(&self) {
        let copies = self.copies().clone();
        for copy in copies {
            // Fails if the copy has already ended.
            let _cancelled = self.store.cancel_backup(copy).await.is_ok();
        }
        if let Err(error) = std::fs::remove_dir_all(self.to) {
            tracing::warn!(%error, folder = %self.to.display(), "cannot delete the unfinished backup: delete this folder");
        }
    }
}

fn now() -> Timestamp {
    Timestamp::from(Clock::system().now())
}

/// The folder into which the embedded engine writes the tables. The engine can write only below its own folder.
struct Staged(PathBuf);

impl Staged {
    fn name(&self) -> String {
        self.0
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    /// Deletes the folders of all backups, also of killed ones.
    fn remove_all(&self) -> anyhow::Result<()> {
        files::remove_folder(self.0.parent().unwrap_or(&self.0))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Err(error) = files::remove_folder(&self.0) {
            tracing::warn!(
                error = format!("{error:#}"),
                "the next backup deletes this folder"
            );
        }
    }
}
