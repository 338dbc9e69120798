//! One running server: what its handlers share, and how it is put together and taken down.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use unjank_protocol::Limits;
use uuid::Uuid;

use crate::clock::Clock;
use crate::control::Access;
use crate::http::BodyBudget;
use crate::ingest::{KnownStacks, OutcomeCounts, Seen};
use crate::metrics::Metrics;
use crate::stacks::Rules;
use crate::store::{ClickHouse, IngestLog};

/// What handlers share.
pub struct App {
    pub clock: Clock,
    pub access: Access,
    pub limits: Limits,
    pub rules: Rules,
    pub known_stacks: KnownStacks,
    pub seen: Arc<Seen>,
    pub outcome_counts: OutcomeCounts,
    pub log: IngestLog,
    pub clickhouse: ClickHouse,
    pub metrics: Metrics,
    pub body_budget: BodyBudget,
    pub body_timeout: Duration,
    /// Permits to hold a decompressed batch: many small ones, or one large at a time.
    pub small_decoders: Arc<Semaphore>,
    pub large_decoders: Arc<Semaphore>,
}

/// A look-up that takes longer is not worth a device's wait: the writer finds the duplicate.
const LOOK_UP_PATIENCE: Duration = Duration::from_secs(1);

impl App {
    /// Whether ClickHouse holds the batch already. When it cannot be asked, the writer asks before it inserts.
    pub async fn stored_before(&self, project: &str, batch_id: Uuid) -> bool {
        let look_up = self
            .clickhouse
            .stored_batches(project, std::slice::from_ref(&batch_id));
        match tokio::time::timeout(LOOK_UP_PATIENCE, look_up).await {
            Ok(Ok(stored)) => stored.contains(&batch_id),
            Ok(Err(_)) | Err(_) => false,
        }
    }
}
