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
pub(crate) const FRAMES: usize = Limits::FRAMES;
/// The maximum number of items of any other list of an event.
pub(crate) const ITEMS: usize = Limits::ITEMS;

impl Limits {
    /// The default of [`Self::events`], and the most that a device sends.
    pub const EVENTS: usize = 10_000;
    /// The default of [`Self::frames`]. One frame more is read, which shows that there were more.
    pub const FRAMES: usize = 128;
    /// The default of [`Self::attributes`]. One item more is read.
    pub const ITEMS: usize = 64;
    /// The largest 64-bit number of an event: a number of bytes, requests, lost events or measurements, or a time. It is 2^42: 4 TiB, or 139
    /// years in milliseconds. Larger ones are not true; many are -1 without its sign. The sum of four million of the largest fits 64 bits.
    pub const LARGEST_NUMBER: u64 = 1 << 42;
    /// The smallest sample rate. An event counts as 1 / rate events, so a rate near 0 makes the sums of all events infinite.
    pub const SMALLEST_RATE: f64 = 1e-9;
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
