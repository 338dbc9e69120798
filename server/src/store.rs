//! Persistence: the ingest log on disk, ClickHouse, and the control database. The only module with SQL.

pub mod control;

mod backup;
mod books;
mod buckets;
mod clickhouse;
mod columns;
mod dead_letter;
mod delivery;
mod destination;
mod duplicates;
mod durable_file;
mod embedded;
mod erase;
mod fold;
mod former_groups;
mod function_names;
mod holds;
mod installs;
mod jank_groups;
mod last_backup;
mod learn;
mod ledger;
mod log;
mod marks;
mod migrations;
mod native;
mod number;
mod old_fault;
mod proof;
mod raw;
pub mod reads;
mod rebuild;
mod record;
mod retention;
mod roll_ups;
mod send;
#[cfg(test)]
mod simulation;
mod stored_stacks;
mod symbolicated_stacks;
mod tally;
mod texts;
mod usage;
mod writer;

pub use self::backup::{BackupPart, BackupState};
pub use self::books::{Book, Compared, Difference, Kept, PAGES, Page, Period};
pub use self::buckets::upper_bound;
pub use self::clickhouse::{ClickHouse, Failure, Login, Target};
pub use self::columns::{FrameBuilder, Inner, Kind, Layout};
pub use self::dead_letter::{DeadLetter, DeadLetterError, DeadLetters};
pub use self::embedded::{
    EmbeddedEngine, EngineFile, EnginePasswords, EngineSettings, StartedEngine,
};
pub use self::erase::{ErasureScope, Found, Mutation, Subject, tables_of_installs};
pub use self::function_names::FunctionName;
pub use self::installs::{InstallSample, InstallVolume, MAX_VOLUMES, SeenInstall};
pub use self::last_backup::LastBackup;
pub use self::log::{HeldLog, IngestLog, LogError, LogHold, LogRecords, LogSettings};
pub use self::migrations::migrate;
pub use self::native::{BadFrame, Frame};
pub use self::number::Number;
pub use self::rebuild::{Filled, LIFE, OnProgress, Part, Ready, Rebuilder, Rebuilt, Refused};
pub use self::record::{Count, Outcome, Record, RecordBuilder};
pub use self::retention::{OF_STACKS, Retention};
pub use self::stored_stacks::{Classes, NewClass, StackCounts, StackCursor, StoredStack};
pub use self::symbolicated_stacks::SymbolicatedStack;
pub use self::texts::StoredText;
pub use self::usage::{RetentionPlan, TableUse};
pub(crate) use self::writer::{Writer, WriterSettings};

pub(crate) use self::columns::uuid_bytes;
pub(crate) use self::durable_file::DurableFiles;
pub(crate) use self::log::disk::free_bytes;

/// For the benchmark: joins the frames of `records` table by table, as the writer does. Returns the size of the blocks in bytes.
#[doc(hidden)]
pub fn bench_join(records: &[Vec<u8>]) -> usize {
    let mut tables: std::collections::BTreeMap<&[u8], Vec<Frame<'_>>> =
        std::collections::BTreeMap::new();
    for frame in records
        .iter()
        .filter_map(|bytes| Record::read(bytes).ok())
        .flat_map(|record| record.frames)
    {
        tables.entry(frame.key()).or_default().push(frame);
    }
    let mut bytes = 0;
    for frames in tables.values() {
        if let Ok(mut block) = native::Block::join(frames) {
            while let Ok(Some(chunk)) = block.next_chunk() {
                bytes += chunk.len();
            }
        }
    }
    bytes
}
