//! The columnar form of a batch, `application/vnd.unjank.batch.v2`: the same events as the JSON of [`unjank_protocol::Batch`], column by column.
//!
//! `docs/columnar-batch.md` describes every byte. Compression is outside: a body is this form in a zstd frame or several.
//!
//! * [`Writer`] collects events; [`write()`] writes a whole batch.
//! * [`read()`] reads a batch from bytes that anybody may have written.
//! * Both read and write what JSON does: `read(write(batch))` is the batch that its JSON is read as.
//!
//! One list per table in `signals` has the fields. A list makes the writer and the reader, so a signal has no code of its own.
#![warn(missing_docs)]

mod column;
mod dictionary;
mod envelope;
mod faults;
mod fields;
mod kinds;
mod pool;
mod reader;
mod rows;
mod sections;
mod signals;
mod state;
mod varint;
mod writer;

pub use faults::{Fault, Malformed, Unreadable};
pub use reader::{Read, mended, read};
pub use state::Bounds;
pub use writer::{Event, Writer, sent, write};

/// The media type of a request with a columnar batch.
pub const MEDIA_TYPE: &str = "application/vnd.unjank.batch.v2";
