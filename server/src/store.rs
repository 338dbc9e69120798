//! Persistence: the ingest log on disk, and ClickHouse. The only module with SQL; the crate `database` has its own.

mod backup;
mod buckets;
mod clickhouse;
mod cluster;
mod drain;
mod durable_file;
mod embedded;
mod engine_watch;
mod installs;
mod last_backup;
mod log;
mod migrations;
mod old_fault;
mod query_ids;
mod range_number;
mod raw_tables;
pub mod reads;
mod roll_ups;
#[cfg(test)]
mod simulation;
mod stacks;
mod upkeep;

pub use self::backup::{BackupPart, BackupState};
pub use self::buckets::upper_bound;
pub use self::clickhouse::{ClickHouse, Failure, Login, Target};
pub use self::cluster::{BadCluster, Cluster, ClusterError, HostReport, HostState, HostUrl};
pub use self::drain::dead_letter::{DeadLetterError, DeadLetters};
pub use self::drain::dead_letter_header::DeadLetter;
pub(crate) use self::drain::lease::{lease_lost, take_over};
pub(crate) use self::drain::writer::{DrainTotals, Writer, WriterSettings};
pub use self::embedded::{
    EmbeddedEngine, EngineFile, EnginePasswords, EngineSettings, StartedEngine,
};
pub use self::engine_watch::watch_server;
pub use self::installs::{InstallSample, InstallVolume, MAX_VOLUMES, SeenInstall};
pub use self::last_backup::LastBackup;
pub use self::log::{HeldLog, IngestLog, LogError, LogHold, LogRecords, LogSettings};
pub use self::migrations::{migrate, migrate_used};
pub use self::range_number::Number;
pub use self::stacks::function_names::FunctionName;
pub use self::stacks::stored_stacks::{Classes, NewClass, StackCounts, StackCursor, StoredStack};
pub use self::stacks::symbolicated_stacks::SymbolicatedStack;
pub use self::stacks::texts::StoredText;
pub use self::upkeep::books::{Book, Compared, Difference, Kept, PAGES, Page, Period};
pub use self::upkeep::erase::{ErasureScope, Found, Subject, tables_of_installs};
pub use self::upkeep::expired_rows::RetentionPlan;
pub use self::upkeep::mutations::Mutation;
pub use self::upkeep::rebuild::{
    Filled, LIFE, OnProgress, Part, Ready, Rebuilder, Rebuilt, Refused,
};
pub use self::upkeep::retention::{OF_STACKS, Retention};
pub use self::upkeep::usage::TableUse;

pub(crate) use self::durable_file::DurableFiles;
pub(crate) use self::log::disk::free_bytes;
