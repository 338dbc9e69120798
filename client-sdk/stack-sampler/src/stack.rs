//! The result of a capture.

use std::sync::Arc;
use std::time::Duration;

use unjank_protocol::Frame;

/// The stack of a thread at one point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stack {
    /// The frames, innermost first.
    pub frames: Vec<RawFrame>,
    /// Whether outer frames are missing: beyond the requested depth, beyond the bytes that are copied (256 KiB), or behind a
    /// frame that could not be unwound.
    pub truncated: bool,
    /// Whether a signal interrupted the thread. A thread that waits in the kernel is read from outside if the system permits that.
    pub interrupted: bool,
    /// How long the handler ran on the thread; zero without a signal. Entering and leaving a handler takes the kernel another 1 to
    /// 3 µs.
    pub suspended: Duration,
    /// How long it took until the copy began or, without a signal, until it was complete.
    pub reached_after: Duration,
    /// How long the watching thread took to unwind and symbolize, including reading the memory map.
    pub unwound_in: Duration,
    /// Bytes of stack that were copied.
    pub copied_bytes: usize,
}

impl Stack {
    /// Returns the frames in the form of the wire format.
    #[must_use]
    pub fn frames(&self) -> Vec<Frame<'static>> {
        self.frames.iter().map(RawFrame::to_frame).collect()
    }
}

/// One frame of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawFrame {
    /// The address in this process. For a caller, one byte before the return address, so that it lies within the call.
    pub address: u64,
    /// The file name of the library or executable, without its path, because directories may name people. Empty for code that
    /// belongs to no file.
    pub module: Arc<str>,
    /// The GNU build id of the module in hexadecimal; empty if it has none.
    pub build_id: Arc<str>,
    /// [`Self::address`] relative to the start of the module's image; `None` if it belongs to no file.
    pub offset: Option<u64>,
    /// The mangled symbol; `None` if the module was stripped of it.
    pub function: Option<Arc<str>>,
}

impl RawFrame {
    /// Returns the frame in the form of the wire format.
    #[must_use]
    pub fn to_frame(&self) -> Frame<'static> {
        let function = self.function.as_deref().unwrap_or_default();
        Frame {
            module: self.module.to_string().into(),
            function: function.to_owned().into(),
            build_id: self.build_id.to_string().into(),
            offset: self.offset,
            address: Some(self.address),
            ..Frame::default()
        }
    }
}
