//! How far each project's stored stacks are classified by its rules: written by the reclassifier, read by people.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::metrics::ReclassificationMetrics;
use crate::store::StackCounts;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ReclassificationState)]
pub enum State {
    /// Nothing was looked at since the server started.
    Idle,
    /// Stacks are being classified, or are about to be.
    Running,
    /// Every stack that was there has its class.
    Done,
    /// It stopped at `error`, and is tried again by itself.
    Failed,
}

/// How far one project is, as this server knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Reclassification)]
pub struct Progress {
    pub state: State,
    /// The revision of the rules; 0: the server's own.
    pub rules_version: u32,
    /// Distinct stacks.
    pub total: u64,
    /// Those that have their class.
    pub done: u64,
    /// What stopped it last, while it is not overcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Microseconds since the epoch; missing when it has not begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<i64>,
}

impl Progress {
    /// Not begun yet, in a state that says whether it will be.
    #[must_use]
    pub fn before(rules_version: u32, state: State) -> Self {
        Self {
            state,
            rules_version,
            total: 0,
            done: 0,
            error: None,
            started_at: None,
        }
    }

    fn left(&self) -> u64 {
        self.total.saturating_sub(self.done)
    }
}

/// The progress of every project.
#[derive(Debug)]
pub struct ProgressBoard {
    projects: Mutex<HashMap<Arc<str>, Progress>>,
    metrics: ReclassificationMetrics,
}

impl ProgressBoard {
    #[must_use]
    pub fn new(metrics: ReclassificationMetrics) -> Self {
        Self {
            projects: Mutex::default(),
            metrics,
        }
    }

    /// Of one project, under the revision that holds: what is known of an earlier one says nothing about it.
    #[must_use]
    pub fn of(&self, project: &str, revision: u32) -> Progress {
        match self.lock().get(project) {
            Some(known) if known.rules_version >= revision => known.clone(),
            Some(_) => Progress::before(revision, State::Running),
            None => Progress::before(revision, State::Idle),
        }
    }

    pub(super) fn begin(&self, project: &Arc<str>, revision: u32, counts: StackCounts, now: i64) {
        let progress = Progress {
            state: State::Running,
            rules_version: revision,
            total: counts.total,
            done: counts.total.saturating_sub(counts.unclassified),
            error: None,
            started_at: Some(now),
        };
        self.lock().insert(Arc::clone(project), progress);
        self.measure();
    }

    pub(super) fn advance(&self, project: &str, stacks: u64) {
        self.metrics.stacks.inc_by(stacks);
        self.change(project, |progress| {
            // Stacks that arrived meanwhile count too.
            progress.done += stacks;
            progress.total = progress.total.max(progress.done);
            progress.state = State::Running;
            progress.error = None;
        });
    }

    pub(super) fn finish(&self, project: &str) {
        self.change(project, |progress| {
            progress.state = State::Done;
            progress.done = progress.total;
            progress.error = None;
        });
    }

    pub(super) fn fail(&self, project: &Arc<str>, revision: u32, error: String) {
        self.metrics.failures.inc();
        let mut projects = self.lock();
        let progress = projects
            .entry(Arc::clone(project))
            .or_insert_with(|| Progress::before(revision, State::Failed));
        if progress.rules_version != revision {
            *progress = Progress::before(revision, State::Failed);
        }
        progress.state = State::Failed;
        progress.error = Some(error);
    }

    fn change(&self, project: &str, change: impl FnOnce(&mut Progress)) {
        if let Some(progress) = self.lock().get_mut(project) {
            change(progress);
        }
        self.measure();
    }

    fn measure(&self) {
        let left = self.lock().values().map(Progress::left).sum::<u64>();
        self.metrics
            .pending
            .set(i64::try_from(left).unwrap_or(i64::MAX));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Progress>> {
        self.projects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
