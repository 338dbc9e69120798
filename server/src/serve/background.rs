//! What runs beside the requests, from the start of a server to its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{interval, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::SEEN_BATCHES;
use crate::alerts::{Evaluator, Judge};
use crate::app::App;
use crate::config::Serve;
use crate::history::{Reclassifier, Waits};
use crate::store::{ClickHouse, Retention};

const COUNTS_INTERVAL: Duration = Duration::from_secs(10);

/// Alert rules are evaluated by one server of all that share a control database.
pub(super) fn evaluator(app: &App, settings: &Serve) -> Evaluator {
    Evaluator {
        judge: Judge::new(app.clickhouse.clone()),
        control: Arc::clone(&app.control),
        metrics: app.metrics.alerts.clone(),
        clock: app.clock.clone(),
        holder: Uuid::new_v4().to_string(),
        every: settings.alerts_interval(),
        lease: settings.alerts_lease(),
    }
}

/// Rows are kept as long as the settings say, from when ClickHouse answers on.
pub(super) async fn keep_rows(
    clickhouse: ClickHouse,
    retention: Retention,
    shutdown: CancellationToken,
) {
    loop {
        match clickhouse.keep(retention).await {
            Ok(changed) if changed.is_empty() => return,
            Ok(changed) => {
                return tracing::info!(?retention, ?changed, "rows are kept for another time now");
            }
            Err(failure) => tracing::debug!(%failure, "how long rows are kept cannot be set yet"),
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = sleep(Duration::from_secs(5)) => {}
        }
    }
}

/// What was stored before this start is remembered again, as soon as ClickHouse can say it.
pub(super) async fn recall_batches(app: Arc<App>, shutdown: CancellationToken) {
    let recalled = async {
        loop {
            let recall = |project: &str, batch_id| app.seen.recall(project, batch_id);
            match app
                .clickhouse
                .recall_batches(SEEN_BATCHES / 2, recall)
                .await
            {
                Ok(batches) => return tracing::debug!(batches, "batches recalled from ClickHouse"),
                Err(failure) => {
                    tracing::debug!(%failure, "batches cannot be recalled yet");
                    sleep(Duration::from_secs(1)).await;
                }
            }
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = recalled => {}
    }
}

/// Counts of what never became a row go to the log every few seconds.
pub(super) async fn write_counts(app: Arc<App>, shutdown: CancellationToken) {
    let mut every = interval(COUNTS_INTERVAL);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = every.tick() => flush_counts(&app).await,
        }
    }
}

pub(super) async fn flush_counts(app: &App) {
    for record in app.outcome_counts.take(app.clock.now()) {
        if let Err(error) = app.log.append(record).await {
            tracing::warn!(%error, "counts of refused batches are lost");
        }
    }
}

pub(super) fn reclassifier(app: &App, settings: &Serve) -> Reclassifier {
    let then = settings.late_stacks_interval();
    Reclassifier {
        access: Arc::clone(&app.access),
        clickhouse: app.clickhouse.clone(),
        board: Arc::clone(&app.reclassification),
        clock: app.clock.clone(),
        waits: Waits {
            first: then.min(Duration::from_secs(120)),
            then,
        },
    }
}
