//! Copies of control databases for backups.

use std::path::Path;

use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use super::error::ControlError;
use super::sqlite;

/// Copies a SQLite database, which servers may be using, to a new file. Does not migrate the schema. `url` is like `sqlite:path`.
pub async fn copy_sqlite(url: &str, to: &Path) -> Result<(), ControlError> {
    let path = sqlite::path_of(url.strip_prefix("sqlite:").unwrap_or(url))?;
    let options = SqliteConnectOptions::new().filename(path);
    let mut connection = options.busy_timeout(sqlite::BUSY_TIMEOUT).connect().await?;
    let to = to.to_string_lossy().into_owned();
    sqlx::query("VACUUM INTO ?")
        .bind(to)
        .execute(&mut connection)
        .await?;
    Ok(())
}

/// Whether a PostgreSQL database has no tables.
pub async fn is_empty_postgres(url: &str) -> Result<bool, ControlError> {
    let mut connection = PgConnection::connect(url).await?;
    let tables = "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = current_schema()";
    let tables: i64 = sqlx::query_scalar(tables)
        .fetch_one(&mut connection)
        .await?;
    Ok(tables == 0)
}
