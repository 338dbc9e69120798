//! Restores a set into an empty data folder.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use unjank_database::is_empty_postgres;
use uuid::Uuid;

use super::place::Staging;
use super::set::{CLICKHOUSE, POSTGRES, SQLITE, Sizes};
use super::{BackupSet, ClickHouseAt, OnProgress, Place, files, finish, postgres};
use crate::store::{ClickHouse, EngineSettings, Target};

/// What to restore, and to where.
pub struct RestorePlan {
    pub from: Place,
    pub data_dir: PathBuf,
    /// PostgreSQL, if it holds the control database. It must be empty.
    pub postgres: Option<String>,
    pub into: RestoreInto,
}

impl RestorePlan {
    /// Says what a failed or interrupted restore leaves, and what to do next.
    #[must_use]
    pub fn after_failure(&self) -> String {
        let is_external = matches!(self.into, RestoreInto::External { .. });
        let databases = match (is_external, self.postgres.is_some()) {
            (false, false) => "",
            (true, false) => ", after you drop the database in ClickHouse",
            (false, true) => ", after you empty the database in PostgreSQL",
            (true, true) => ", after you drop the databases in ClickHouse and PostgreSQL",
        };
        format!(
            "the restore has not ended, and {} may have a part of the backup: run the same command again{databases}",
            self.data_dir.display()
        )
    }
}

/// The ClickHouse that gets the tables.
pub enum RestoreInto {
    Embedded(Box<EngineSettings>),
    /// A server of the operator. `from` is the source of a `RESTORE` statement, with `{part}` for the name of a part.
    External {
        target: Target,
        from: Option<String>,
    },
}

/// This file exists until the restore of a data folder is complete.
const UNFINISHED: &str = "restore.unfinished";
/// Free space that a restore leaves.
const SPARE_BYTES: u64 = 1 << 30;

/// Whether the data folder has only a part of a backup.
#[must_use]
pub fn is_unfinished(data_dir: &Path) -> bool {
    data_dir.join(UNFINISHED).exists()
}

/// Restores a set. After an interruption, the same call starts again.
pub async fn restore(plan: &RestorePlan, report: OnProgress<'_>) -> anyhow::Result<BackupSet> {
    let with_tables = matches!(plan.into, RestoreInto::Embedded(_));
    let (set, objects) = match &plan.from {
        Place::Folder(folder) => (BackupSet::read(folder, with_tables)?, Sizes::new()),
        Place::Bucket { bucket, .. } => bucket.read(with_tables).await?,
    };
    let data_dir = &plan.data_dir;
    check(plan, &set)?;
    files::make_folder(data_dir)?;
    let lock = files::lock_folder(data_dir)?;
    let _lock =
        lock.with_context(|| format!("another restore into {} is running", data_dir.display()))?;
    // Another restore may have filled the folder meanwhile.
    check_empty(data_dir)?;
    let store = ClickHouse::away(&set.database);
    check_databases(plan, &store).await?;
    let unfinished = data_dir.join(UNFINISHED);
    let marked = File::create(&unfinished).and_then(|file| file.sync_all());
    marked.with_context(|| format!("cannot write {}", unfinished.display()))?;
    let filled = fill(plan, &set, &objects, &store, report).await;
    filled.with_context(|| plan.after_failure())?;
    std::fs::remove_file(&unfinished)?;
    files::sync_all(data_dir)?;
    Ok(set)
}

/// Fills a marked data folder, and the databases of the operator.
async fn fill(
    plan: &RestorePlan,
    set: &BackupSet,
    objects: &Sizes,
    store: &ClickHouse,
    report: OnProgress<'_>,
) -> anyhow::Result<()> {
    let data_dir = &plan.data_dir;
    empty(data_dir)?;
    let (from, staging) = match &plan.from {
        Place::Folder(folder) => (folder.clone(), None),
        Place::Bucket { staging, .. } => {
            let staging = stage(staging)?;
            (staging.set(), Some(staging))
        }
    };
    check_room(plan, &from, set, objects.values().sum())?;
    if let Place::Bucket { bucket, .. } = &plan.from {
        bucket.download(objects, &from, report).await?;
    }
    let all: u64 = set.files.iter().map(|file| file.bytes).sum();
    let mut done = 0;
    for file in &set.files {
        if file.path != Path::new(POSTGRES) {
            files::copy_back(file, &from, data_dir).await?;
        }
        done += file.bytes;
        report("files", done, all);
    }
    restore_tables(plan, &from, store, set, report).await?;
    if let Some(url) = &plan.postgres {
        let failed = "cannot restore the control database";
        postgres::load(url, &from.join(POSTGRES))
            .await
            .context(failed)?;
    }
    drop(staging);
    files::sync_all(data_dir)
}

/// Returns an empty folder for the set.
fn stage(below: &Path) -> anyhow::Result<Staging> {
    let staging = Staging::take(below)?;
    staging.renew()?;
    for claim in staging.claims()? {
        tracing::warn!(
            place = claim.url,
            "a killed backup has left files there: the next backup to this bucket with the same staging folder deletes them"
        );
    }
    Ok(staging)
}

/// Fails unless the databases of the operator are empty.
async fn check_databases(plan: &RestorePlan, store: &ClickHouse) -> anyhow::Result<()> {
    if let Some(url) = &plan.postgres {
        let empty = is_empty_postgres(url)
            .await
            .context("cannot read PostgreSQL")?;
        anyhow::ensure!(
            empty,
            "the PostgreSQL database of --database-url already has tables: restore into an empty database"
        );
    }
    if let RestoreInto::External { target, .. } = &plan.into {
        store.point_at(Some(target));
        store.create_empty().await?;
    }
    Ok(())
}

/// Deletes the files of an unfinished restore, except the marker.
fn empty(data_dir: &Path) -> anyhow::Result<()> {
    let failed = || format!("cannot empty {}", data_dir.display());
    for entry in std::fs::read_dir(data_dir).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        if entry.file_name() == UNFINISHED {
            continue;
        }
        let removed = match entry.file_type().with_context(failed)?.is_dir() {
            true => std::fs::remove_dir_all(entry.path()),
            false => std::fs::remove_file(entry.path()),
        };
        removed.with_context(failed)?;
    }
    Ok(())
}

/// Fails if a disk has too little room. Another server may use the same disk. `from` is the folder of the set, into which `downloads` bytes
/// are downloaded first.
fn check_room(
    plan: &RestorePlan,
    from: &Path,
    set: &BackupSet,
    downloads: u64,
) -> anyhow::Result<()> {
    let is_one_disk = files::share_disk(from, &plan.data_dir);
    let tables = match &plan.into {
        RestoreInto::External { .. } => 0,
        // The embedded engine can read only below its own folder, so it needs links or a second copy.
        RestoreInto::Embedded(_) if is_one_disk => 1,
        RestoreInto::Embedded(_) => 2,
    };
    let files = set.bytes() - set.table_bytes;
    let wanted = files + tables * set.table_bytes + SPARE_BYTES;
    if is_one_disk {
        return files::check_room(&plan.data_dir, wanted + downloads);
    }
    if downloads > 0 {
        files::check_room(from, downloads + SPARE_BYTES)?;
    }
    files::check_room(&plan.data_dir, wanted)
}

fn check_empty(data_dir: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        files::is_empty(data_dir)? || is_unfinished(data_dir),
        "the data folder {} is not empty: restore into a new folder (--data-dir)",
        data_dir.display()
    );
    Ok(())
}

/// Checks everything that can be checked without a connection.
fn check(plan: &RestorePlan, set: &BackupSet) -> anyhow::Result<()> {
    check_empty(&plan.data_dir)?;
    let has = |name: &str| set.files.iter().any(|file| file.path == Path::new(name));
    anyhow::ensure!(
        plan.postgres.is_none() || has(POSTGRES),
        "the control database of the backup is a SQLite file: restore without --database-url"
    );
    anyhow::ensure!(
        plan.postgres.is_some() || has(SQLITE),
        "the control database of the backup is from PostgreSQL: set --database-url to an empty database"
    );
    let (database, location) = match &plan.into {
        RestoreInto::Embedded(engine) => (&engine.database, None),
        RestoreInto::External { target, from } => (&target.database, from.as_ref()),
    };
    anyhow::ensure!(
        *database == set.database,
        "the tables of the backup are from the database `{}`: set --clickhouse-database={0}",
        set.database
    );
    match (set.clickhouse, &plan.into) {
        (ClickHouseAt::Set, RestoreInto::External { .. }) if location.is_none() => anyhow::bail!(
            "the tables of the backup are from the embedded engine. To restore them into your own ClickHouse, copy the folder `clickhouse` of \
             the backup to a place that ClickHouse can read, and name that place: --clickhouse-from \"File('/backups/{{part}}')\""
        ),
        (ClickHouseAt::Elsewhere, RestoreInto::External { .. }) if location.is_none() => {
            anyhow::bail!(
                "ClickHouse wrote the tables of this backup to another place. Name that place: --clickhouse-from \"S3('https://…/{{part}}', '…', '…')\""
            )
        }
        (ClickHouseAt::Elsewhere, RestoreInto::Embedded(_)) => anyhow::bail!(
            "ClickHouse wrote the tables of this backup to another place. Copy the three folders there to {}/{CLICKHOUSE}, and set \
             `\"clickhouse\": \"set\"` in backup.json",
            plan.from
        ),
        _ => Ok(()),
    }
}

async fn restore_tables(
    plan: &RestorePlan,
    folder: &Path,
    store: &ClickHouse,
    set: &BackupSet,
    report: OnProgress<'_>,
) -> anyhow::Result<()> {
    match &plan.into {
        RestoreInto::External { from, .. } => {
            let from = from.as_deref().unwrap_or_default();
            load_tables(store, set, report, |part| from.replace("{part}", part)).await
        }
        RestoreInto::Embedded(engine) => {
            let name = Uuid::new_v4().to_string();
            let copies = engine.engine_dir.join("backups");
            files::link_folder(&folder.join(CLICKHOUSE), &copies.join(&name)).await?;
            let started = engine.start(&engine.ports()?).await?;
            store.point_at(Some(&started.file.target(&set.database)));
            let from = |part: &str| format!("File('{name}/{part}')");
            let loaded = match store.create_empty().await {
                Ok(()) => load_tables(store, set, report, from).await,
                failed => failed,
            };
            store.point_at(None);
            let stopped = started.stop(&engine.data_dir).await;
            loaded?;
            stopped?;
            std::fs::remove_dir_all(&copies)
                .context("cannot delete the engine's copy of the backup")
        }
    }
}

/// Restores all parts. The last part has the views, which need the tables of the other parts.
async fn load_tables(
    store: &ClickHouse,
    set: &BackupSet,
    report: OnProgress<'_>,
    from: impl Fn(&str) -> String,
) -> anyhow::Result<()> {
    let mut done = 0;
    for part in &set.parts {
        let failed = || format!("ClickHouse cannot restore its tables ({})", part.name);
        let restored = store
            .start_restore(&from(&part.name))
            .await
            .with_context(failed)?;
        let show = |bytes| {
            report("tables", done + bytes, set.table_bytes);
            Ok(())
        };
        done += finish(store, &[restored], show)
            .await
            .with_context(failed)?;
    }
    Ok(())
}
