//! How an engine is run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clickhouse::ClickHouse;

/// How an engine is run. Its process gets these options too, without the secrets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EngineOptions {
    /// The folder of ClickHouse's data, created when it is missing. One engine uses it at a time.
    pub data_dir: PathBuf,
    pub clickhouse: ClickHouse,
    /// The program whose process becomes ClickHouse.
    #[serde(skip)]
    pub host: HostProgram,
    /// The database that writers write and readers read.
    pub database: String,
    #[serde(skip)]
    pub users: Vec<User>,
    /// What administrators may read and write outside the data folder. Empty: nothing.
    pub sources: Vec<Source>,
    /// The most memory that queries and merges take together, in bytes.
    pub max_memory_bytes: u64,
    /// How far the engine steps back for other processes: 0 to 19, as in `nice`.
    pub nice: i32,
    /// How long running queries may go on when the engine ends. Then they are cancelled.
    pub shutdown_patience: Duration,
    /// How long to wait for another engine to leave the data folder.
    pub lock_patience: Duration,
}

/// A program that calls [`crate::host::run`] with its last argument.
#[derive(Clone, Debug, Default)]
pub struct HostProgram {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
}

/// A ClickHouse user.
#[derive(Clone)]
pub struct User {
    pub name: String,
    pub password: String,
    pub role: Role,
}

impl std::fmt::Debug for User {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({:?})", self.name, self.role)
    }
}

/// What a user may do. No role reaches files, other servers or programs; an administrator does when `sources` say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads and writes the tables of the database, and changes its schema.
    Writer,
    /// Reads the database and what `system` says about it.
    Reader,
    /// Every database, and `system`.
    Admin,
}

/// Something outside the data folder, by ClickHouse's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// `file()`: files in the data folder. Where the system cannot confine processes: all files that the user of unjank can open.
    File,
    Url,
    S3,
    Remote,
}
