//! Keeps the rows of each project as long as its settings say, and within its room on the disk.
//!
//! One server at a time does it. When a project takes more room than it may, its oldest events are dropped, day by day, but never those of the last
//! two days. If that is not enough, its batches are refused until there is room again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::control::Lease;
use crate::store::control::{ControlError, Storage};
use crate::store::{Failure, Keeping, Retention};

const LEASE: Duration = Duration::from_secs(120);
/// The pause when ClickHouse does not answer yet, or another server has the lease.
const SOON: Duration = Duration::from_secs(5);
/// A warning is logged after this many failures in a row.
const WORTH_A_LINE: u32 = 12;
const DAY: i64 = 86_400;
/// Days whose events are never dropped for room: today and yesterday.
const SAFE_DAYS: i64 = 1;

/// The task.
pub struct Sweeper {
    app: Arc<App>,
    /// The times of the installation: a project may have others.
    default: Retention,
    every: Duration,
    lease: Lease,
}

#[derive(Debug, thiserror::Error)]
enum NotYet {
    #[error("the control database: {0}")]
    Control(#[from] ControlError),
    #[error("ClickHouse: {0}")]
    Store(#[from] Failure),
}

impl Sweeper {
    pub fn new(app: Arc<App>, default: Retention, every: Duration) -> Self {
        let lease = Lease::new(
            Arc::clone(&app.control),
            app.clock.clone(),
            ("retention", LEASE),
        );
        Self {
            app,
            default,
            every,
            lease,
        }
    }

    /// Nothing is lost when it is dropped in the middle.
    pub async fn run(self, shutdown: CancellationToken) {
        self.lease.until(shutdown, self.go_on()).await;
    }

    async fn go_on(&self) {
        let mut failures = 0;
        loop {
            let mut swept = None;
            let round = async { swept = Some(self.sweep().await) };
            self.lease.during(round).await;
            match &swept {
                Some(Ok(())) => failures = 0,
                Some(Err(_)) => failures += 1,
                None => {}
            }
            // The first failures only say that ClickHouse is starting.
            if let Some(Err(error)) = &swept
                && failures == WORTH_A_LINE
            {
                tracing::warn!(%error, "old rows are not dropped: it is tried again");
            }
            let is_done = matches!(swept, Some(Ok(())));
            sleep(if is_done {
                self.every
            } else {
                self.every.min(SOON)
            })
            .await;
        }
    }

    async fn sweep(&self) -> Result<(), NotYet> {
        let app = &self.app;
        let projects = app.control.storage_of_all().await?;
        let keeping = keeping(self.default, &projects);
        let longest = keeping.longest();
        let changed = app.clickhouse.keep(longest).await?;
        if !changed.is_empty() {
            tracing::info!(
                tables = changed.join(" "),
                days = longest.raw_days,
                hourly_days = longest.hourly_days,
                daily_days = longest.daily_days,
                "rows of these tables are kept for so many days now (0: for ever)"
            );
        }
        // Rows that are being dropped are still counted.
        if app.clickhouse.drops_old_rows().await? {
            return Ok(());
        }
        let now = app.clock.now().div_euclid(1_000_000);
        let tables = app.clickhouse.drop_old_rows(&keeping, now).await?;
        if !tables.is_empty() {
            tracing::info!(
                ?tables,
                "rows of projects that keep them for a shorter time are dropped"
            );
        }
        for project in &projects {
            let is_over = match project.disk_bytes {
                Some(most) => self.make_room(project, most, now).await?,
                None => false,
            };
            let control = &app.control;
            if control
                .set_over_disk_quota(&project.project, is_over)
                .await?
            {
                let project = &project.project;
                tracing::warn!(
                    project,
                    is_over,
                    "whether the project takes more room on the disk than it may"
                );
            }
        }
        Ok(())
    }

    /// Drops a project's oldest events until its rows fit into the quota. Answers true if they do not fit even then.
    async fn make_room(&self, project: &Storage, most: u64, now: i64) -> Result<bool, NotYet> {
        let (clickhouse, name) = (&self.app.clickhouse, &*project.project);
        let tables = clickhouse.usage(name).await?;
        let used = tables.iter().map(|table| table.bytes).sum::<u64>();
        if used <= most {
            // Batches that were refused are taken again once a tenth of the quota is free.
            return Ok(project.is_over_quota && used > most / 10 * 9);
        }
        let days = clickhouse.usage_by_day(name).await?;
        let today = now - now.rem_euclid(DAY);
        let (before, left) = first_day_to_keep((used, most), &days, today - SAFE_DAYS * DAY);
        if let Some(before) = before {
            tracing::warn!(
                project = name,
                used,
                most,
                "the oldest events are dropped: the project takes more room on the disk than it may"
            );
            clickhouse.drop_events(name, before).await?;
        }
        Ok(left > most)
    }
}

/// The effective times of all projects.
fn keeping(default: Retention, projects: &[Storage]) -> Keeping {
    let days = |own: Option<u32>, default: u64| own.map_or(default, u64::from);
    let effective = projects.iter().map(|project| {
        let retention = Retention {
            raw_days: days(project.keep.raw_days, default.raw_days),
            hourly_days: days(project.keep.hourly_days, default.hourly_days),
            daily_days: days(project.keep.daily_days, default.daily_days),
        };
        (project.project.clone(), retention)
    });
    Keeping {
        default,
        projects: effective.collect(),
    }
}

/// The first day to keep, so that at most nine tenths of the quota are used, and the bytes that are used then.
fn first_day_to_keep(
    (used, most): (u64, u64),
    days: &BTreeMap<i64, u64>,
    safe: i64,
) -> (Option<i64>, u64) {
    let (mut left, mut before) = (used, None);
    for (day, bytes) in days.range(..safe) {
        if left <= most / 10 * 9 {
            break;
        }
        left = left.saturating_sub(*bytes);
        before = Some(day + DAY);
    }
    (before, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_days_go_but_never_the_last_two() {
        let days = BTreeMap::from([(0, 40), (DAY, 40), (2 * DAY, 10), (3 * DAY, 50)]);
        let keep = |most| first_day_to_keep((150, most), &days, 2 * DAY);
        assert_eq!(keep(200), (None, 150));
        assert_eq!(keep(140), (Some(DAY), 110));
        assert_eq!(keep(100), (Some(2 * DAY), 70));
        assert_eq!(keep(20), (Some(2 * DAY), 70));
    }
}
