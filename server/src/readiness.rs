//! Whether the server can accept batches. The checks run at most once a second, however many callers ask.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::store::{ClickHouse, IngestLog};

/// How long an answer is valid.
const FRESH: Duration = Duration::from_secs(1);

/// The state of the ingest log and ClickHouse: `Ok`, or the reason of the failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub log: Result<(), &'static str>,
    pub clickhouse: Result<(), String>,
}

/// The latest answer. Concurrent callers wait for one check.
#[derive(Debug, Default)]
pub struct Readiness(Mutex<Option<(Instant, Health)>>);

impl Readiness {
    pub async fn health(&self, log: &IngestLog, clickhouse: &ClickHouse) -> Health {
        let mut latest = self.0.lock().await;
        if let Some((at, health)) = &*latest
            && at.elapsed() < FRESH
        {
            return health.clone();
        }
        let (log, clickhouse) = tokio::join!(log.health(), clickhouse.ping());
        let clickhouse = clickhouse.map_err(|failure| failure.to_string());
        let health = Health { log, clickhouse };
        *latest = Some((Instant::now(), health.clone()));
        health
    }
}
