//! Spans of tasks that another task starts.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::local;
use super::{Open, SpanContext};

pin_project! {
    /// A future whose spans are children of the span that was open where [`inherit`] was called.
    ///
    /// ```
    /// let task: unjank::Inherited<_> = unjank::inherit(async { 7 });
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Inherited<F> {
        #[pin]
        future: F,
        parent: Option<Open>,
    }
}

/// Makes the span that is open on this thread the parent of the spans that the future begins, wherever it runs: for tasks that are
/// started in a `JoinSet`, on a `LocalSet`, or on another runtime than tokio. `spawn` (feature `tokio`) does it for `tokio::spawn`.
///
/// The parent may end before the task does. A future that opens no spans costs nothing but the look-up of the parent at each poll.
///
/// ```
/// async fn load(_part: u32) {
///     let _span = unjank::span("part"); // a child of `load all`
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let span = unjank::span("load all");
/// let mut parts = tokio::task::JoinSet::new();
/// for part in 0..3 {
///     parts.spawn(unjank::inherit(load(part)));
/// }
/// drop(span);
/// parts.join_all().await;
/// # });
/// ```
pub fn inherit<F: Future>(future: F) -> Inherited<F> {
    let parent = if crate::measure::client::is_on() {
        local::innermost()
    } else {
        None
    };
    Inherited { future, parent }
}

/// Starts a task, as `tokio::spawn` does. Its spans are children of the span that is open here. tokio has no stable hook for new tasks,
/// so spans of a task that is started by `tokio::spawn` itself have no parent.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let span = unjank::span("sync");
/// let task = unjank::spawn(async { unjank::span("download").end() }); // a child of `sync`
/// drop(span);
/// task.await.unwrap();
/// # });
/// ```
///
/// # Panics
/// If it is called outside a runtime of tokio.
#[cfg(feature = "tokio")]
#[track_caller]
pub fn spawn<F>(future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[expect(
        clippy::disallowed_methods,
        reason = "the app gets the handle, and with it a panic of the task"
    )]
    tokio::spawn(inherit(future))
}

impl<F: Future> Future for Inherited<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = this.parent.map(|parent| SpanContext(parent).enter());
        this.future.poll(context)
    }
}
