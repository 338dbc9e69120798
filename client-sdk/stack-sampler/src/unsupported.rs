//! The sampler of unsupported platforms, which cannot be created.

use std::convert::Infallible;

use unjank_protocol::Frame;

use crate::{CaptureError, Options, SamplerError, Stack, StackSource};

/// Captures the stack of one thread. Cannot be created on this platform.
#[derive(Debug)]
pub struct Sampler(Infallible);

impl Sampler {
    /// Always fails.
    ///
    /// # Errors
    /// Always [`SamplerError::Unsupported`].
    pub fn for_this_thread() -> Result<Self, SamplerError> {
        Err(SamplerError::Unsupported)
    }

    /// Always fails.
    ///
    /// # Errors
    /// Always [`SamplerError::Unsupported`].
    pub fn with_options(_options: Options) -> Result<Self, SamplerError> {
        Err(SamplerError::Unsupported)
    }

    /// Cannot be called, because there is no sampler.
    ///
    /// # Errors
    /// None.
    pub fn capture(&self, _depth: usize) -> Result<Stack, CaptureError> {
        match self.0 {}
    }
}

impl StackSource for Sampler {
    fn capture(&self, _depth: usize) -> Result<Vec<Frame<'static>>, CaptureError> {
        match self.0 {}
    }
}
