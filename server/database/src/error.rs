//! Errors of the control database. They never contain values, which may be secrets.

use sqlx::error::{DatabaseError, ErrorKind};

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
    /// The database is unreachable, busy or broken.
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

impl From<sqlx::migrate::MigrateError> for ControlError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        Self::Unavailable(format!("cannot apply its migrations: {error}"))
    }
}

fn refused(error: &dyn DatabaseError) -> ControlError {
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
            ControlError::Invalid("the database cannot store this value".to_owned())
        }
        _ => ControlError::Unavailable(error.message().to_owned()),
    }
}
