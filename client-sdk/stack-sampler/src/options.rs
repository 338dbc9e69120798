//! Options of a sampler.

use std::time::Duration;

/// How a [`crate::Sampler`] interrupts its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The signal, as *k* of `SIGRTMIN+k`. `None` uses one that no other code handles, the same for all samplers.
    pub signal: Option<u8>,
    /// How long to wait for the thread to run the handler. The wait does not affect the watched thread.
    pub timeout: Duration,
}

impl Default for Options {
    /// Any unused signal, and a timeout of 200 ms.
    fn default() -> Self {
        Self {
            signal: None,
            timeout: Duration::from_millis(200),
        }
    }
}
