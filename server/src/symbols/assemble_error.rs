//! Why chunks or files cannot be accepted now.

use unjank_database::ControlError;

use super::assembly_queue::Full;
use super::lookups::LookupError;
use super::store::StoreError;

/// Why chunks or files cannot be accepted now.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Lookup(#[from] LookupError),
    #[error("too many symbol files wait to be processed: retry later")]
    Busy,
    #[error("less than {0} MiB of the server's disk are free: make room, then retry")]
    DiskFull(u64),
    #[error(
        "{0} chunks ({1} MiB) of this token wait to be assembled: assemble them first, or wait a day until the server deletes them"
    )]
    TooManyChunks(u64, u64),
}

impl From<Full> for AssembleError {
    fn from(_: Full) -> Self {
        Self::Busy
    }
}
