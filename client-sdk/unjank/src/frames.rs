//! Frames: what the display was shown, and when.

use std::time::{Duration, Instant};

use unjank_monitors::Uptime;

use crate::client;
use crate::clock::Moment;

/// A frame was drawn: the display wanted it at `vsync`, and it was handed over at `rendered`. Call it once a frame, on the thread that
/// draws. Time in which no frame was wanted does not count against anybody. Times before the process began count as its begin, and a
/// frame that ends before it was wanted took no time. Nothing while nothing is collected.
///
/// ```
/// use std::time::Instant;
///
/// let vsync = Instant::now();
/// // … draw …
/// unjank::frame(vsync, Instant::now());
/// ```
#[inline]
pub fn frame(vsync: Instant, rendered: Instant) {
    client::with(|shared| {
        let (vsync, rendered) = (Uptime::of(vsync), Uptime::of(rendered));
        let window = shared.meters.frames().frame(vsync, rendered);
        shared.record_frames(window);
    });
}

/// The same as [`frame`] for hosts that are told how long a frame took: it ended now.
///
/// ```
/// unjank::frame_lasting(std::time::Duration::from_millis(9));
/// ```
#[inline]
pub fn frame_lasting(took: Duration) {
    let now = Instant::now();
    frame(now.checked_sub(took).unwrap_or(now), now);
}

/// The display changed how often it refreshes: 1 to 1,000 Hz, more is taken as 1,000 and 0 as 60. Until then it is that of
/// [`crate::Device::refresh_hz`]. It holds also when it is said while collection is switched off; nothing before [`crate::init`].
///
/// ```
/// unjank::set_refresh_rate(120);
/// ```
pub fn set_refresh_rate(hertz: u16) {
    if let Some(shared) = client::installed() {
        shared.meters.frames().set_refresh_hz(hertz);
    }
}

/// Times for the state machines.
pub(crate) trait Times {
    fn now() -> Self;
    fn of(instant: Instant) -> Self;
}

impl Times for Uptime {
    #[inline]
    fn now() -> Self {
        Self::of(Instant::now())
    }

    #[inline]
    fn of(instant: Instant) -> Self {
        let micros = Moment::from(instant).micros();
        Self::from_micros(u64::try_from(micros).unwrap_or_default())
    }
}
