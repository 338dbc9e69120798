//! Drains the ingest log of a lost server into the ClickHouse of the others. The writer is that of a server, but nothing else of a server runs.

use std::io;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use unjank_database::{ClaimStore, Claims, Control};
use unjank_foundation::clock::Clock;
use unjank_foundation::task::Tasks;

use super::clickhouse_target::{connect, external};
use super::writer::{self, Parts};
use super::{CLOSING, control_database, data_folder, dead_letters, in_time};
use crate::config::Shared;
use crate::metrics::Metrics;
use crate::store::{
    ClickHouse, DrainTotals, IngestLog, LogSettings, Target, lease_lost, take_over,
};

/// Reports progress: the drained records as a text, the drained bytes, and all bytes.
pub(crate) type OnDrained<'a> = &'a dyn Fn(&str, u64, u64);

/// The result of draining a log.
pub(crate) struct DrainedLog {
    pub(crate) totals: DrainTotals,
    /// Records that are still to drain.
    pub(crate) left: u64,
    /// Damaged parts of the log, whose records are lost.
    pub(crate) damaged: u64,
    /// Items in the dead-letter folder, also those from before.
    pub(crate) dead_letters: usize,
}

const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Drains the log in the data folder of `shared` until nothing is left to store or to roll up, or until `stop`.
pub(crate) async fn drain_log(
    shared: &Shared,
    stop: &CancellationToken,
    report: OnDrained<'_>,
) -> anyhow::Result<DrainedLog> {
    let target = target(shared)?;
    check_folder(&shared.data_dir)?;
    let metrics = Metrics::new();
    let settings = LogSettings {
        dir: shared.data_dir.join("log"),
        // Nothing is appended, so these limits have no effect.
        max_bytes: u64::MAX,
        max_record_bytes: u32::MAX,
        min_free_bytes: 0,
    };
    let log = IngestLog::open(settings, metrics.log.clone())
        .map_err(|error| data_folder::in_use(error, &shared.data_dir))?;
    let draining = Draining {
        shared,
        target,
        log,
        metrics,
        tasks: Tasks::default(),
        stop,
        report,
    };
    let drained = draining.run().await;
    draining.tasks.end(CLOSING).await;
    in_time("the ingest log", draining.log.close()).await;
    let totals = drained?;
    let (items, unreadable) = dead_letters(shared, u64::MAX)?.list()?;
    Ok(DrainedLog {
        totals,
        left: draining.log.pending_records(),
        damaged: draining.metrics.log.damaged_ranges.get(),
        dead_letters: items.len() + unreadable.len(),
    })
}

/// Returns the ClickHouse that servers share. Fails if the settings name no databases that servers can share.
fn target(shared: &Shared) -> anyhow::Result<Target> {
    let url = shared.clickhouse_url.as_deref().context(
        "set --clickhouse-url to the ClickHouse that the servers share. A log of a server with the embedded engine belongs into the engine of the \
         same data folder: start `unjank serve` on the folder instead",
    )?;
    let control = shared.database_url.as_ref();
    anyhow::ensure!(
        control.is_some_and(|url| !url.reveal().starts_with("sqlite:")),
        "set --database-url to the PostgreSQL that the servers share: without its claims, another server could store the same batches. A server \
         with SQLite has its ClickHouse to itself: start `unjank serve` on its folder instead"
    );
    external(shared, url)
}

/// Fails unless the folder has a log, because opening the log would create one.
fn check_folder(folder: &Path) -> anyhow::Result<()> {
    let log = folder.join("log");
    if has_segments(&log)? {
        return Ok(());
    }
    anyhow::ensure!(
        !has_segments(folder)?,
        "{} is an ingest log itself: name the folder above it, in which the log has the name `log`",
        folder.display()
    );
    anyhow::bail!(
        "there is no ingest log in {}: name a data folder, or a folder with a copy of `log`",
        folder.display()
    )
}

fn has_segments(folder: &Path) -> anyhow::Result<bool> {
    let failed = || format!("cannot read {}", folder.display());
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        entries => entries.with_context(failed)?,
    };
    for entry in entries {
        let path = entry.with_context(failed)?.path();
        if path.extension().is_some_and(|kind| kind == "segment") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An open log and what is needed to drain it.
struct Draining<'a> {
    shared: &'a Shared,
    target: Target,
    log: IngestLog,
    metrics: Metrics,
    tasks: Tasks,
    stop: &'a CancellationToken,
    report: OnDrained<'a>,
}

impl Draining<'_> {
    async fn run(&self) -> anyhow::Result<DrainTotals> {
        let opening = control_database(self.shared, &self.tasks);
        let Some(control) = self.stop.run_until_cancelled(opening).await else {
            return Ok(DrainTotals::default());
        };
        let control = control?;
        let drained = self.take_over_and_drain(&control).await;
        in_time("the control database", control.close()).await;
        drained
    }

    async fn take_over_and_drain(&self, control: &Control) -> anyhow::Result<DrainTotals> {
        let log_id = self.log.identity();
        let claims = control
            .claims()
            .context("the control database is not in PostgreSQL")?;
        let taking = take_over(&claims, log_id);
        let Some(claims) = self.stop.run_until_cancelled(taking).await else {
            return Ok(DrainTotals::default());
        };
        let claims = claims?;
        let drained = self.drain(&claims).await;
        let handed_back = timeout(CLOSING, claims.hand_back(log_id)).await;
        if !matches!(handed_back, Ok(Ok(()))) {
            tracing::warn!(%log_id, "cannot end the lease on the log: it ends by itself within two minutes");
        }
        drained
    }

    /// Runs the writer until it has drained the log.
    async fn drain(&self, claims: &Claims) -> anyhow::Result<DrainTotals> {
        let clickhouse = ClickHouse::away(&self.shared.clickhouse_database);
        let time = self.shared.clone();
        let parts = Parts {
            log: self.log.clone(),
            clickhouse: clickhouse.clone(),
            // The size of the log limits the folder.
            dead_letters: dead_letters(self.shared, u64::MAX)?,
            claims: Some(claims.clone()),
            metrics: self.metrics.writer.clone(),
            clock: Clock::new(move || time.now()),
            flush_interval: Duration::ZERO,
        };
        let writer = writer::open_with(&self.shared.data_dir, parts)?;
        let connected = connect(
            clickhouse.clone(),
            self.target.clone(),
            self.log.clone(),
            self.tasks.shutdown(),
        );
        self.tasks.spawn_finite("clickhouse", connected);
        let give_up = self.stop.child_token();
        let mut draining = Box::pin(async {
            give_up.run_until_cancelled(clickhouse.pointed()).await;
            writer.drain(give_up.clone()).await
        });
        let mut lost = pin!(lease_lost(claims, self.log.identity()));
        let mut is_lost = false;
        let begun = self.log.drained_and_durable().0;
        let all_bytes = self.log.pending_bytes();
        let totals = loop {
            tokio::select! {
                biased;
                totals = &mut draining => break totals,
                () = &mut lost, if !is_lost => {
                    is_lost = true;
                    give_up.cancel();
                }
                () = sleep(PROGRESS_EVERY) => self.show_progress(begun, all_bytes),
            }
        };
        anyhow::ensure!(
            totals.is_complete || !is_lost,
            "lost the lease on the log in PostgreSQL, so the server of this log may store batches again. Nothing is lost: run the same command again"
        );
        Ok(totals)
    }

    fn show_progress(&self, begun: u64, all_bytes: u64) {
        let (drained, durable) = self.log.drained_and_durable();
        let records = format!(
            "{} of {} records",
            drained.saturating_sub(begun),
            durable.saturating_sub(begun)
        );
        let bytes = all_bytes.saturating_sub(self.log.pending_bytes());
        (self.report)(&records, bytes, all_bytes);
    }
}
