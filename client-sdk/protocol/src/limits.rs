//! The limits of a batch, which servers enforce and SDKs respect.

/// The limits of one batch. The defaults are published; a server can have other limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of bytes of a request body as sent.
    pub compressed_bytes: usize,
    /// The maximum number of bytes of a request body after decompression, enforced during decompression.
    pub decompressed_bytes: usize,
    /// The maximum number of events of all signals together.
    pub events: usize,
    /// The maximum number of frames of a stack. Further outer frames are cut.
    pub frames: usize,
    /// The maximum number of attributes of an event. Further ones are cut. The same for events of a span, requests of a page load,
    /// phases of a start, samples of a jank, and buckets of a histogram. Of the log lines of a jank, the last are kept.
    pub attributes: usize,
    /// The maximum number of bytes of a string. Longer ones are cut and end in `…`.
    pub string_bytes: usize,
    /// The maximum duration of a span, in microseconds.
    pub span_us: i64,
    /// The maximum age of an event when it is received, in microseconds, after clock correction.
    pub age_us: i64,
    /// The maximum time by which an event can be ahead of its reception, in microseconds, after clock correction.
    pub ahead_us: i64,
}

const HOUR_US: i64 = 3_600_000_000;
/// The maximum number of frames of a stack.
pub(crate) const FRAMES: usize = 128;
/// The maximum number of items of any other list of an event.
pub(crate) const ITEMS: usize = 64;

impl Limits {
    /// The default of [`Self::events`], and the most that a device sends.
    pub const EVENTS: usize = 10_000;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            compressed_bytes: 1024 * 1024,
            decompressed_bytes: 10 * 1024 * 1024,
            events: Self::EVENTS,
            frames: FRAMES,
            attributes: ITEMS,
            string_bytes: 1024,
            span_us: 24 * HOUR_US,
            age_us: 7 * 24 * HOUR_US,
            ahead_us: HOUR_US,
        }
    }
}
