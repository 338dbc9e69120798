//! The seam between the SDK, which asks for stacks, and whoever can take them.

use unjank_protocol::Frame;

use crate::CaptureError;

/// Takes the stack of the one thread it was made for.
///
/// [`crate::Sampler`] is the implementation for Linux. A host with something better implements its own:
/// `Thread.getStackTrace()` for Kotlin, `thread_suspend` and `thread_get_state` on Apple's systems.
pub trait StackSource: Send + Sync {
    /// The stack as it is now: at most `depth` frames, innermost first. Called on another thread than the watched one.
    ///
    /// # Errors
    /// When no stack could be taken this time.
    fn capture(&self, depth: usize) -> Result<Vec<Frame<'static>>, CaptureError>;
}
