//! How much of everything: what a batch may hold, and how callers share what the server has.

use std::sync::Arc;

use unjank_protocol::Limits;

use super::open_files;
use crate::config::Serve;
use crate::ingest::Variety;
use crate::large_batches::LargeBatches;
use crate::shares::Shares;

pub(super) fn limits(settings: &Serve) -> Limits {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    Limits {
        compressed_bytes: size(settings.max_compressed_bytes),
        decompressed_bytes: size(settings.max_decompressed_bytes),
        events: size(settings.max_batch_events),
        ..Limits::default()
    }
}

/// The number of connections that the operator wants, or fewer if the system has too few descriptors.
pub(super) fn connections(settings: &Serve) -> usize {
    let connections = open_files::connections(settings.max_connections);
    usize::try_from(connections).unwrap_or(usize::MAX)
}

/// Seven eighths of the connections, whatever devices do with them; half of those for one project.
pub(super) fn uploads(connections: usize) -> Arc<Shares> {
    let uploads = connections - connections.div_ceil(8);
    Shares::new(uploads, uploads.div_ceil(2))
}

/// Three eighths of the connections for one key.
pub(super) fn uploads_of_keys(connections: usize) -> Arc<Shares> {
    Shares::new(connections, connections * 3 / 8)
}

/// In KiB; half of it for one project.
pub(super) fn device_bodies(settings: &Serve) -> Arc<Shares> {
    let kib = usize::try_from(settings.max_body_memory_bytes / 1024).unwrap_or(usize::MAX);
    Shares::new(kib, kib.div_ceil(2))
}

/// Half of the cores.
pub(super) fn large_batches() -> std::io::Result<LargeBatches> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    LargeBatches::new(cores.div_ceil(2))
}

/// Rows take less memory than their JSON. The exception is a batch of small events for tables with many columns.
pub(super) fn record_limit(settings: &Serve) -> u32 {
    u32::try_from(settings.max_decompressed_bytes.saturating_mul(2))
        .unwrap_or(u32::MAX)
        .max(16 << 20)
}

pub(super) fn variety(settings: &Serve) -> Variety {
    Variety::new(usize::try_from(settings.max_names_per_hour).unwrap_or(usize::MAX))
}
