//! The writer, which drains the ingest log into ClickHouse.

use tokio_util::sync::CancellationToken;

use super::dead_letters;
use crate::app::App;
use crate::config::{Serve, Shared};
use crate::store::{ClickHouse, Writer, WriterSettings};

/// Maximum size of a range of the log, which becomes one INSERT per table. Large blocks are cheap, and the limit keeps them in memory.
const RANGE_BYTES: usize = 48 << 20;
const EAGER_BYTES: u64 = 32 << 20;

pub(super) fn open(shared: &Shared, settings: &Serve, app: &App) -> anyhow::Result<Writer> {
    let dead_letters = dead_letters(shared, settings)?;
    let writer_settings = WriterSettings {
        flush_interval: settings.flush_interval(),
        range_bytes: RANGE_BYTES,
        eager_bytes: EAGER_BYTES,
        state: shared.data_dir.join("drain.json"),
        clock: app.clock.clone(),
    };
    let metrics = app.metrics.writer.clone();
    let writer = Writer::open(
        app.log.clone(),
        app.clickhouse.clone(),
        dead_letters,
        writer_settings,
        metrics,
    )?;
    Ok(writer.sharing(app.control.claims()))
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
