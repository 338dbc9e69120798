//! A crash-safe segmented log: the offline queue of the SDK and the ingest log of the server.
//!
//! The log returns the bytes that were appended, unchanged and in order, after any crash. It does not interpret them, and
//! contains no runtime, threads, clocks, retries or compression.
//!
//! One thread owns the [`Log`]: it appends many records and then calls [`Log::sync`] once. Other threads read with a [`Reader`],
//! which sees only synced records, and release space with a [`Trimmer`].
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! use unjank_spool::{Log, Options};
//!
//! let (mut log, recovery) = Log::open(Options::new(dir.path(), 64 << 20))?;
//! let (mut reader, trimmer) = (log.reader(), log.trimmer());
//!
//! log.append(b"a batch")?;
//! log.append(b"another")?;
//! assert_eq!(log.sync()?, recovery.next_seq + 1); // only now may they be acknowledged
//!
//! while let Some(chunk) = reader.next_chunk(1 << 20)? {
//!     for record in chunk.iter() {
//!         println!("{}: {} bytes", record.seq, record.payload.len());
//!     }
//!     if let Some(seq) = chunk.last_seq() {
//!         trimmer.trim(seq)?; // the results of processing them are durable elsewhere
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Format, version 1
//! A folder contains `lock` (held while a [`Log`] lives), `trimmed` (see below) and segments. A segment is named `<first sequence
//! number, 16 hex digits>-<tag, 8 hex digits>.segment`. Files with other names are never touched. All integers are little-endian.
//!
//! | segment header | bytes | | record header | bytes |
//! |---|---|---|---|---|
//! | magic `uj-spool` | 8 | | magic `f5 52 65 63` | 4 |
//! | version | 4 | | tag of the segment | 4 |
//! | tag | 4 | | sequence number | 8 |
//! | first sequence number | 8 | | payload length | 4 |
//! | CRC32C of the above | 4 | | CRC32C of the payload | 4 |
//! | | | | CRC32C of the above | 4 |
//!
//! * The header of a record has its own checksum, so its length can be trusted before the payload is read: a damaged payload is
//!   skipped, and a hostile length allocates nothing.
//! * The tag is a random number drawn when the log is opened. It prevents bytes that only look like a record from being read as
//!   one: a payload that quotes a record, or a block that belonged to a deleted segment. It is part of the file name so that it
//!   survives a destroyed segment header.
//! * Sequence numbers increase strictly across segments. The number of a record that was ever durable is never reused. There may
//!   be gaps: a failed sync leaves one, and so does a torn record.
//! * `trimmed` contains the highest sequence number passed to [`Trimmer::trim`]. It is a hint that is written without a sync. It
//!   survives the death of the process, so finished records of a segment that could not be deleted yet are not read again. If a
//!   power cut loses it, they are read again, but no record is ever skipped wrongly.
//!
//! # Recovery after a crash
//! | found at open | response |
//! |---|---|
//! | bytes after the last record of the last segment (a torn write, a zero-filled tail) | truncated, durably; [`Recovery::torn_bytes`], and [`Recovery::torn_has_whole_record`] if a record there has its full length |
//! | damage before a readable record, or in an older segment | skipped, stays on disk; [`Recovery::damaged`] |
//! | a last segment without records and without a complete header (a crash during its creation) | header rewritten |
//! | a destroyed segment header before readable records | reported as damage; records are read |
//! | a segment of a newer format version | rejected: [`OpenError::Version`]; nothing is changed |
//!
//! # Failures of the disk
//! * A failed or partial **write**: the file is truncated to the last complete record. The records of that call are not appended,
//!   their sequence numbers are not consumed, and the log remains usable.
//! * A failed **sync**: the kernel may have dropped the unwritten pages and marked them clean, so a second sync would succeed
//!   without having written anything. Everything since the last successful sync is therefore given up: it is truncated from the
//!   file, never returned to a reader, and the log continues in a new segment. [`SyncError`] contains the number of these
//!   records; append them again.
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::expect_used,
        clippy::unwrap_used
    )
)]

mod cursor;
mod disk;
mod error;
mod file_system;
mod format;
mod log;
mod options;
mod reader;
mod recovery;
mod shared;
mod trimmed;

pub use cursor::Damage;
pub use error::{AppendError, OpenError, SyncError};
pub use file_system::{FileSystem, Mode, OpenFile, RealFileSystem};
pub use log::{Appended, AppendedAll, Log};
pub use options::{MAX_RECORD_BYTES, Options, WhenFull};
pub use reader::{Chunk, Reader, Record};
pub use recovery::Recovery;
pub use shared::{DropReport, Trimmer};

/// The sequence number of a record. Strictly increasing, from 1; that of a durable record is never reused.
pub type Seq = u64;
