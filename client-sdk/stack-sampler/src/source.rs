//! The interface between the SDK, which needs stacks, and code that can capture them.

use unjank_protocol::Frame;

use crate::CaptureError;

/// Captures the stack of the one thread it was created for.
///
/// [`crate::Sampler`] is the implementation for Linux. A host that has a better way implements its own: `Thread.getStackTrace()`
/// for Kotlin, `thread_suspend` and `thread_get_state` on Apple's systems.
///
/// ```
/// use unjank_protocol::Frame;
/// use unjank_stack_sampler::{CaptureError, StackSource};
///
/// struct Java;
///
/// impl StackSource for Java {
///     fn capture(&self, depth: usize) -> Result<Vec<Frame<'static>>, CaptureError> {
///         let frame = Frame { // … from `getStackTrace` …
///             module: "com.example.shop.Cart".into(),
///             function: "total".into(),
///             file: "Cart.kt".into(),
///             line: 42,
///             ..Frame::default()
///         };
///         Ok(vec![frame; depth.min(1)])
///     }
/// }
/// assert_eq!(Java.capture(128).unwrap().len(), 1);
/// ```
pub trait StackSource: Send + Sync {
    /// Returns the current stack: at most `depth` frames, innermost first. Called on a thread other than the watched one.
    ///
    /// # Errors
    /// If no stack could be captured this time.
    fn capture(&self, depth: usize) -> Result<Vec<Frame<'static>>, CaptureError>;
}
