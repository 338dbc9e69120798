//! Called by code that `#[traced]` generates; not public API.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::client;
use super::site::Callsite;
use super::span::{DetachedSpan, callsite_span, future_span};

/// Runs a function inside its span, which ends with an error if `failed` returns `true` for the result.
#[doc(hidden)]
#[inline]
pub fn traced_call<R>(
    callsite: &'static Callsite,
    run: impl FnOnce() -> R,
    failed: fn(&R) -> bool,
) -> R {
    let span = callsite_span(callsite);
    let answer = run();
    if span.is_recorded() && failed(&answer) {
        span.end_error();
    }
    answer
}

/// Wraps a future so that it runs inside its span.
#[doc(hidden)]
#[inline]
pub fn traced_future<F: Future>(
    callsite: &'static Callsite,
    future: F,
    failed: fn(&F::Output) -> bool,
) -> TracedFuture<F> {
    TracedFuture {
        future,
        span: Stage::Waiting,
        callsite,
        failed,
    }
}

/// The state of a future's span.
#[derive(Debug)]
enum Stage {
    /// Until the first poll. A future that is never polled has no span.
    Waiting,
    Running(Running),
    /// Completed, or first polled while nothing was collected.
    Nothing,
}

/// The span of a future that has not completed. A future that is dropped before is cancelled.
#[derive(Debug)]
struct Running {
    span: Option<DetachedSpan>,
    /// A span below is kept, or may be.
    keeps_below: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        // If a panic drops the future, the span ends as every span that a panic unwinds.
        if let Some(span) = self.span.take().filter(|_| !std::thread::panicking()) {
            span.end_cancelled();
        }
    }
}

pin_project! {
    /// A future that enters its span on every poll, and ends it on completion or drop.
    #[doc(hidden)]
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct TracedFuture<F: Future> {
        // Dropped before the span, so that spans inside it end first.
        #[pin]
        future: F,
        span: Stage,
        callsite: &'static Callsite,
        failed: fn(&F::Output) -> bool,
    }
}

impl<F: Future> Future for TracedFuture<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if matches!(this.span, Stage::Waiting) {
            *this.span = if client::is_on() {
                Stage::Running(Running {
                    span: Some(future_span(this.callsite)),
                    keeps_below: false,
                })
            } else {
                Stage::Nothing
            };
        }
        let Stage::Running(running) = this.span else {
            return this.future.poll(context);
        };
        let Some(span) = running.span.take() else {
            return this.future.poll(context);
        };
        // If the future panics, the span ends here, with an error.
        let entered = span.enter();
        let polled = this.future.poll(context);
        running.keeps_below |= entered.leave();
        match &polled {
            Poll::Pending => running.span = Some(span),
            Poll::Ready(answer) if (this.failed)(answer) => span.end_error(),
            Poll::Ready(_) if running.keeps_below => drop(span),
            Poll::Ready(_) => span.end_alone(),
        }
        polled
    }
}
