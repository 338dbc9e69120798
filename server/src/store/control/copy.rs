//! Copies a control database in a SQLite file, as it is, while servers use it.

use std::path::Path;

use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;

use super::error::ControlError;
use super::sqlite;

/// Writes a copy to a file that does not exist. `url` is like `sqlite:path`. The copy has the schema of the original, whichever version of unjank
/// it is from.
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
