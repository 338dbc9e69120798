//! The writer, which drains the ingest log into ClickHouse.

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use unjank_database::Claims;
use unjank_foundation::clock::Clock;

use super::dead_letters;
use crate::app::App;
use crate::config::{Serve, Shared};
use crate::metrics::WriterMetrics;
use crate::store::{ClickHouse, DeadLetters, IngestLog, Writer, WriterSettings};

/// Maximum size of a range of the log, which becomes one INSERT per table. Large blocks are cheap, and the limit keeps them in memory.
const RANGE_BYTES: usize = 48 << 20;
const EAGER_BYTES: u64 = 32 << 20;

/// What a writer needs, in a server and in `unjank log drain`.
pub(super) struct Parts {
    pub(super) log: IngestLog,
    pub(super) clickhouse: ClickHouse,
    pub(super) dead_letters: DeadLetters,
    /// `None` if no other server can store the same batches.
    pub(super) claims: Option<Claims>,
    pub(super) metrics: WriterMetrics,
    pub(super) clock: Clock,
    pub(super) flush_interval: Duration,
}

pub(super) fn open(shared: &Shared, settings: &Serve, app: &App) -> anyhow::Result<Writer> {
    let parts = Parts {
        log: app.log.clone(),
        clickhouse: app.clickhouse.clone(),
        dead_letters: dead_letters(shared, settings.dead_letter_max_bytes)?,
        claims: app.control.claims(),
        metrics: app.metrics.writer.clone(),
        clock: app.clock.clone(),
        flush_interval: settings.flush_interval(),
    };
    open_with(&shared.data_dir, parts)
}

pub(super) fn open_with(data_dir: &Path, parts: Parts) -> anyhow::Result<Writer> {
    let settings = WriterSettings {
        flush_interval: parts.flush_interval,
        range_bytes: RANGE_BYTES,
        eager_bytes: EAGER_BYTES,
        state: data_dir.join("drain.json"),
        clock: parts.clock,
    };
    let writer = Writer::open(
        parts.log,
        parts.clickhouse,
        parts.dead_letters,
        settings,
        parts.metrics,
    )?;
    Ok(writer.sharing(parts.claims))
}

/// Drains the log until its end, as soon as ClickHouse runs: an engine that takes its time to start is no failure.
pub(super) async fn run(
    writer: Writer,
    clickhouse: ClickHouse,
    shutdown: CancellationToken,
    give_up: CancellationToken,
) {
    shutdown.run_until_cancelled(clickhouse.pointed()).await;
    writer.run(shutdown, give_up).await;
}
