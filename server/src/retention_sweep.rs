//! Enforces the retention and the disk quota of each project.
//!
//! One server at a time does this. If a project exceeds its disk quota, its oldest events are deleted day by day, except those of
//! the last two days. If that is not enough, its batches are rejected until there is room again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use unjank_database::{ControlError, Storage};

use crate::access::Lease;
use crate::app::App;
use crate::store::{Failure, Retention, RetentionPlan};
use crate::symbols::{SweepError, delete_unused_files};

const LEASE: Duration = Duration::from_secs(120);
/// Pause while ClickHouse is not reachable yet or another server holds the lease.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// Pause while ClickHouse deletes rows, and between later failures.
const WAITING_DELAY: Duration = Duration::from_secs(60);
/// Number of consecutive failures after which a warning is logged.
const FAILURES_BEFORE_WARNING: u32 = 12;
const DAY: i64 = 86_400;
/// Number of days before today whose events are never deleted to free space.
const SAFE_DAYS: i64 = 1;

/// The background task.
pub struct Sweeper {
    app: Arc<App>,
    /// The retention of the installation, which projects may override.
    default: Retention,
    /// How long symbol files without a use are kept; `None`: forever.
    unused_files: Option<Duration>,
    every: Duration,
    lease: Lease,
}

/// The outcome of a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Swept {
    Done,
    /// The step has to be repeated soon, because rows are still being deleted or a setting has just changed.
    Waiting,
}

#[derive(Debug, thiserror::Error)]
enum NotYet {
    #[error("control database: {0}")]
    Control(#[from] ControlError),
    #[error("ClickHouse: {0}")]
    Store(#[from] Failure),
    #[error("symbol files: {0}")]
    Symbols(#[from] SweepError),
}

impl Sweeper {
    pub fn new(
        app: Arc<App>,
        default: Retention,
        unused_files: Option<Duration>,
        every: Duration,
    ) -> Self {
        let lease = Lease::new(app.control.clone(), app.clock.clone(), ("retention", LEASE));
        Self {
            app,
            default,
            unused_files,
            every,
            lease,
        }
    }

    /// Dropping the future at any point loses nothing.
    pub async fn run(self, shutdown: CancellationToken) {
        self.lease.until(shutdown, self.run_sweeps()).await;
    }

    async fn run_sweeps(&self) {
        let mut failures = 0;
        loop {
            let mut swept = None;
            let round = async { swept = Some(self.sweep().await) };
            self.lease.during(round).await;
            match &swept {
                Some(Ok(_)) => failures = 0,
                Some(Err(_)) => failures += 1,
                None => {}
            }
            // The first failures usually mean that ClickHouse is still starting.
            if let Some(Err(error)) = &swept
                && failures == FAILURES_BEFORE_WARNING
            {
                tracing::warn!(%error, "a step of the retention sweep fails; retrying");
            }
            let delay = match swept {
                Some(Ok(Swept::Done)) => self.every,
                Some(Ok(Swept::Waiting)) => WAITING_DELAY,
                Some(Err(_)) if failures >= FAILURES_BEFORE_WARNING => WAITING_DELAY,
                Some(Err(_)) | None => RETRY_DELAY,
            };
            sleep(delay.min(self.every)).await;
        }
    }

    /// Runs every step, also if another one fails. Rows above a quota are deleted before expired rows, because a deletion of expired rows
    /// can take hours, and the quotas of its projects wait for it.
    async fn sweep(&self) -> Result<Swept, NotYet> {
        together([
            self.set_retention().await,
            self.enforce_quotas().await,
            self.delete_expired_rows().await,
            self.delete_unused_files().await,
        ])
    }

    async fn set_retention(&self) -> Result<Swept, NotYet> {
        let app = &self.app;
        let projects = app.control.storage_of_all().await?;
        let longest = keeping(self.default, &projects).longest();
        let changed = app.clickhouse.keep(longest, app.clock.now()).await?;
        if !changed.is_empty() {
            tracing::info!(
                tables = changed.join(" "),
                days = longest.raw_days,
                hourly_days = longest.hourly_days,
                daily_days = longest.daily_days,
                "changed the retention of tables (0 days: forever)"
            );
        }
        Ok(Swept::Done)
    }

    async fn enforce_quotas(&self) -> Result<Swept, NotYet> {
        let mut steps = Vec::new();
        for project in self.app.control.storage_of_all().await? {
            steps.push(self.enforce_quota(&project).await);
        }
        together(steps)
    }

    async fn enforce_quota(&self, project: &Storage) -> Result<Swept, NotYet> {
        let is_over = match project.disk_bytes {
            Some(most) => self.make_room(project, most).await?,
            None => Some(false),
        };
        let Some(is_over) = is_over else {
            return Ok(Swept::Waiting);
        };
        if self
            .app
            .control
            .set_over_disk_quota(project, is_over)
            .await?
        {
            let project = &project.project;
            tracing::warn!(
                project,
                is_over,
                "a project went over or back under its disk quota"
            );
        }
        Ok(Swept::Done)
    }

    async fn delete_expired_rows(&self) -> Result<Swept, NotYet> {
        let app = &self.app;
        if app.clickhouse.is_deleting_rows(None).await? {
            return Ok(Swept::Waiting);
        }
        let keeping = keeping(self.default, &app.control.storage_of_all().await?);
        let now = app.clock.now().as_secs();
        let tables = app.clickhouse.drop_old_rows(&keeping, now).await?;
        if !tables.is_empty() {
            tracing::info!(
                ?tables,
                "deleting expired rows of projects with a shorter retention"
            );
        }
        Ok(Swept::Done)
    }

    async fn delete_unused_files(&self) -> Result<Swept, NotYet> {
        let Some(keep) = self.unused_files else {
            return Ok(Swept::Done);
        };
        let app = &self.app;
        let lookups = app.symbols.lookups();
        let age = (keep, app.clock.now());
        let deleted = delete_unused_files(&lookups, &app.clickhouse, age).await?;
        if deleted > 0 {
            tracing::info!(
                files = deleted,
                "deleted symbol files that no stored stack needs"
            );
        }
        Ok(Swept::Done)
    }

    /// Deletes a project's oldest events until its rows fit into the quota. Returns whether they do not fit even then, or `None` while
    /// that is unknown.
    async fn make_room(&self, project: &Storage, most: u64) -> Result<Option<bool>, NotYet> {
        let (clickhouse, name) = (&self.app.clickhouse, &*project.project);
        let now = self.app.clock.now();
        // Rows that are still being deleted count as usage.
        if clickhouse.is_deleting_rows(Some(name)).await? {
            return Ok(None);
        }
        let tables = clickhouse.usage(name, now).await?;
        let used = tables.iter().map(|table| table.bytes).sum::<u64>();
        if used <= most {
            // Rejected projects are accepted again once a tenth of the quota is free.
            return Ok(Some(project.is_over_quota && used > most / 10 * 9));
        }
        let days = clickhouse.usage_by_day(name, now).await?;
        let today = now.as_secs() - now.as_secs().rem_euclid(DAY);
        let (before, left) = first_day_to_keep(used, most, &days, today - SAFE_DAYS * DAY);
        // What another server deletes is counted in `used`, but perhaps no longer in `days`.
        let is_outdated = self.app.control.storage(name).await? != *project;
        if is_outdated || clickhouse.is_deleting_rows(Some(name)).await? {
            return Ok(None);
        }
        if let Some(before) = before {
            tracing::warn!(
                project = name,
                used,
                most,
                "deleting the oldest events of a project that exceeds its disk quota"
            );
            clickhouse.drop_events(name, before).await?;
        }
        Ok(Some(left > most))
    }
}

/// Returns the first error of steps that do not depend on each other, and logs the others.
fn together(steps: impl IntoIterator<Item = Result<Swept, NotYet>>) -> Result<Swept, NotYet> {
    let mut all = Ok(Swept::Done);
    for step in steps {
        all = match (all, step) {
            (Ok(all), Ok(step)) => Ok(all.max(step)),
            (Ok(_), Err(error)) => Err(error),
            (Err(first), step) => {
                if let Err(error) = step {
                    tracing::debug!(%error, "another step of the retention sweep fails");
                }
                Err(first)
            }
        };
    }
    all
}

/// Returns the effective retention of all projects.
fn keeping(default: Retention, projects: &[Storage]) -> RetentionPlan {
    let days = |own: Option<u32>, default: u64| own.map_or(default, u64::from);
    let effective = projects.iter().map(|project| {
        let retention = Retention {
            raw_days: days(project.keep.raw_days, default.raw_days),
            hourly_days: days(project.keep.hourly_days, default.hourly_days),
            daily_days: days(project.keep.daily_days, default.daily_days),
        };
        (project.project.clone(), retention)
    });
    RetentionPlan {
        default,
        projects: effective.collect(),
    }
}

/// Returns the first day to keep, so that at most nine tenths of the quota are used, and the bytes in use afterwards.
fn first_day_to_keep(
    used: u64,
    most: u64,
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
    fn the_oldest_days_are_deleted_but_never_the_last_two() {
        let days = BTreeMap::from([(0, 40), (DAY, 40), (2 * DAY, 10), (3 * DAY, 50)]);
        let keep = |most| first_day_to_keep(150, most, &days, 2 * DAY);
        assert_eq!(keep(200), (None, 150));
        assert_eq!(keep(140), (Some(DAY), 110));
        assert_eq!(keep(100), (Some(2 * DAY), 70));
        assert_eq!(keep(20), (Some(2 * DAY), 70));
    }
}
