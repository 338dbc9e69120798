//! A crash-safe segment log: the offline queue of the SDK and the ingest log of the server.
//!
//! What lives here: bytes in, the same bytes out, in order, after any crash. What may not: knowledge of
//! what the bytes mean, a runtime, threads, clocks, retries, compression.
//!
//! One thread owns the [`Log`]: it appends many records and calls [`Log::sync`] once. Other threads read
//! with a [`Reader`], which sees synced records only, and give space back with a [`Trimmer`].
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
//!         trimmer.trim(seq)?; // whatever was done with them is durable elsewhere
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Format, version 1
//! A folder holds `lock` (held while a [`Log`] lives), `trimmed` (see below) and segments. A segment is
//! named `<first sequence number, 16 hex digits>-<tag, 8 hex digits>.segment`. Files with other names are
//! never touched. All integers are little-endian.
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
//! * The header of a record has a checksum of its own, so its length can be believed before the payload is
//!   read: a damaged payload is jumped over, and a hostile length allocates nothing.
//! * The tag is a random number drawn when the log is opened. It keeps bytes that merely look like a record
//!   from being taken for one: a payload that quotes a record, a block that belonged to a deleted segment. It
//!   is part of the file name so that it survives a destroyed segment header.
//! * Sequence numbers increase strictly through all segments. The number of a record that was ever durable is
//!   not used again. There may be gaps: a failed sync leaves one, and so does a torn record.
//! * `trimmed` holds the highest sequence number given to [`Trimmer::trim`]. It is written without a sync,
//!   as a hint: it survives the death of the process, so done records of a segment that could not be deleted
//!   yet are not read again. When it is lost in a power cut they are read again, never skipped wrongly.
//!
//! # What a crash leaves
//! | found at open | answer |
//! |---|---|
//! | bytes after the last record of the last segment (a torn write, a zero-filled tail) | cut, durably; [`Recovery::torn_bytes`] |
//! | damage before a readable record, or in an older segment | skipped, stays on disk; [`Recovery::damaged`] |
//! | a last segment without records and without a whole header (crash while creating it) | header written again |
//! | a destroyed segment header before readable records | reported as damage; records are read |
//! | a segment of a newer format version | refused: [`OpenError::Version`], nothing is changed |
//!
//! # What a failing disk does
//! * A failed or partial **write**: the file is cut back to the last whole record, the records of that call
//!   are not appended and their sequence numbers not consumed, the log stays usable.
//! * A failed **sync**: the kernel may have dropped the unwritten pages and marked them clean, so a second
//!   sync would succeed without having written anything. Everything since the last good sync is given up: it
//!   is cut from the file, never shown to a reader, and the log continues in a new segment. [`SyncError`]
//!   says how many records that were; append them again.
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

/// The number of a record: strictly increasing, starting at 1; that of a durable record is never used again.
pub type Seq = u64;
