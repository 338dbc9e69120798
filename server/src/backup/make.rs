//! Makes a set, while the server runs.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use unjank_protocol::Timestamp;
use uuid::Uuid;

use super::set::{
    CLICKHOUSE, CopiedFile, DEAD_LETTERS, FORMAT, LOG, POSTGRES, SECRET, SQLITE, SYMBOLS,
};
use super::{BackupSet, ClickHouseAt, OnProgress, files, finish, postgres};
use crate::clock::Clock;
use crate::store::control::copy_sqlite;
use crate::store::{BackupPart, ClickHouse, LastBackup, LogHold};

/// What to copy, and to where.
#[derive(Clone, Debug)]
pub struct BackupPlan {
    /// The folder of the set. It must be missing or empty.
    pub to: PathBuf,
    pub data_dir: PathBuf,
    pub control: ControlAt,
    /// The destination of a `BACKUP` statement, with `{part}` for the name of a part. `None`: the embedded engine writes into the set.
    pub clickhouse_to: Option<String>,
    /// Limits how fast ClickHouse reads the tables. 0: no limit.
    pub most_bytes_per_second: u64,
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

/// Free space that a backup leaves to the server and to ClickHouse.
const SPARE_BYTES: u64 = 2 << 30;

/// Makes a set. If that fails, or if `interrupted` completes first, deletes the incomplete set.
pub async fn make(
    plan: &BackupPlan,
    store: &ClickHouse,
    interrupted: impl Future,
    report: OnProgress<'_>,
) -> anyhow::Result<BackupSet> {
    let to = &plan.to;
    anyhow::ensure!(
        files::is_empty(to)?,
        "{} is not empty: choose a folder that does not exist",
        to.display()
    );
    files::make_folder(to)?;
    let engine = plan.data_dir.join("engine").canonicalize();
    anyhow::ensure!(
        !engine.is_ok_and(|engine| to.canonicalize().is_ok_and(|to| to.starts_with(engine))),
        "{} is in the folder of the embedded engine: choose another one",
        to.display()
    );
    let staged = Staged(
        plan.data_dir
            .join("engine/backups")
            .join(Uuid::new_v4().to_string()),
    );
    let job = Job {
        plan,
        store,
        staged,
        copies: Mutex::default(),
        report,
    };
    let made = tokio::select! {
        made = job.copy_all() => made,
        _ = interrupted => Err(anyhow::anyhow!("interrupted: nothing was backed up")),
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

/// A backup that is being made.
struct Job<'j> {
    plan: &'j BackupPlan,
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
                "cannot hold the ingest log {}: run the command on the machine of the server, with its --data-dir",
                log.display()
            )
        })?;
        let hold =
            hold.context("another backup of this data folder is running: wait until it has ended")?;
        if plan.clickhouse_to.is_none() {
            // A killed backup may have left both.
            self.store.cancel_backups().await?;
            self.staged.remove_all()?;
        }
        if let ControlAt::Postgres(_) = plan.control {
            postgres::check().await?;
        }
        // Before the tables: an operator may retry a dead letter during the backup, and the copied tables may lack its rows.
        let mut copied = copy_folder(plan, DEAD_LETTERS).await?;
        let (parts, table_bytes) = self.copy_tables().await?;
        let complete_until = now();
        copied.extend(copy_log(plan, &hold).await?);
        drop(hold);
        copied.push(copy_control(plan).await?);
        let secret = plan.data_dir.join(SECRET);
        if secret.exists() {
            copied.push(files::copy(&secret, &plan.to, Path::new(SECRET)).await?);
        }
        copied.extend(copy_folder(plan, SYMBOLS).await?);
        if plan.clickhouse_to.is_none() {
            files::move_folder(&self.staged.0, &plan.to.join(CLICKHOUSE)).await?;
        }
        files::sync_all(&plan.to)?;
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
        };
        set.write(&plan.to)?;
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
        let copied = copied.await.context("ClickHouse cannot copy its tables")?;
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
        files::check_room(&plan.to, bytes + tables + SPARE_BYTES)?;
        files::check_room(&plan.data_dir, tables + SPARE_BYTES)
    }

    /// Fails if the disk of the data folder runs short during the copy.
    fn check_spare_room(&self) -> anyhow::Result<()> {
        files::check_room(&self.plan.data_dir, SPARE_BYTES / 2)
    }

    fn copies(&self) -> MutexGuard<'_, Vec<Uuid>> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the copies in ClickHouse, and deletes the incomplete set.
    async fn clean_up(&self) {
        let copies = self.copies().clone();
        for copy in copies {
            // Fails if the copy has already ended.
            let _cancelled = self.store.cancel_backup(copy).await.is_ok();
        }
        let to = &self.plan.to;
        if let Err(error) = std::fs::remove_dir_all(to) {
            tracing::warn!(%error, folder = %to.display(), "cannot delete the unfinished backup");
        }
    }
}

fn now() -> Timestamp {
    Timestamp::from(Clock::system().now())
}

async fn copy_log(plan: &BackupPlan, hold: &LogHold) -> anyhow::Result<Vec<CopiedFile>> {
    let held = || {
        hold.files()?.context(
            "while ClickHouse was copied, the ingest log became half full or the disk nearly full, so the server deleted records \
             that the backup needs: raise --log-max-bytes, free some space, or make backups when there is less load",
        )
    };
    let mut copied = Vec::new();
    let log = held()?;
    for path in log.others.iter().chain(&log.segments) {
        let name = Path::new(LOG).join(path.file_name().unwrap_or_default());
        copied.push(files::copy(path, &plan.to, &name).await?);
    }
    held()?;
    Ok(copied)
}

async fn copy_control(plan: &BackupPlan) -> anyhow::Result<CopiedFile> {
    let failed = "cannot copy the control database";
    let name = match &plan.control {
        ControlAt::Sqlite(url) => {
            let file = plan.to.join(SQLITE);
            copy_sqlite(url, &file).await.context(failed)?;
            SQLITE
        }
        ControlAt::Postgres(url) => {
            let file = plan.to.join(POSTGRES);
            postgres::dump(url, &file).await.context(failed)?;
            POSTGRES
        }
    };
    files::describe(&plan.to, Path::new(name)).await
}

/// Copies a folder of the data folder, without files that the server deletes meanwhile.
async fn copy_folder(plan: &BackupPlan, folder: &str) -> anyhow::Result<Vec<CopiedFile>> {
    let from = plan.data_dir.join(folder);
    let mut copied = Vec::new();
    for path in files::files_below(&from)? {
        let source = from.join(&path);
        match files::copy(&source, &plan.to, &Path::new(folder).join(&path)).await {
            Ok(file) => copied.push(file),
            Err(_) if !source.exists() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(copied)
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
        remove_folder(self.0.parent().unwrap_or(&self.0))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Err(error) = remove_folder(&self.0) {
            tracing::warn!(
                error = format!("{error:#}"),
                "the next backup deletes this folder"
            );
        }
    }
}

fn remove_folder(folder: &Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot delete {}", folder.display()))
        }
        _ => Ok(()),
    }
}
