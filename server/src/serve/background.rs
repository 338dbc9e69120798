//! Background tasks that run from the start of a server to its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{interval, sleep};
use tokio_util::sync::CancellationToken;
use unjank_foundation::clock::Clock;

use super::intake::RECENT_BATCHES;
use crate::access::Lease;
use crate::alerts::{Evaluator, Judge};
use crate::app::App;
use crate::auditor::Auditor;
use crate::config::{Serve, Switch};
use crate::history::{Reclassifier, Waits};
use crate::intake::OutcomeCounts;
use crate::retention_sweep::Sweeper;
use crate::store::{IngestLog, LogError};
use crate::symbols::Symbolicator;

const COUNTS_INTERVAL: Duration = Duration::from_secs(10);

/// Returns the evaluator of alert rules. Of the servers that share a control database, one evaluates them.
pub(super) fn evaluator(app: &App, settings: &Serve) -> Evaluator {
    Evaluator {
        judge: Judge::new(app.clickhouse.clone()),
        control: app.control.clone(),
        metrics: app.metrics.alerts.clone(),
        clock: app.clock.clone(),
        every: settings.alerts_interval(),
        lease: Lease::new(
            app.control.clone(),
            app.clock.clone(),
            ("alerts", settings.alerts_lease()),
        ),
    }
}

/// Remembers batches that were stored before this start, as soon as ClickHouse can list them.
pub(super) async fn recall_batches(app: Arc<App>, shutdown: CancellationToken) {
    let recalled = async {
        loop {
            let recall =
                |project: &str, batch_id| app.intake.recent_batches.recall(project, batch_id);
            match app
                .clickhouse
                .recall_batches(RECENT_BATCHES / 2, app.clock.now(), recall)
                .await
            {
                Ok(batches) => return tracing::debug!(batches, "batches recalled from ClickHouse"),
                Err(failure) => {
                    tracing::debug!(%failure, "cannot recall batches yet");
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

/// Periodically writes counts of rejected and duplicate events to the log.
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
    flush(&app.intake.outcome_counts, &app.log, &app.clock).await;
}

/// Writes the counts to the log. Counts that the log rejects are kept for the next time.
async fn flush(outcome_counts: &OutcomeCounts, log: &IngestLog, clock: &Clock) {
    let mut taken = outcome_counts.take().into_iter();
    for counts in &mut taken {
        match log.append(counts.record(clock.now())).await {
            Ok(()) => {}
            // The log may have the counts, and counting them twice would be worse than losing them.
            Err(error @ LogError::Unknown) => {
                tracing::warn!(%error, "counts of rejected batches may be lost");
            }
            Err(error) => {
                tracing::warn!(%error, "cannot write counts of rejected batches yet; they are kept in memory");
                outcome_counts.put_back(counts);
                break;
            }
        }
    }
    taken.for_each(|counts| outcome_counts.put_back(counts));
}

/// Resolves when the thread of the ingest log ends.
pub(super) async fn watch_log(log: IngestLog, shutdown: CancellationToken) {
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = log.ended() => {}
    }
}

pub(super) fn reclassifier(app: &App, settings: &Serve) -> Reclassifier {
    let then = settings.late_stacks_interval();
    Reclassifier {
        access: Arc::clone(&app.access),
        clickhouse: app.clickhouse.clone(),
        board: Arc::clone(&app.reclassification),
        clock: app.clock.clone(),
        control: app.control.clone(),
        symbolicator: Symbolicator {
            lookups: app.symbols.lookups(),
        },
        metrics: app.metrics.symbols.clone(),
        arrived: Arc::clone(&app.intake.arrived_stacks),
        waits: Waits {
            first: then.min(Duration::from_secs(120)),
            then,
        },
    }
}

pub(super) fn auditor(app: &App, settings: &Serve) -> Auditor {
    Auditor {
        clickhouse: app.clickhouse.clone(),
        board: Arc::clone(&app.audit),
        metrics: app.metrics.books.clone(),
        clock: app.clock.clone(),
        every: settings.books_interval(),
        rebuilds: settings.books_rebuild == Switch::On,
    }
}

pub(super) fn sweeper(app: &Arc<App>, settings: &Serve) -> Sweeper {
    let keep = &settings.keep;
    let unused_files = settings.symbols.keep_unused();
    Sweeper::new(
        Arc::clone(app),
        keep.retention(),
        unused_files,
        keep.interval(),
    )
}

#[cfg(test)]
mod tests {
    use unjank_foundation::clock::UnixTime;

    use super::*;
    use crate::metrics::Metrics;
    use crate::records::{Count, Outcome};
    use crate::store::LogSettings;

    fn log(folder: &tempfile::TempDir, min_free_bytes: u64) -> IngestLog {
        let settings = LogSettings {
            dir: folder.path().join("log"),
            max_bytes: 64 << 20,
            max_record_bytes: 1 << 20,
            min_free_bytes,
        };
        IngestLog::open(settings, Metrics::new().log).unwrap()
    }

    #[tokio::test]
    async fn counts_that_the_log_rejects_are_written_later_and_only_once() {
        let (counts, folder) = (OutcomeCounts::default(), tempfile::tempdir().unwrap());
        for project in ["one", "two", "three"] {
            let refused = Count {
                signal: "batch",
                outcome: Outcome::Rejected,
                reason: "invalid_json",
                events: 7,
            };
            counts.add(&Arc::from(project), refused);
        }
        let clock = Clock::new(|| UnixTime::from_micros(1));
        let no_room = log(&folder, u64::MAX);
        flush(&counts, &no_room, &clock).await;
        no_room.close().await;
        flush(&counts, &no_room, &clock).await;
        assert_eq!(no_room.pending_records(), 0);

        let log = log(&folder, 0);
        flush(&counts, &log, &clock).await;
        assert_eq!(log.pending_records(), 3, "one record for each project");
        assert!(counts.take().is_empty());
    }
}
