//! Why an operation of the control database did not happen. Values never stand in it: they may be secrets.

use sqlx::error::{DatabaseError, ErrorKind};

/// What callers can act on. Nothing was changed when one of these is answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// It, or something it refers to, does not exist, is revoked, or belongs to another project.
    #[error("there is no such thing")]
    NotFound,
    #[error("it exists already")]
    AlreadyExists,
    /// Somebody saved in between: the expected revision is not the current one.
    #[error("the current revision is {current}")]
    Conflict { current: i64 },
    #[error("{0}")]
    Invalid(String),
    /// What is to be made could do more than its maker.
    #[error("it would have more rights than what it is made with")]
    Outranks,
    /// What is to be made would be there when its maker is not any more.
    #[error(
        "it would outlast the token that it is made with: give it an end, or use a credential without one"
    )]
    Outlives,
    /// The database is away, busy or broken.
    #[error("the control database is not available: {0}")]
    Unavailable(String),
}

impl From<sqlx::Error> for ControlError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::RowNotFound => Self::NotFound,
            sqlx::Error::Database(error) => refused(&*error),
            // The texts of these come from the driver and name columns and addresses, never values.
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<sqlx::migrate::MigrateError> for ControlError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        Self::Unavailable(format!("its migrations do not apply: {error}"))
    }
}

fn refused(error: &dyn DatabaseError) -> ControlError {
    match error.kind() {
        ErrorKind::UniqueViolation => ControlError::AlreadyExists,
        ErrorKind::ForeignKeyViolation => ControlError::NotFound,
        ErrorKind::CheckViolation | ErrorKind::NotNullViolation => {
            ControlError::Invalid("the database does not allow this value".to_owned())
        }
        // Class 22 of PostgreSQL: data exceptions, such as a NUL in a text. Its message may quote the value.
        _ if error
            .code()
            .is_some_and(|code| code.starts_with("22") && code.len() == 5) =>
        {
            ControlError::Invalid("the database cannot hold this value".to_owned())
        }
        _ => ControlError::Unavailable(error.message().to_owned()),
    }
}
