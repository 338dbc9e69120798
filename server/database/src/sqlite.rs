//! The control database in a SQLite file: the default, for a single server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::Connection as _;
use sqlx::sqlite::{
    Sqlite, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::DropGuard;
use unjank_foundation::task::Tasks;

use super::backend::{Backend, Notice, Row, Statements, Values, bound};
use super::error::ControlError;

pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than the busy timeout, so that callers waiting for the writer get the error that the writer gets.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
const OPENING_ATTEMPTS: u32 = 20;
const OPENING_PAUSE: Duration = Duration::from_millis(50);
const READERS: u32 = 4;
const LOOK_OUT_EVERY: Duration = Duration::from_millis(500);

/// There is one writer connection, since SQLite allows only one at a time: waiting for a connection is fair, waiting
/// for SQLite's lock is not.
pub(super) struct SqliteBackend {
    writer: SqlitePool,
    readers: SqlitePool,
    changes: watch::Sender<u64>,
    /// Stops the watcher when the handle is dropped.
    _look_out: DropGuard,
}

impl SqliteBackend {
    /// Opens or creates the file, readable by its owner only. Watches for changes by other processes until `tasks` end.
    pub(super) async fn open(path: &Path, tasks: &Tasks) -> Result<Self, ControlError> {
        let file = path.to_owned();
        tokio::task::spawn_blocking(move || make_private(&file))
            .await
            .map_err(|error| ControlError::Unavailable(error.to_string()))?
            .map_err(|error| ControlError::Unavailable(format!("{}: {error}", path.display())))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .journal_mode(SqliteJournalMode::Wal)
            // A revoked key must stay revoked after a power cut. Changes are rare, so the cost does not matter.
            .synchronous(SqliteSynchronous::Full)
            // Otherwise the free parts of the file keep what an erasure has deleted.
            .pragma("secure_delete", "ON");
        let opened = Arc::new(AtomicU64::new(0));
        let writer = open_writer(&options, &opened).await?;
        migrate(&writer).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            // A connection to a file does not break, and readers have no rollbacks to wait for. A ping would wake another thread for each query.
            .test_before_acquire(false)
            .connect_with(options.pragma("query_only", "ON"))
            .await?;
        let changes = watch::Sender::new(0);
        let shutdown = tasks.shutdown().child_token();
        // Read before the handle is returned, so that every later write is noticed.
        let seen = version(&writer, &opened).await?;
        let (pool, ticks, ended) = (writer.clone(), changes.clone(), shutdown.clone());
        // The task ends with the handle.
        tasks.spawn_finite("control-look-out", async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = look_out(&pool, &opened, &ticks, seen) => {}
            }
        });
        Ok(Self {
            writer,
            readers,
            changes,
            _look_out: shutdown.drop_guard(),
        })
    }
}

/// Opens the writer, and counts each connection that it opens. The first connection converts a new file to WAL mode;
/// SQLite does not let a second process wait for that, so it retries.
///
/// SQLite ends a transaction by itself if, for example, the disk is full. The driver's own rollback fails then, and it
/// takes the connection for one that is still in a transaction, forever. Such a connection is replaced.
async fn open_writer(
    options: &SqliteConnectOptions,
    opened: &Arc<AtomicU64>,
) -> Result<SqlitePool, sqlx::Error> {
    let opened = Arc::clone(opened);
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // The pool has pinged the connection before this, so that a rollback that was still waiting is done.
        .test_before_acquire(true)
        .before_acquire(|connection, _| {
            let usable = !connection.is_in_transaction();
            Box::pin(async move { Ok(usable) })
        })
        .after_connect(move |_, _| {
            opened.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Ok(()) })
        });
    for _ in 0..OPENING_ATTEMPTS {
        match pool.clone().connect_with(options.clone()).await {
            Err(sqlx::Error::Database(_)) => sleep(OPENING_PAUSE).await,
            other => return other,
        }
    }
    pool.connect_with(options.clone()).await
}

/// Ticks when another process, such as a command run alongside the server, writes to the file. SQLite sends no notices,
/// but `data_version` shows each connection whether another has committed, at the cost of a read of shared memory.
async fn look_out(
    writer: &SqlitePool,
    opened: &AtomicU64,
    changes: &watch::Sender<u64>,
    mut seen: (u64, i64),
) {
    loop {
        sleep(LOOK_OUT_EVERY).await;
        match version(writer, opened).await {
            Ok(now) if now == seen => {}
            Ok(now) => {
                seen = now;
                changes.send_modify(|ticks| *ticks += 1);
            }
            Err(sqlx::Error::PoolClosed) => return,
            Err(error) => {
                tracing::warn!(%error, "cannot check for changes made by commands");
            }
        }
    }
}

/// Returns a version that changes when another connection commits. `data_version` is relative to a connection, so the
/// number of the connection is part of it: what was written while one replaced another is noticed too.
async fn version(writer: &SqlitePool, opened: &AtomicU64) -> Result<(u64, i64), sqlx::Error> {
    let mut connection = writer.acquire().await?;
    // There is only one connection, and it is in use, so this is its number.
    let number = opened.load(Ordering::Relaxed);
    let version = sqlx::query_scalar("PRAGMA data_version")
        .fetch_one(&mut *connection)
        .await?;
    Ok((number, version))
}

/// Creates the file if needed, and makes it private. SQLite gives its two companion files the same mode. An existing
/// file is not opened: closing it would release the locks that another handle of this process has on it.
fn make_private(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(())
}

/// Applies the migrations. SQLite has no lock for them: of two processes that apply the same one, one fails when the
/// other commits, and then finds it applied. That can happen once per migration, hence the retries.
async fn migrate(writer: &SqlitePool) -> Result<(), ControlError> {
    let mut migrations = sqlx::migrate!("../../migrations/sqlite");
    // The schema may be of a newer version. By the deploy rule, this version works with it too.
    migrations.set_ignore_missing(true);
    for _ in migrations.iter() {
        if migrations.run(writer).await.is_ok() {
            return Ok(());
        }
    }
    Ok(migrations.run(writer).await?)
}

/// Returns the path of `sqlite:path` or `sqlite://path`.
pub(super) fn path_of(rest: &str) -> Result<PathBuf, ControlError> {
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() || path.starts_with(':') {
        return Err(ControlError::Invalid(
            "the control database needs a file, such as sqlite:path/to/control.db".to_owned(),
        ));
    }
    Ok(PathBuf::from(path))
}

#[async_trait]
impl Backend for SqliteBackend {
    async fn rows(&self, sql: &'static str, values: Values) -> Result<Vec<Row>, ControlError> {
        let rows = bound!(sql, values).fetch_all(&self.readers).await?;
        Ok(rows.into_iter().map(Row::from).collect())
    }

    async fn begin(&self) -> Result<Box<dyn Statements>, ControlError> {
        Ok(Box::new(SqliteStatements {
            // Otherwise a transaction that reads before it writes could fail midway because of another process's write.
            transaction: self.writer.begin_with("BEGIN IMMEDIATE").await?,
            changes: self.changes.clone(),
        }))
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The write-ahead log has former pages.
    async fn forget_deleted_rows(&self) -> Result<(), ControlError> {
        let busy: i64 = sqlx::query_scalar("PRAGMA wal_checkpoint(TRUNCATE)")
            .fetch_one(&self.writer)
            .await?;
        if busy != 0 {
            let why = "another process is reading the control database";
            return Err(ControlError::Unavailable(why.to_owned()));
        }
        Ok(())
    }

    async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

struct SqliteStatements {
    transaction: sqlx::Transaction<'static, Sqlite>,
    changes: watch::Sender<u64>,
}

#[async_trait]
impl Statements for SqliteStatements {
    async fn rows(&mut self, sql: &'static str, values: Values) -> Result<Vec<Row>, ControlError> {
        let query = bound!(sql, values);
        let rows = query.fetch_all(&mut *self.transaction).await?;
        Ok(rows.into_iter().map(Row::from).collect())
    }

    async fn execute(&mut self, sql: &'static str, values: Values) -> Result<u64, ControlError> {
        let query = bound!(sql, values);
        let done = query.execute(&mut *self.transaction).await?;
        Ok(done.rows_affected())
    }

    async fn commit(self: Box<Self>, notice: Notice) -> Result<(), ControlError> {
        self.transaction.commit().await?;
        if notice == Notice::Tick {
            self.changes.send_modify(|ticks| *ticks += 1);
        }
        Ok(())
    }
}
