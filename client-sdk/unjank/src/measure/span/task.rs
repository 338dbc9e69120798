//! Which task of an `async` runtime runs on this thread. Spans of different tasks are strangers, although they share the thread.

/// A task, or no task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Task(#[cfg(feature = "tokio")] Option<tokio::task::Id>);

impl Task {
    /// Returns the task that runs on this thread. Without the feature `tokio`, all code of a thread counts as one task.
    #[inline]
    pub(super) fn current() -> Self {
        Self(
            #[cfg(feature = "tokio")]
            tokio::task::try_id(),
        )
    }
}
