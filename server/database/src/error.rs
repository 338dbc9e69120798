//! Errors of the control database. They never contain values, which may be secrets.

use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::migrate::MigrateError;
use sqlx::sqlite::SqliteError;

/// Why an operation failed. If an operation returns an error, it has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The object, or one it refers to, does not exist, is revoked, or belongs to another project.
    #[error("not found")]
    NotFound,
    #[error("already exists")]
    AlreadyExists,
    /// The expected revision is not the current one, because another has been saved since.
    #[error("the expected revision is not current; the current revision is {current}")]
    Conflict { current: i64 },
    #[error("{0}")]
    Invalid(String),
    /// The actor tried to grant more rights than it has.
    #[error("you cannot grant more rights than you have")]
    ExceedsOwnRights,
    /// The actor tried to grant access that outlives its own.
    #[error(
        "you cannot grant access that outlives your token; set an earlier expiry, or use a token that does not expire"
    )]
    OutlivesActor,
    /// SQLite reads something else than a database, or a database with broken parts.
    #[error(
        "the control database is damaged ({0}): stop the server, delete the files that end with -wal and -shm next to the database, and copy \
         the database from the last backup (docs/data-folder.md, Damaged or lost files)"
    )]
    Damaged(String),
    /// The database is unreachable or busy, or has an error.
    #[error("the control database is not available: {0}")]
    Unavailable(String),
}

impl From<sqlx::Error> for ControlError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::RowNotFound => Self::NotFound,
            sqlx::Error::Database(error) => refused(&*error),
            // These texts come from the driver. They name columns and addresses, never values.
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<MigrateError> for ControlError {
    fn from(error: MigrateError) -> Self {
        let text = format!("cannot apply its migrations: {error}");
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                match Self::from(error) {
                    damaged @ Self::Damaged(_) => damaged,
                    _ => Self::Unavailable(text),
                }
            }
            _ => Self::Unavailable(text),
        }
    }
}

/// SQLite's codes `SQLITE_CORRUPT` and `SQLITE_NOTADB`. Only the last byte of an extended code is the kind of the error.
const DAMAGED: [u32; 2] = [11, 26];

fn is_damage(error: &(dyn DatabaseError + 'static)) -> bool {
    let code = error.try_downcast_ref::<SqliteError>();
    let code = code.and_then(|error| error.code()?.parse::<u32>().ok());
    code.is_some_and(|code| DAMAGED.contains(&(code & 0xff)))
}

fn refused(error: &(dyn DatabaseError + 'static)) -> ControlError {
    match error.kind() {
        ErrorKind::UniqueViolation => ControlError::AlreadyExists,
        ErrorKind::ForeignKeyViolation => ControlError::NotFound,
        ErrorKind::CheckViolation | ErrorKind::NotNullViolation => {
            ControlError::Invalid("the database does not allow this value".to_owned())
        }
        // PostgreSQL's class 22: data exceptions, such as a NUL in a text. The message may quote the value.
        _ if error
            .code()
            .is_some_and(|code| code.starts_with("22") && code.len() == 5) =>
        {
            ControlError::Invalid(
                "the database cannot store this value: a text has a NUL, or a number is too large"
                    .to_owned(),
            )
        }
        _ if is_damage(error) => ControlError::Damaged(error.message().to_owned()),
        _ => ControlError::Unavailable(error.message().to_owned()),
    }
}
