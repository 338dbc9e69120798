//! What a capture answers.

use std::sync::Arc;
use std::time::Duration;

use unjank_protocol::Frame;

/// The stack of a thread at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stack {
    /// Innermost first.
    pub frames: Vec<RawFrame>,
    /// Whether outer frames are missing: past the depth asked for, past the bytes that are copied (256 KiB), or
    /// behind a frame that could not be unwound.
    pub truncated: bool,
    /// How long the handler kept the thread from its own work. What the kernel needs to enter and leave a handler
    /// (1 to 3 µs) comes on top.
    pub suspended: Duration,
    /// How long the thread took to start the handler.
    pub reached_after: Duration,
    /// How long unwinding and naming took the watching thread, with the look at what is mapped.
    pub unwound_in: Duration,
    /// Bytes of stack that were copied.
    pub copied_bytes: usize,
}

impl Stack {
    /// The frames as they go over the wire.
    #[must_use]
    pub fn frames(&self) -> Vec<Frame<'static>> {
        self.frames.iter().map(RawFrame::to_frame).collect()
    }
}

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawFrame {
    /// Address in this process. For a caller it is one byte before the address it will be returned to, so that it
    /// lies within the call.
    pub address: u64,
    /// The library or executable: the last part of its path, since folders may name people. Empty for code that
    /// belongs to no file.
    pub module: Arc<str>,
    /// Its GNU build id in hex; empty when it has none.
    pub build_id: Arc<str>,
    /// [`Self::address`] relative to the start of the module's image; `None` when it belongs to no file.
    pub offset: Option<u64>,
    /// The symbol as the linker knows it, mangled; `None` when the module was stripped of it.
    pub function: Option<Arc<str>>,
}

impl RawFrame {
    /// The frame as it goes over the wire.
    #[must_use]
    pub fn to_frame(&self) -> Frame<'static> {
        let function = self.function.as_deref().unwrap_or_default();
        Frame {
            module: self.module.to_string().into(),
            function: function.to_owned().into(),
            build_id: self.build_id.to_string().into(),
            offset: self.offset,
            ..Frame::default()
        }
    }
}
