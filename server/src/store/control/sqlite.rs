//! The control database in a SQLite file: the default, for one server on one machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{
    Sqlite, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use tokio::sync::watch;

use super::backend::{Backend, Notice, Row, Statements, Values, bound};
use super::error::ControlError;

static MIGRATIONS: Migrator = sqlx::migrate!("../migrations/sqlite");

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than the busy timeout, so that who waits for the one writer learns why the writer waits.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
const READERS: u32 = 4;

/// One writer, since SQLite has one anyway: waiting in our queue is fair, waiting for its lock is not.
pub struct SqliteControl {
    writer: SqlitePool,
    readers: SqlitePool,
    changes: watch::Sender<u64>,
}

impl SqliteControl {
    /// Opens the file, or makes it, readable by its owner only.
    pub async fn open(path: &Path) -> Result<Self, ControlError> {
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
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(options.clone())
            .await?;
        MIGRATIONS.run(&writer).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(options.pragma("query_only", "ON"))
            .await?;
        Ok(Self {
            writer,
            readers,
            changes: watch::Sender::new(0),
        })
    }
}

/// The file's own mode is what SQLite gives to the two files beside it.
fn make_private(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        let file = options.mode(0o600).open(path)?;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))
    }
    #[cfg(not(unix))]
    options.open(path).map(drop)
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
