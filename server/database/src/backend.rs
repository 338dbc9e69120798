//! The interface of a database engine. SQL is written once, in the common subset of both engines. It is always static,
//! with `$1` for values: neither values nor names are ever interpolated.

use async_trait::async_trait;
use sqlx::postgres::{PgPool, PgRow, Postgres};
use sqlx::sqlite::{Sqlite, SqliteRow};
use tokio::sync::watch;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::error::ControlError;

/// A database engine: SQLite or PostgreSQL.
#[async_trait]
pub(super) trait Backend: Send + Sync {
    /// Reads rows outside of a transaction.
    async fn rows(&self, sql: &'static str, values: Values) -> Result<Vec<Row>, ControlError>;

    /// Begins a transaction that may write. Dropping it rolls it back.
    async fn begin(&self) -> Result<Box<dyn Statements>, ControlError>;

    /// Returns a receiver that is notified after each change that may affect a snapshot, by any server. The value has
    /// no meaning.
    fn subscribe(&self) -> watch::Receiver<u64>;

    /// Closes all connections, waiting for those in use.
    async fn close(&self);

    /// Removes the content of deleted rows from files that keep it until they are overwritten.
    async fn forget_deleted_rows(&self) -> Result<(), ControlError> {
        Ok(())
    }

    /// The connections of a database that several servers can share.
    fn shared_pool(&self) -> Option<&PgPool> {
        None
    }
}

/// The statements of one transaction.
#[async_trait]
pub(super) trait Statements: Send {
    async fn rows(&mut self, sql: &'static str, values: Values) -> Result<Vec<Row>, ControlError>;

    /// Executes a statement and returns the number of affected rows.
    async fn execute(&mut self, sql: &'static str, values: Values) -> Result<u64, ControlError>;

    async fn commit(self: Box<Self>, notice: Notice) -> Result<(), ControlError>;
}

/// Whether a change is announced to the holders of snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Tick,
    Silent,
}

/// The values of a statement, `$1` first.
pub(super) type Values = Vec<Value>;

/// A value of one of the types used in the schema.
#[derive(Clone)]
pub(super) enum Value {
    Text(Option<String>),
    Integer(Option<i64>),
    Boolean(bool),
    Bytes(Vec<u8>),
}

/// `values![id, name]`: converts each value with `Into<Value>`.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::backend::Value::from($value)),*] };
}
pub(super) use values;

/// Binds all values to a query, for either driver.
macro_rules! bound {
    ($sql:expr, $values:expr) => {
        $values
            .into_iter()
            .fold(sqlx::query($sql), |query, value| match value {
                $crate::backend::Value::Text(text) => query.bind(text),
                $crate::backend::Value::Integer(integer) => query.bind(integer),
                $crate::backend::Value::Boolean(boolean) => query.bind(boolean),
                $crate::backend::Value::Bytes(bytes) => query.bind(bytes),
            })
    };
}
pub(super) use bound;

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(str::to_owned))
    }
}

impl From<Uuid> for Value {
    fn from(id: Uuid) -> Self {
        Self::Text(Some(id.to_string()))
    }
}

impl From<Option<Uuid>> for Value {
    fn from(id: Option<Uuid>) -> Self {
        Self::Text(id.map(|id| id.to_string()))
    }
}

impl From<i64> for Value {
    fn from(integer: i64) -> Self {
        Self::Integer(Some(integer))
    }
}

impl From<Option<i64>> for Value {
    fn from(integer: Option<i64>) -> Self {
        Self::Integer(integer)
    }
}

impl From<UnixTime> for Value {
    fn from(time: UnixTime) -> Self {
        Self::Integer(Some(time.as_micros()))
    }
}

impl From<Option<UnixTime>> for Value {
    fn from(time: Option<UnixTime>) -> Self {
        Self::Integer(time.map(UnixTime::as_micros))
    }
}

impl From<bool> for Value {
    fn from(boolean: bool) -> Self {
        Self::Boolean(boolean)
    }
}

impl From<[u8; 32]> for Value {
    fn from(hash: [u8; 32]) -> Self {
        Self::Bytes(hash.to_vec())
    }
}

/// A row of either engine.
pub(super) struct Row(Inner);

enum Inner {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl From<SqliteRow> for Row {
    fn from(row: SqliteRow) -> Self {
        Self(Inner::Sqlite(row))
    }
}

impl From<PgRow> for Row {
    fn from(row: PgRow) -> Self {
        Self(Inner::Postgres(row))
    }
}

/// A type as which both drivers read a column.
pub(super) trait Stored:
    for<'r> sqlx::Decode<'r, Sqlite>
    + sqlx::Type<Sqlite>
    + for<'r> sqlx::Decode<'r, Postgres>
    + sqlx::Type<Postgres>
{
}

impl<T> Stored for T where
    T: for<'r> sqlx::Decode<'r, Sqlite>
        + sqlx::Type<Sqlite>
        + for<'r> sqlx::Decode<'r, Postgres>
        + sqlx::Type<Postgres>
{
}

/// A value that a column can be read as.
pub(super) trait Column {
    type Stored: Stored;

    fn new(stored: Self::Stored) -> Self;
}

macro_rules! stored_as_it_is {
    ($($column:ty),*) => {
        $(impl Column for $column {
            type Stored = Self;

            fn new(stored: Self) -> Self {
                stored
            }
        })*
    };
}
stored_as_it_is!(String, Option<String>, i64, Option<i64>, bool, Vec<u8>);

impl Column for UnixTime {
    type Stored = i64;

    fn new(micros: i64) -> Self {
        Self::from_micros(micros)
    }
}

impl Column for Option<UnixTime> {
    type Stored = Option<i64>;

    fn new(micros: Option<i64>) -> Self {
        micros.map(UnixTime::from_micros)
    }
}

impl Row {
    pub(super) fn get<T: Column>(&self, column: &str) -> Result<T, ControlError> {
        use sqlx::Row as _;
        let stored = match &self.0 {
            Inner::Sqlite(row) => row.try_get(column)?,
            Inner::Postgres(row) => row.try_get(column)?,
        };
        Ok(T::new(stored))
    }

    pub(super) fn id(&self, column: &str) -> Result<Uuid, ControlError> {
        self.parsed(column)
    }

    pub(super) fn maybe_id(&self, column: &str) -> Result<Option<Uuid>, ControlError> {
        let text = self.get::<Option<String>>(column)?;
        text.map(|text| text.parse().map_err(|_| unreadable(column)))
            .transpose()
    }

    /// Parses a text column, usually one of a closed set.
    pub(super) fn parsed<T: std::str::FromStr>(&self, column: &str) -> Result<T, ControlError> {
        let text = self.get::<String>(column)?;
        text.parse().map_err(|_| unreadable(column))
    }

    pub(super) fn json<T: serde::de::DeserializeOwned>(
        &self,
        column: &str,
    ) -> Result<T, ControlError> {
        let text = self.get::<String>(column)?;
        serde_json::from_str(&text).map_err(|_| unreadable(column))
    }

    pub(super) fn hash(&self, column: &str) -> Result<[u8; 32], ControlError> {
        let bytes = self.get::<Vec<u8>>(column)?;
        bytes.try_into().map_err(|_| unreadable(column))
    }
}

fn unreadable(column: &str) -> ControlError {
    ControlError::Unavailable(format!("the column {column} contains an unexpected value"))
}
