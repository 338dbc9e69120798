//! The seam between the SDK, which asks for stacks, and whoever can take them.

use unjank_protocol::Frame;

use crate::CaptureError;

/// Takes the stack of the one thread it was made for.
///
/// [`crate::Sampler`] is the implementation for Linux. A host with something better implements its own:
/// `Thread.getStackTrace()` for Kotlin, `thread_suspend` and `thread_get_state` on Apple's systems.
///
/// ```
/// use unjank_protocol::Frame;
/// use unjank_stack_sampler::{CaptureError, StackSource};
///
/// struct Java;
///
/// impl StackSource for Java {
///     fn capture(&self, depth: usize) -> Result<Vec<Frame<'static>>, CaptureError> {
///         let frame = Frame { // … what `getStackTrace` said …
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
    /// The stack as it is now: at most `depth` frames, innermost first. Called on another thread than the watched one.
    ///
    /// # Errors
    /// When no stack could be taken this time.
    fn capture(&self, depth: usize) -> Result<Vec<Frame<'static>>, CaptureError>;
}
