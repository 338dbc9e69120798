//! The control database in a SQLite file: the default, for one server on one machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::{
    Sqlite, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::DropGuard;

use super::backend::{Backend, Notice, Row, Statements, Values, bound};
use super::error::ControlError;
use crate::task::Tasks;

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than the busy timeout, so that who waits for the one writer learns why the writer waits.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
const OPENING_ATTEMPTS: u32 = 20;
const OPENING_PAUSE: Duration = Duration::from_millis(50);
const READERS: u32 = 4;
const LOOK_OUT_EVERY: Duration = Duration::from_millis(500);

/// One writer, since SQLite has one anyway: waiting in our queue is fair, waiting for its lock is not.
pub struct SqliteControl {
    writer: SqlitePool,
    readers: SqlitePool,
    changes: watch::Sender<u64>,
    /// Ends the look-out with the handle.
    _look_out: DropGuard,
}

impl SqliteControl {
    /// Opens the file, or makes it, readable by its owner only. Looks out for the changes of others until `tasks` end.
    pub async fn open(path: &Path, tasks: &Tasks) -> Result<Self, ControlError> {
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
            // A key that was revoked must stay revoked after a power cut, and changes are rare.
            .synchronous(SqliteSynchronous::Full);
        let writer = open_writer(&options).await?;
        migrate(&writer).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(options.pragma("query_only", "ON"))
            .await?;
        let changes = watch::Sender::new(0);
        let shutdown = tasks.shutdown().child_token();
        // Read here, so that whatever is written after this handle was opened is noticed.
        let seen = version(&writer).await?;
        let (pool, ticks, ended) = (writer.clone(), changes.clone(), shutdown.clone());
        // It ends with the handle.
        tasks.spawn_finite("control-look-out", async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = look_out(&pool, &ticks, seen) => {}
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

/// A new file becomes a WAL one at the first connection, and SQLite does not let a second process wait for that: it asks again.
async fn open_writer(options: &SqliteConnectOptions) -> Result<SqlitePool, sqlx::Error> {
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        // What others changed is told by this very connection, so it stays the same.
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(ACQUIRE_TIMEOUT);
    for _ in 0..OPENING_ATTEMPTS {
        match pool.clone().connect_with(options.clone()).await {
            Err(sqlx::Error::Database(_)) => sleep(OPENING_PAUSE).await,
            other => return other,
        }
    }
    pool.connect_with(options.clone()).await
}

/// Ticks when somebody else wrote to the file: a command that an operator runs beside the server. SQLite sends no notices, but it
/// tells each connection whether another one has committed, which costs a look at shared memory.
async fn look_out(writer: &SqlitePool, changes: &watch::Sender<u64>, mut seen: i64) {
    loop {
        sleep(LOOK_OUT_EVERY).await;
        match version(writer).await {
            Ok(now) if now == seen => {}
            Ok(now) => {
                seen = now;
                changes.send_modify(|ticks| *ticks += 1);
            }
            Err(sqlx::Error::PoolClosed) => return,
            Err(error) => {
                tracing::warn!(%error, "changes made by commands are not noticed for now");
            }
        }
    }
}

/// Changes when another connection has committed.
async fn version(writer: &SqlitePool) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("PRAGMA data_version")
        .fetch_one(writer)
        .await
}

/// The file's own mode is what SQLite gives to the two files beside it. One that exists is not opened: closing it again would take
/// away the locks that another handle of this process has on it.
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

/// SQLite has no lock for migrations: of two processes that find the same one to do, one is refused when the other has committed,
/// and finds it done. That may happen once for each.
async fn migrate(writer: &SqlitePool) -> Result<(), ControlError> {
    let mut migrations = sqlx::migrate!("../migrations/sqlite");
    // After a newer version was here: its schema works for this one too, by the deploy rule.
    migrations.set_ignore_missing(true);
    for _ in migrations.iter() {
        if migrations.run(writer).await.is_ok() {
            return Ok(());
        }
    }
    Ok(migrations.run(writer).await?)
}

/// `sqlite:path` or `sqlite://path`.
pub(super) fn path_of(rest: &str) -> Result<PathBuf, ControlError> {
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() || path.starts_with(':') {
        return Err(ControlError::Invalid(
            "the control database needs a file: sqlite:path/to/control.db".to_owned(),
        ));
    }
    Ok(PathBuf::from(path))
}

#[async_trait]
impl Backend for SqliteControl {
    async fn rows(&self, sql: &'static str, values: Values) -> Result<Vec<Row>, ControlError> {
        let rows = bound!(sql, values).fetch_all(&self.readers).await?;
        Ok(rows.into_iter().map(Row::from).collect())
    }

    async fn begin(&self) -> Result<Box<dyn Statements>, ControlError> {
        Ok(Box::new(SqliteStatements {
            // A transaction that reads first and then writes could otherwise fail half way, for another process's write.
            transaction: self.writer.begin_with("BEGIN IMMEDIATE").await?,
            changes: self.changes.clone(),
        }))
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
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
