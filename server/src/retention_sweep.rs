//! Enforces the retention and the disk quota of each project.
//!
//! One server at a time does this. If a project exceeds its disk quota, its oldest events are deleted day by day, except those of
//! the last two days. If that is not enough, its batches are rejected until there is room again.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
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
/// Number of consecutive failures of a step after which a warning is logged. The first ones usually mean that ClickHouse is still starting.
const FAILURES_BEFORE_WARNING: u32 = 12;
/// The time limit of a step. Longer steps have lost their connection.
const LONGEST_STEP: Duration = Duration::from_secs(600);
const DAY: i64 = 86_400;
/// Number of days before today whose events are never deleted to free space.
const SAFE_DAYS: i64 = 1;

/// The background task.
pub struct Sweeper {
    app: Arc<App>,
    /// The retention of the installation, which projects may override.
    default: Retention,
    /// How long unused symbol files are kept. `None` means forever.
    unused_files: Option<Duration>,
    every: Duration,
    lease: Lease,
}

#[derive(Clone, Copy)]
enum Swept {
    Done,
    /// The step has to be repeated soon, because rows are still being deleted or a setting has just changed.
    Waiting,
}

/// A step that has run. The quota of each project is a step.
struct Step {
    name: String,
    outcome: Result<Swept, NotYet>,
}

#[derive(Debug, thiserror::Error)]
enum NotYet {
    #[error("control database: {0}")]
    Control(#[from] ControlError),
    #[error("ClickHouse: {0}")]
    Store(#[from] Failure),
    #[error("symbol files: {0}")]
    Symbols(#[from] SweepError),
    #[error("no answer within {} s", LONGEST_STEP.as_secs())]
    TooLong,
}

impl Step {
    async fn run(name: &str, work: impl Future<Output = Result<Swept, NotYet>>) -> Self {
        let outcome = timeout(LONGEST_STEP, work).await;
        Self {
            name: name.to_owned(),
            outcome: outcome.unwrap_or(Err(NotYet::TooLong)),
        }
    }
}

/// The steps that failed in the last sweep, and how often in succession.
#[derive(Default)]
struct FailingSteps(BTreeMap<String, u32>);

impl FailingSteps {
    /// Counts the failures of a sweep. Returns the names of the steps to warn about, and their errors.
    fn count<'s>(&mut self, sweep: &'s [Step]) -> Vec<(&'s str, &'s NotYet)> {
        let before = mem::take(&mut self.0);
        for step in sweep.iter().filter(|step| step.outcome.is_err()) {
            let failures = before.get(&step.name).copied().unwrap_or_default();
            self.0.insert(step.name.clone(), failures.saturating_add(1));
        }
        let is_due = |step: &&Step| self.failures(step) == FAILURES_BEFORE_WARNING;
        let due = sweep.iter().filter(is_due);
        due.filter_map(|step| Some((step.name.as_str(), step.outcome.as_ref().err()?)))
            .collect()
    }

    fn failures(&self, step: &Step) -> u32 {
        self.0.get(&step.name).copied().unwrap_or_default()
    }

    /// Returns the pause after a sweep, at most `every`.
    fn pause(&self, sweep: &[Step], every: Duration) -> Duration {
        let pauses = sweep.iter().map(|step| match step.outcome {
            Ok(Swept::Done) => every,
            Ok(Swept::Waiting) => WAITING_DELAY,
            Err(_) if self.failures(step) >= FAILURES_BEFORE_WARNING => WAITING_DELAY,
            Err(_) => RETRY_DELAY,
        });
        pauses.fold(every, Duration::min)
    }
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
        let mut failing = FailingSteps::default();
        loop {
            let mut swept = None;
            let round = async { swept = Some(self.sweep().await) };
            self.lease.during(Box::pin(round)).await;
            let Some(sweep) = swept else {
                sleep(RETRY_DELAY.min(self.every)).await;
                continue;
            };
            for (step, error) in failing.count(&sweep) {
                tracing::warn!(step, %error, "a step of the retention sweep fails; retrying");
            }
            sleep(failing.pause(&sweep, self.every)).await;
        }
    }

    /// Runs every step, also if another one fails. Rows above a quota are deleted before expired rows, because a deletion of expired rows
    /// can take hours, and the quotas of its projects wait for it.
    async fn sweep(&self) -> Vec<Step> {
        let mut steps = vec![Step::run("retention", self.set_retention()).await];
        self.enforce_quotas(&mut steps).await;
        steps.push(Step::run("expired rows", self.delete_expired_rows()).await);
        steps.push(Step::run("unused symbol files", self.delete_unused_files()).await);
        steps
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

    /// Stops while ClickHouse is away: each other project would wait for it as long as the first one.
    async fn enforce_quotas(&self, steps: &mut Vec<Step>) {
        let projects = match self.app.control.storage_of_all().await {
            Ok(projects) => projects,
            Err(error) => {
                let (name, outcome) = ("disk quotas".to_owned(), Err(error.into()));
                return steps.push(Step { name, outcome });
            }
        };
        for project in projects {
            let name = format!("disk quota of {}", project.project);
            let step = Step::run(&name, self.enforce_quota(&project)).await;
            let has_failed = step.outcome.is_err();
            steps.push(step);
            if has_failed && self.app.clickhouse.ping().await.is_err() {
                return;
            }
        }
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

    fn sweep(failed: &[&str]) -> Vec<Step> {
        let steps = ["retention", "disk quota of shop"].map(|name| Step {
            name: name.to_owned(),
            outcome: match failed.contains(&name) {
                true => Err(NotYet::TooLong),
                false => Ok(Swept::Done),
            },
        });
        steps.into()
    }

    #[test]
    fn a_step_that_keeps_failing_does_not_hide_another() {
        let mut failing = FailingSteps::default();
        let every = Duration::from_secs(3_600);
        let mut warned = Vec::new();
        let both = ["retention", "disk quota of shop"];
        for round in 1..=30_u32 {
            // The second step begins to fail later, and succeeds once in between.
            let failed = if round <= 5 || round == 8 {
                &both[..1]
            } else {
                &both[..]
            };
            let sweep = sweep(failed);
            let due = failing.count(&sweep);
            warned.extend(due.iter().map(|(step, _)| (round, (*step).to_owned())));
            let pause = if round < 20 {
                RETRY_DELAY
            } else {
                WAITING_DELAY
            };
            assert_eq!(failing.pause(&sweep, every), pause, "{round}");
        }
        assert_eq!(warned, [(12, both[0].to_owned()), (20, both[1].to_owned())]);
        assert!(failing.count(&sweep(&[])).is_empty());
        assert_eq!(failing.pause(&sweep(&[]), every), every);
    }

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
