//! Frames: when the display requested them, and when the app delivered them.

use std::time::{Duration, Instant};

use unjank_monitors::Uptime;

use super::client;
use super::suspensions::suspended_us_since;
use crate::clock::Times as _;

/// Shorter times are not checked for a suspension.
const LONG_US: u64 = 700_000;

/// Records a drawn frame: the display requested it at `vsync`, and the app delivered it at `rendered`. Call it once per frame, on
/// the thread that draws.
///
/// Time in which no frame was requested does not count as dropped frames. A time before the process began counts as the process's
/// beginning, and a frame with `rendered` before `vsync` took no time. Does nothing while nothing is collected.
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
        let (mut vsync, rendered) = (Uptime::at(vsync), Uptime::at(rendered));
        if rendered.micros_since(vsync) > LONG_US {
            // Leaves out the time in which the process did not run: it could not draw then.
            vsync = vsync.plus(suspended_us_since(vsync)).min(rendered);
        }
        let window = shared.meters.frames().frame(vsync, rendered);
        shared.record_frames(window);
        shared.frame_delivered(rendered);
    });
}

/// The same as [`frame`], for hosts that only know how long a frame took. The frame ends now.
///
/// ```
/// unjank::frame_lasting(std::time::Duration::from_millis(9));
/// ```
#[inline]
pub fn frame_lasting(took: Duration) {
    let now = Instant::now();
    frame(now.checked_sub(took).unwrap_or(now), now);
}

/// Records a tick of a callback that the display calls at each refresh, such as `Choreographer.postFrameCallback` or `CADisplayLink`. Each
/// tick is a frame, and a gap between two ticks is dropped frames: also a block between frames, which [`frame`] does not see. Use either
/// ticks or [`frame`]. Call [`pause_ticks`] when the callback is removed. Does nothing while nothing is collected.
///
/// ```
/// use std::time::Instant;
///
/// unjank::frame_tick(Instant::now()); // in the callback
/// unjank::pause_ticks(); // nothing is animated any more
/// ```
#[inline]
pub fn frame_tick(at: Instant) {
    client::with(|shared| {
        let at = Uptime::at(at);
        let mut frames = shared.meters.frames();
        let before = frames
            .last_tick()
            .filter(|before| at.micros_since(*before) > LONG_US);
        if before.is_some_and(|before| suspended_us_since(before) > 0) {
            frames.pause_ticks();
        }
        let window = frames.tick(at);
        drop(frames);
        shared.record_frames(window);
        shared.frame_delivered(at);
    });
}

/// Marks the time until the next [`frame_tick`] as idle.
///
/// ```
/// unjank::pause_ticks();
/// ```
pub fn pause_ticks() {
    client::with(|shared| shared.meters.frames().pause_ticks());
}

/// Sets the refresh rate of the display in hertz, from 1 to 1,000. Higher values count as 1,000, and 0 counts as 60. The initial
/// value is [`crate::Device::refresh_hz`]. Also takes effect while collection is switched off; does nothing before
/// [`crate::init`].
///
/// ```
/// unjank::set_refresh_rate(120);
/// ```
pub fn set_refresh_rate(hertz: u16) {
    if let Some(shared) = client::installed() {
        shared.meters.frames().set_refresh_hz(hertz);
    }
}
