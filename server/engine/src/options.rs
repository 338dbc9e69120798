//! The options of an engine.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clickhouse::ClickHouse;

/// The options of an engine. Its process gets them too, without the secrets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EngineOptions {
    /// The folder of ClickHouse's data. Created if it is missing, and used by one engine at a time.
    pub data_dir: PathBuf,
    pub clickhouse: ClickHouse,
    /// The program whose process becomes ClickHouse.
    #[serde(skip)]
    pub host: HostProgram,
    /// The database for writers and readers.
    pub database: String,
    #[serde(skip)]
    pub users: Vec<User>,
    /// What administrators may read and write outside the data folder. Nothing if empty.
    pub sources: Vec<Source>,
    /// Maximum memory of all queries and merges together, in bytes.
    pub max_memory_bytes: u64,
    /// The CPU priority, as in `nice`: from 0 to 19, which is the lowest.
    pub nice: i32,
    /// How long running queries may continue when the engine stops. Then they are cancelled.
    pub shutdown_patience: Duration,
    /// How long to wait until another engine releases the data folder.
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

/// The rights of a user. No role has access to files, other servers or programs, except administrators as `sources` allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// May read and write the tables of the database, and change its schema.
    Writer,
    /// May read the database and the `system` tables about it.
    Reader,
    /// May access every database, including `system`.
    Admin,
}

/// A source outside the data folder, by ClickHouse's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// `file()`: files in the data folder. If the system cannot confine processes: all files that the user of unjank can open.
    File,
    Url,
    S3,
    Remote,
}
