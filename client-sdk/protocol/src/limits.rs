//! How much a batch may hold. The numbers a server enforces and an SDK keeps to.

/// The limits of one batch. The defaults are the published contract; a server may be set to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request body as sent.
    pub compressed_bytes: usize,
    /// Bytes of a request body after decompression, counted while decompressing.
    pub decompressed_bytes: usize,
    /// Events of all signals together.
    pub events: usize,
    /// Frames of one stack; outer frames past it are cut.
    pub frames: usize,
    /// Attributes of one event; those past it are cut. Also the most events inside a span, requests of a page load,
    /// phases of a start, samples and log lines of a jank, and buckets of a histogram.
    pub attributes: usize,
    /// Bytes of one string; longer ones are cut and end in `…`.
    pub string_bytes: usize,
    /// The longest span, in microseconds.
    pub span_us: i64,
    /// The oldest event, in microseconds before it is received, after clock correction.
    pub age_us: i64,
    /// The furthest event ahead, in microseconds after it is received, after clock correction.
    pub ahead_us: i64,
}

const HOUR_US: i64 = 3_600_000_000;
/// The most frames of one stack.
pub(crate) const FRAMES: usize = 128;
/// The most items of any other list inside an event.
pub(crate) const ITEMS: usize = 64;

impl Default for Limits {
    fn default() -> Self {
        Self {
            compressed_bytes: 1024 * 1024,
            decompressed_bytes: 10 * 1024 * 1024,
            events: 10_000,
            frames: FRAMES,
            attributes: ITEMS,
            string_bytes: 1024,
            span_us: 24 * HOUR_US,
            age_us: 7 * 24 * HOUR_US,
            ahead_us: HOUR_US,
        }
    }
}
