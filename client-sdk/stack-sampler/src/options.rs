//! What can be chosen about a sampler.

use std::time::Duration;

/// How a [`crate::Sampler`] reaches its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Which signal to use, as *k* of `SIGRTMIN+k`. `None` takes one that nobody handles, the same for all samplers.
    pub signal: Option<u8>,
    /// How long to wait for the thread to run the handler. Waiting costs the watched thread nothing.
    pub timeout: Duration,
}

impl Default for Options {
    /// Any free signal, 200 ms.
    fn default() -> Self {
        Self {
            signal: None,
            timeout: Duration::from_millis(200),
        }
    }
}
