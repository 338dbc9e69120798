//! Background tasks: named, counted, and joined at shutdown. If a task panics or ends too early, the whole server fails.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tasks of one part of a server, and the signal that ends them.
#[derive(Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    shutdown: CancellationToken,
    failure: Failure,
}

/// Why the server needs a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// The task must run until shutdown.
    Always,
    /// The task must finish its work and then ends.
    Once,
    /// The server works without the task.
    Optional,
}

impl Tasks {
    /// Creates tasks with their own shutdown that report to the same [`Failure`].
    #[must_use]
    pub fn sibling(&self) -> Self {
        Self {
            failure: self.failure.clone(),
            ..Self::default()
        }
    }

    /// Starts a task that must run until [`Tasks::shutdown`]. A panic or an earlier end is a failure.
    pub fn spawn(&self, name: &'static str, future: impl Future<Output = ()> + Send + 'static) {
        self.start(name, Need::Always, future);
    }

    /// Starts a task that ends after its work. A panic is a failure.
    pub fn spawn_finite(
        &self,
        name: &'static str,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        self.start(name, Need::Once, future);
    }

    /// Starts a task that the server can do without. A panic is only logged.
    pub fn spawn_optional(
        &self,
        name: &'static str,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        self.start(name, Need::Optional, future);
    }

    fn start(
        &self,
        name: &'static str,
        need: Need,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        let (shutdown, failure) = (self.shutdown.clone(), self.failure.clone());
        let guarded = async move {
            #[expect(
                clippy::disallowed_methods,
                reason = "the one place that spawns: it joins and names"
            )]
            let ended = tokio::spawn(future).await;
            match ended {
                Err(error) if need == Need::Optional => {
                    tracing::error!(task = name, %error, "a background task failed; the server goes on without it");
                }
                // The runtime is shutting down.
                Err(error) if error.is_cancelled() => {}
                Err(error) => failure.report(format!(
                    "the background task `{name}` failed: {}",
                    panic_message(error)
                )),
                Ok(()) if need == Need::Always && !shutdown.is_cancelled() => {
                    failure.report(format!("the background task `{name}` ended unexpectedly"));
                }
                Ok(()) => {}
            }
        };
        self.tracker.spawn(guarded);
    }

    /// Cancelled when the tasks must end.
    #[must_use]
    pub fn shutdown(&self) -> CancellationToken {
        self.shutdown.clone()
    }

    /// Returns the place where these tasks report failures.
    #[must_use]
    pub fn failure(&self) -> Failure {
        self.failure.clone()
    }

    /// Asks all tasks to end and waits for them, at most `patience`. Returns whether all have ended.
    pub async fn end(&self, patience: Duration) -> bool {
        self.shutdown.cancel();
        self.tracker.close();
        tokio::time::timeout(patience, self.tracker.wait())
            .await
            .is_ok()
    }
}

/// The first failure of a required task. After a failure the server must end, so that its supervisor restarts it.
#[derive(Clone, Default)]
pub struct Failure {
    what: Arc<OnceLock<String>>,
    reported: CancellationToken,
}

impl Failure {
    fn report(&self, what: String) {
        tracing::error!("{what}");
        // Later failures are consequences of the first one, or are only logged.
        let _first = self.what.set(what).is_ok();
        self.reported.cancel();
    }

    /// Returns what has failed, if anything.
    #[must_use]
    pub fn what(&self) -> Option<&str> {
        self.what.get().map(String::as_str)
    }

    /// Resolves at the first failure.
    pub async fn happened(&self) {
        self.reported.cancelled().await;
    }
}

fn panic_message(error: JoinError) -> String {
    let Ok(payload) = error.try_into_panic() else {
        return "it was cancelled".to_owned();
    };
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it panicked".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    async fn failure_of(tasks: &Tasks) -> String {
        let failure = tasks.failure();
        tokio::time::timeout(PATIENCE, failure.happened())
            .await
            .unwrap();
        failure.what().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_panic_is_a_failure_that_all_siblings_share() {
        let tasks = Tasks::default();
        let sibling = tasks.sibling();
        sibling.spawn("writer", async { panic!("a bug in {}", "it") });
        assert_eq!(
            failure_of(&tasks).await,
            "the background task `writer` failed: a bug in it"
        );
        assert!(
            !tasks.shutdown().is_cancelled(),
            "a failure does not end the tasks"
        );
        assert!(sibling.end(PATIENCE).await);
        assert!(
            !tasks.shutdown().is_cancelled(),
            "siblings have separate shutdowns"
        );
    }

    #[tokio::test]
    async fn an_early_end_is_a_failure_and_the_first_failure_is_kept() {
        let tasks = Tasks::default();
        tasks.spawn("writer", async {});
        assert_eq!(
            failure_of(&tasks).await,
            "the background task `writer` ended unexpectedly"
        );
        tasks.spawn_finite("clickhouse", async { panic!("later") });
        assert!(tasks.end(PATIENCE).await);
        assert!(failure_of(&tasks).await.contains("writer"));
    }

    #[tokio::test]
    async fn regular_ends_and_panics_of_optional_tasks_are_no_failures() {
        let tasks = Tasks::default();
        let shutdown = tasks.shutdown();
        tasks.spawn("until the end", async move { shutdown.cancelled().await });
        tasks.spawn_finite("once", async {});
        tasks.spawn_optional("extra", async { panic!("the task is optional") });
        tasks.spawn_optional("short", async {});
        assert!(tasks.end(PATIENCE).await);
        assert_eq!(tasks.failure().what(), None);
    }
}
