//! The progress of reclassification per project. The reclassifier updates it, and the API reports it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use unjank_foundation::clock::UnixTime;

use crate::metrics::ReclassificationMetrics;
use crate::store::StackCounts;

/// The state of a reclassification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ReclassificationState)]
pub enum State {
    /// Not started since the server started.
    Idle,
    /// Stacks are being classified, or will be soon.
    Running,
    /// Every stack found has its class.
    Done,
    /// Stopped with `error`. The server retries automatically.
    Failed,
}

/// The progress of one project, as known to this server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Reclassification)]
pub struct Progress {
    pub state: State,
    /// The revision of the rules. 0: the server's own rules.
    pub rules_version: u32,
    /// Distinct stacks.
    pub total: u64,
    /// Stacks that have their class.
    pub done: u64,
    /// The last error, until a retry succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Missing if it has not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<UnixTime>,
}

impl Progress {
    /// Returns the progress of a reclassification that has not started, in the given state.
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

/// The progress of the current or last repair with new symbol files, in stacks. A stack that needs several of the files may count twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairProgress {
    pub done: u64,
    pub total: u64,
}

/// The progress of every project.
#[derive(Debug)]
pub struct ProgressBoard {
    projects: Mutex<HashMap<Arc<str>, Progress>>,
    repairs: Mutex<HashMap<Arc<str>, RepairProgress>>,
    metrics: ReclassificationMetrics,
}

impl ProgressBoard {
    #[must_use]
    pub fn new(metrics: ReclassificationMetrics) -> Self {
        Self {
            projects: Mutex::default(),
            repairs: Mutex::default(),
            metrics,
        }
    }

    /// Returns the progress of the current or last repair of a project on this server.
    #[must_use]
    pub fn repair(&self, project: &str) -> RepairProgress {
        let repairs = self.repairs();
        repairs.get(project).copied().unwrap_or_default()
    }

    pub(super) fn begin_repair(&self, project: &Arc<str>, total: u64) {
        let progress = RepairProgress { done: 0, total };
        self.repairs().insert(Arc::clone(project), progress);
    }

    pub(super) fn advance_repair(&self, project: &str, stacks: u64) {
        if let Some(progress) = self.repairs().get_mut(project) {
            progress.done += stacks;
            // Stacks may have arrived since the count.
            progress.total = progress.total.max(progress.done);
        }
    }

    fn repairs(&self) -> MutexGuard<'_, HashMap<Arc<str>, RepairProgress>> {
        self.repairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the progress of a project under the revision in force. Progress under earlier revisions does not count.
    #[must_use]
    pub fn progress(&self, project: &str, revision: u32) -> Progress {
        match self.lock().get(project) {
            Some(known) if known.rules_version >= revision => known.clone(),
            Some(_) => Progress::before(revision, State::Running),
            None => Progress::before(revision, State::Idle),
        }
    }

    pub(super) fn begin(
        &self,
        project: &Arc<str>,
        revision: u32,
        counts: StackCounts,
        now: UnixTime,
    ) {
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
            // Includes stacks that have arrived since the count.
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
