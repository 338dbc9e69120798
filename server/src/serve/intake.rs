//! Puts the intake together: its memories, and the shares of its callers.

use std::sync::Arc;

use unjank_foundation::clock::Clock;
use unjank_foundation::shares::Shares;
use unjank_protocol::Limits;
use unjank_stacks::RuleSet;

use crate::access::{Access, RefusedKeys};
use crate::config::Serve;
use crate::forward::ForwardQueue;
use crate::intake::{Intake, LargeBatches, OutcomeCounts};
use crate::metrics::Metrics;
use crate::recent::{RecentBatches, RecentNames, RecentStacks};
use crate::store::IngestLog;

/// Batches to remember, so that a retry is answered without a query to ClickHouse: at least half of this number.
pub(super) const RECENT_BATCHES: usize = 900_000;
/// Stacks to remember, so that they are not written again.
const RECENT_STACKS: usize = 200_000;

/// The parts of the server that the intake uses.
pub(super) struct Parts<'a> {
    pub(super) access: Arc<Access>,
    pub(super) default_rules: Arc<RuleSet>,
    pub(super) log: IngestLog,
    pub(super) metrics: &'a Metrics,
    pub(super) clock: Clock,
    pub(super) connections: usize,
}

/// Opens the intake and recalls the batches that wait in the log.
pub(super) fn open(settings: &Serve, parts: Parts<'_>) -> anyhow::Result<Intake> {
    let recent_batches = Arc::new(RecentBatches::new(RECENT_BATCHES));
    let recall = |project: &str, batch_id| recent_batches.recall(project, batch_id);
    let records = parts.log.recall(recall)?;
    tracing::debug!(records, "recalled the batches of the ingest log");
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let connections = parts.connections;
    let uploads = connections - connections.div_ceil(8);
    let body_kib = size(settings.max_body_memory_bytes / 1024);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Intake {
        limits: Limits {
            compressed_bytes: size(settings.max_compressed_bytes),
            decompressed_bytes: size(settings.max_decompressed_bytes),
            events: size(settings.max_batch_events),
            ..Limits::default()
        },
        clock: parts.clock,
        access: parts.access,
        default_rules: parts.default_rules,
        recent_batches,
        recent_stacks: RecentStacks::new(RECENT_STACKS),
        arrived_stacks: Arc::default(),
        recent_names: RecentNames::new(size(settings.max_names_per_hour)),
        outcome_counts: OutcomeCounts::default(),
        refused_keys: RefusedKeys::default(),
        log: parts.log,
        forward: Arc::new(ForwardQueue::new(parts.metrics.forward.clone())),
        metrics: parts.metrics.ingest.clone(),
        // Seven eighths of the connections. One project may use half of these.
        uploads: Shares::new(uploads, uploads.div_ceil(2)),
        uploads_of_keys: Shares::new(connections, connections * 3 / 8),
        bodies: Shares::new(body_kib, body_kib.div_ceil(2)),
        large_batches: LargeBatches::new(cores.div_ceil(2))?,
    })
}
