//! Makes a set, while the server runs.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use unjank_protocol::Timestamp;
use uuid::Uuid;

use super::set::{
    CLICKHOUSE, Contents, CopiedFile, DEAD_LETTERS, LOG, POSTGRES, SECRET, SQLITE, SYMBOLS,
};
use super::{BackupSet, ClickHouseAt, OnProgress, files, finish, postgres};
use crate::clock::Clock;
use crate::store::control::copy_sqlite;
use crate::store::{BackupPart, ClickHouse, LogHold};

/// What to copy, and to where.
#[derive(Clone, Debug)]
pub struct BackupPlan {
    /// The folder of the set. It must be missing or empty.
    pub to: PathBuf,
    pub data_dir: PathBuf,
    /// `sqlite:path` or `postgres://…`.
    pub control_url: String,
    /// Where ClickHouse writes the tables, in SQL, with `{part}` for the name of a part. `None`: into the set, by the embedded engine.
    pub clickhouse_to: Option<String>,
    /// How fast ClickHouse reads the tables. 0: as fast as it can.
    pub most_bytes_per_second: u64,
}

/// Room that the server and ClickHouse need beside a copy of the tables.
const SPARE_BYTES: u64 = 2 << 30;

/// Makes a set. If it fails or `interrupted` completes first, nothing is left.
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
    let copies = Mutex::default();
    let job = Job {
        plan,
        store,
        staged: &staged,
        copies: &copies,
        report,
    };
    let made = tokio::select! {
        made = job.copy_all() => made,
        _ = interrupted => Err(anyhow::anyhow!("interrupted: nothing was backed up")),
    };
    if made.is_err() {
        job.clean_up().await;
    }
    made
}

/// A backup that is being made.
struct Job<'j> {
    plan: &'j BackupPlan,
    store: &'j ClickHouse,
    staged: &'j Staged,
    /// The copies that ClickHouse makes.
    copies: &'j Mutex<Vec<Uuid>>,
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
            // Of a backup that was killed.
            self.store.end_backups().await?;
            self.staged.remove_all()?;
        }
        if !plan.control_url.starts_with("sqlite:") {
            postgres::check().await?;
        }
        // A dead letter that is retried from now on is in the set. Its rows may be missing, or not rolled up.
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
        let set = BackupSet::of(Contents {
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
        });
        set.write(&plan.to)?;
        Ok(set)
    }

    /// Copies all tables. Each part is begun once later changes no longer reach the part before.
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
                    .begin_backup(id, part, &to, plan.most_bytes_per_second)
                    .await?;
            }
            let copies = self.copies().clone();
            finish(store, &copies, |bytes| {
                (self.report)("tables", bytes, expected);
                self.leaves_room()
            })
            .await
        };
        let copied = copied.await.context("ClickHouse cannot copy its tables")?;
        Ok((parts, copied))
    }

    /// A full disk would stop ingest.
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

    /// The data grows while it is copied.
    fn leaves_room(&self) -> anyhow::Result<()> {
        files::check_room(&self.plan.data_dir, SPARE_BYTES / 2)
    }

    fn copies(&self) -> MutexGuard<'_, Vec<Uuid>> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what ClickHouse still copies, and deletes what is there.
    async fn clean_up(&self) {
        let copies = self.copies().clone();
        for copy in copies {
            // A copy that has ended cannot be ended.
            let _ended = self.store.end_backup(copy).await.is_ok();
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
    let url = &plan.control_url;
    let failed = "cannot copy the control database";
    let name = if url.starts_with("sqlite:") {
        copy_sqlite(url, &plan.to.join(SQLITE))
            .await
            .context(failed)?;
        SQLITE
    } else {
        postgres::dump(url, &plan.to.join(POSTGRES))
            .await
            .context(failed)?;
        POSTGRES
    };
    files::described(&plan.to, Path::new(name))
}

/// Copies a folder of the data folder. Files may vanish meanwhile.
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

/// The folder into which the embedded engine writes its part. It may write below its own folder only.
struct Staged(PathBuf);

impl Staged {
    fn name(&self) -> String {
        self.0
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    /// Deletes what killed backups have left.
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
