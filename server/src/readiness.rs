//! Whether the server can accept batches. Asked at most once a second, however many want to know.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::store::{ClickHouse, IngestLog};

/// How long an answer is good for.
const FRESH: Duration = Duration::from_secs(1);

/// The ingest log and ClickHouse, each `ok` or what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub log: Result<(), &'static str>,
    pub clickhouse: Result<(), String>,
}

/// The latest answer. Callers that come while the log and ClickHouse are asked wait for that answer.
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
