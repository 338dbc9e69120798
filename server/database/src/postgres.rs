//! The control database in PostgreSQL, for several servers that share keys, users and configurations.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, Postgres};
use tokio::sync::watch;
use tokio_util::sync::DropGuard;
use unjank_foundation::task::Tasks;

use super::backend::{Backend, Notice, Row, Statements, Values, bound};
use super::error::ControlError;
use super::listener;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECTIONS: u32 = 8;

pub(super) struct PostgresBackend {
    pool: PgPool,
    changes: watch::Sender<u64>,
    /// Stops the listener when the handle is dropped.
    _listener: DropGuard,
}

impl PostgresBackend {
    /// Connects, applies the migrations, and listens for changes until `tasks` end.
    pub(super) async fn open(url: &str, tasks: &Tasks) -> Result<Self, ControlError> {
        let options = options(url)?;
        reach(&options).await?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(options.clone())
            .await?;
        let mut migrations = sqlx::migrate!("../../migrations/postgres");
        // The schema may be of a newer version. By the deploy rule, this version works with it too.
        migrations.set_ignore_missing(true);
        migrations.run(&pool).await?;
        let changes = watch::Sender::new(0);
        let (listening, ready) = watch::channel(false);
        let shutdown = tasks.shutdown().child_token();
        let (ticks, ended) = (changes.clone(), shutdown.clone());
        // The task ends with the handle.
        tasks.spawn_finite("control-listener", async move {
            listener::run(&options, &ticks, &listening, ended).await;
        });
        listening_or_late(ready).await;
        Ok(Self {
            pool,
            changes,
            _listener: shutdown.drop_guard(),
        })
    }
}

/// Parses the URL. The driver's own error is not used, because it would quote the URL, which may contain a password.
fn options(url: &str) -> Result<PgConnectOptions, ControlError> {
    let options: PgConnectOptions = url.parse().map_err(|_| {
        ControlError::Invalid(
            "the URL of the control database is invalid; expected postgres://user:password@host:5432/database".to_owned(),
        )
    })?;
    Ok(options.application_name("unjank").options([
        ("statement_timeout", "15s"),
        // Releases the locks of a server whose host has failed.
        ("idle_in_transaction_session_timeout", "15s"),
    ]))
}

/// Makes one attempt to connect. A pool would retry until its timeout and then not report the reason.
async fn reach(options: &PgConnectOptions) -> Result<(), ControlError> {
    let place = || {
        format!(
            "PostgreSQL at {}:{}",
            options.get_host(),
            options.get_port()
        )
    };
    let connection = tokio::time::timeout(CONNECT_TIMEOUT, options.connect())
        .await
        .map_err(|_| {
            ControlError::Unavailable(format!(
                "{} did not answer within {CONNECT_TIMEOUT:?}",
                place()
            ))
        })?
        .map_err(|error| ControlError::Unavailable(format!("{}: {error}", place())))?;
    sqlx::Connection::close(connection).await?;
    Ok(())
}

/// Waits until the listener is connected, so that later changes are noticed. Gives up after a while, since the handle
/// also works without it.
async fn listening_or_late(mut ready: watch::Receiver<bool>) {
    let listening = ready.wait_for(|ready| *ready);
    if tokio::time::timeout(CONNECT_TIMEOUT, listening)
        .await
        .is_err()
    {
        tracing::warn!("cannot listen for changes made by other servers yet");
    }
}

#[async_trait]
impl Backend for PostgresBackend {
    async fn rows(&self, sql: &'static str, values: Values) -> Result<Vec<Row>, ControlError> {
        let rows = bound!(sql, values).fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(Row::from).collect())
    }

    async fn begin(&self) -> Result<Box<dyn Statements>, ControlError> {
        Ok(Box::new(PgStatements(self.pool.begin().await?)))
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    async fn close(&self) {
        self.pool.close().await;
    }

    fn shared_pool(&self) -> Option<&PgPool> {
        Some(&self.pool)
    }
}

struct PgStatements(sqlx::Transaction<'static, Postgres>);

#[async_trait]
impl Statements for PgStatements {
    async fn rows(&mut self, sql: &'static str, values: Values) -> Result<Vec<Row>, ControlError> {
        let rows = bound!(sql, values).fetch_all(&mut *self.0).await?;
        Ok(rows.into_iter().map(Row::from).collect())
    }

    async fn execute(&mut self, sql: &'static str, values: Values) -> Result<u64, ControlError> {
        let done = bound!(sql, values).execute(&mut *self.0).await?;
        Ok(done.rows_affected())
    }

    async fn commit(mut self: Box<Self>, notice: Notice) -> Result<(), ControlError> {
        if notice == Notice::Tick {
            // PostgreSQL sends the notice if and only if the transaction commits.
            sqlx::query("NOTIFY unjank_control")
                .execute(&mut *self.0)
                .await?;
        }
        self.0.commit().await?;
        Ok(())
    }
}
