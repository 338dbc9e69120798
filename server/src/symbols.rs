//! Symbol files: uploads, storage, and readable stacks.
//!
//! Upload tools send a file in chunks, named by their SHA-1. [`Assemblies`] joins the chunks, has a separate process parse the file
//! ([`Parser`]), and stores it ([`SymbolStore`]) and the ids of its builds (the control database). [`Symbolicator`] turns frames into
//! functions and lines, with lookup files that it keeps on disk and maps into memory ([`Lookups`]).

mod alternatives;
mod assemble_error;
mod assemblies;
mod assembly_queue;
mod assembly_request;
mod file_removal;
mod joining;
mod lookups;
mod orphaned_contents;
mod parser;
mod sent_chunks;
mod store;
mod symbolicator;
mod unused_file_expiry;

pub use self::assemble_error::AssembleError;
pub use self::assemblies::{Assemblies, AssemblyState};
pub use self::assembly_request::AssemblyRequest;
pub use self::lookups::{LookupError, Lookups};
pub use self::parser::{Parser, ParserError, ParserLimits, ParserRequest, run as run_parser};
pub use self::store::{StoreError, SymbolStore};
pub use self::symbolicator::{ReadableStack, Symbolicator, named_function};
pub use self::unused_file_expiry::{SweepError, delete_unused_files};

/// The maximum size of a chunk before compression.
pub const CHUNK_BYTES: usize = 8 << 20;
/// The chunk size that the server announces to upload tools. A request with one such chunk passes a proxy that accepts 1 MiB, as nginx does
/// by default.
pub const PROPOSED_CHUNK_BYTES: usize = 512 << 10;
/// The maximum size of a symbol file. Debug files of browsers are this large.
pub const MAX_FILE_BYTES: u64 = 2 << 30;
