//! Background work: named, counted, joined at shutdown. A task that panics is logged and ends alone.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tasks of one server, and the signal that ends them.
#[derive(Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    shutdown: CancellationToken,
}

impl Tasks {
    /// Starts a task. It should watch [`Tasks::shutdown`].
    pub fn spawn(&self, name: &'static str, future: impl Future<Output = ()> + Send + 'static) {
        let guarded = async move {
            #[expect(
                clippy::disallowed_methods,
                reason = "the one place that spawns: it joins and names"
            )]
            if let Err(error) = tokio::spawn(future).await {
                tracing::error!(task = name, %error, "a background task failed");
            }
        };
        self.tracker.spawn(guarded);
    }

    /// Resolves when the server is to end.
    #[must_use]
    pub fn shutdown(&self) -> CancellationToken {
        self.shutdown.clone()
    }

    /// Asks all tasks to end and waits for them, at most `patience`. Answers whether all did.
    pub async fn end(&self, patience: Duration) -> bool {
        self.shutdown.cancel();
        self.tracker.close();
        tokio::time::timeout(patience, self.tracker.wait())
            .await
            .is_ok()
    }
}
