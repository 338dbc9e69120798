//! Errors. None of them affects the watched thread.

use std::io;
use std::time::Duration;

/// Why the calling thread cannot be watched.
///
/// ```
/// use unjank_stack_sampler::{Sampler, SamplerError};
///
/// match Sampler::for_this_thread() {
///     Ok(_sampler) => {} // pass it to the watching thread
///     Err(SamplerError::Unsupported) => {} // the host implements `StackSource`
///     Err(error) => eprintln!("stalls have no stacks: {error}"),
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SamplerError {
    /// This platform has no sampler: implement [`crate::StackSource`] with the platform's own API.
    #[error("this platform has no stack sampler: implement `StackSource`")]
    Unsupported,
    /// The signal in [`crate::Options::signal`] is not a real-time signal of this system.
    #[error("SIGRTMIN+{offset} does not exist: choose a smaller number")]
    NoSuchSignal {
        /// The number in the options.
        offset: u8,
    },
    /// Other code in this process handles or ignores the signal. Its handler was not changed.
    #[error("SIGRTMIN+{offset} is in use by another part of this process: choose another number")]
    SignalTaken {
        /// The number in the options.
        offset: u8,
    },
    /// All real-time signals are in use.
    #[error("all real-time signals are in use by other parts of this process: free one of them")]
    NoFreeSignal,
    /// A system call failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// What the sampler tried to do, as a verb.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

/// Why there is no stack this time. The next capture may succeed.
///
/// ```
/// let failed = unjank_stack_sampler::CaptureError::Host("no such thread".to_owned());
/// assert_eq!(failed.to_string(), "the host captured no stack: no such thread");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The watched thread has ended.
    #[error("the watched thread has ended")]
    ThreadEnded,
    /// The thread did not run the handler in time: it blocks the signal or gets no processor time. Where waiting threads are not
    /// read from outside, also if it is stopped, or waits in the kernel where no signal reaches it (such as for an unresponsive
    /// disk).
    #[error(
        "the watched thread did not run the signal handler within {} ms: it may block the signal",
        waited.as_millis()
    )]
    Timeout {
        /// How long the sampler waited.
        waited: Duration,
    },
    /// A thread that is still running the handler of an earlier capture, for lack of CPU time, holds the buffer.
    #[error("an earlier capture is still in progress")]
    Busy,
    /// Other code replaced the signal handler. The signal is no longer sent.
    #[error("another part of this process replaced the signal handler")]
    HandlerReplaced,
    /// The system refused to send the signal.
    #[error("cannot send the signal: {0}")]
    Send(#[source] io::Error),
    /// The unwinder panicked. The cached data about modules was discarded.
    #[error("the stack could not be unwound")]
    Unwinding,
    /// The host's implementation of [`crate::StackSource`] failed.
    #[error("the host captured no stack: {0}")]
    Host(String),
}
