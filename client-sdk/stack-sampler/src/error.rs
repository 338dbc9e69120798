//! What can go wrong. None of it harms the watched thread.

use std::io;
use std::time::Duration;

/// The calling thread cannot be watched.
///
/// ```
/// use unjank_stack_sampler::{Sampler, SamplerError};
///
/// match Sampler::for_this_thread() {
///     Ok(_sampler) => {} // hand it to the thread that watches
///     Err(SamplerError::Unsupported) => {} // the host brings a `StackSource`
///     Err(error) => eprintln!("stalls come without stacks: {error}"),
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SamplerError {
    /// This platform has no sampler: implement [`crate::StackSource`] with what the platform offers.
    #[error("stacks of other threads cannot be taken on this platform: implement StackSource")]
    Unsupported,
    /// The signal of [`crate::Options::signal`] is not a real-time signal of this system.
    #[error("SIGRTMIN+{offset} does not exist: choose a smaller number")]
    NoSuchSignal {
        /// The number given.
        offset: u8,
    },
    /// Somebody else in this process handles or ignores the signal. Their handler was left alone.
    #[error("SIGRTMIN+{offset} is in use by another part of this process: choose another one")]
    SignalTaken {
        /// The number given.
        offset: u8,
    },
    /// Every real-time signal is in use.
    #[error("all real-time signals are in use by other parts of this process")]
    NoFreeSignal,
    /// The system did not answer a question about the thread.
    #[error("cannot {doing}: {source}")]
    System {
        /// The question, as a verb.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// No stack this time. The next capture may work.
///
/// ```
/// let failed = unjank_stack_sampler::CaptureError::Host("no such thread".to_owned());
/// assert_eq!(failed.to_string(), "the host took no stack: no such thread");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The watched thread has ended.
    #[error("the watched thread has ended")]
    ThreadEnded,
    /// The thread did not run its handler in time: it blocks the signal, is stopped, or waits in the kernel where
    /// no signal reaches it (a disk or a file system that does not answer).
    #[error("the watched thread did not answer within {} ms", waited.as_millis())]
    Timeout {
        /// How long it was waited for.
        waited: Duration,
    },
    /// A thread that got no processor since it began to answer an earlier capture still holds the buffer.
    #[error("an earlier capture is not over yet")]
    Busy,
    /// Somebody replaced the handler of the signal, which is therefore not sent any more.
    #[error("another part of this process took the signal away")]
    HandlerReplaced,
    /// The system refused to deliver the signal.
    #[error("cannot send the signal: {0}")]
    Send(#[source] io::Error),
    /// Unwinding met a defect of its own. What is known about modules was forgotten, to start afresh.
    #[error("the stack could not be unwound")]
    Unwinding,
    /// A host's own implementation of [`crate::StackSource`] failed.
    #[error("the host took no stack: {0}")]
    Host(String),
}
