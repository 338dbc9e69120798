//! Measurements that end with the next frame: the latency of an input, and the return of the app to the foreground.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::time::Instant;

use unjank_monitors::Uptime;

use super::awaited_frame::LONGEST_US;
use super::client::{self, Shared};
use super::metric::record_with;
use super::suspensions::suspended_us_since;
use crate::bounded_text::cut;
use crate::clock::Times as _;

/// Marks an input of the user, such as a tap, whose feedback the next frame shows. `name` is constant, such as `tap` or `pay_button`,
/// and cut at 1 KiB. `at` is when the input happened: the time of the system's event if the host knows it, so that the time in which it
/// waited for a blocked main thread counts; else [`Instant::now`]. Do not mark every movement of a finger.
///
/// The metric `input_latency_ms`, with the attribute `input`, is the time from there to the first frame that is delivered at or after
/// `at`: the `rendered` of [`crate::frame`], the call of [`crate::frame_lasting`], or a [`crate::frame_tick`]. A frame that the app was
/// drawing at the time counts, and the time until the display shows the frame does not. If several inputs wait for one frame, the first
/// one counts. An input without a frame within five seconds has no latency. Does nothing while nothing is collected.
///
/// ```
/// use std::time::Instant;
///
/// let touched = Instant::now(); // the time of the event
/// unjank::input("pay_button", touched);
/// unjank::frame_tick(Instant::now()); // ends the latency
/// ```
pub fn input(name: impl Into<Cow<'static, str>>, at: Instant) {
    client::with(|shared| {
        let name = cut(name.into());
        shared.meters.next_frame.await_input(name, Uptime::at(at));
    });
}

impl Shared {
    /// Ends the measurements that wait for a frame that was delivered at this time.
    #[inline]
    pub(crate) fn frame_delivered(&self, at: Uptime) {
        if self.meters.next_frame.is_awaited.load(Ordering::Relaxed) {
            self.end_awaited(at);
        }
    }

    #[cold]
    fn end_awaited(&self, at: Uptime) {
        let ended = self.meters.next_frame.take(at);
        let latency = |since: Uptime| {
            let micros = at.micros_since(since);
            // While the process was suspended, nobody waited for it.
            let is_real = micros <= LONGEST_US && suspended_us_since(since) == 0;
            is_real.then(|| milliseconds(micros))
        };
        if let Some((name, since)) = ended.input
            && let Some(latency) = latency(since)
        {
            record_with(
                self,
                "input_latency_ms".into(),
                latency,
                &[("input", &name)],
            );
        }
        if let Some(took) = ended.foreground.and_then(latency) {
            record_with(self, "app_to_foreground_ms".into(), took, &[]);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53 microseconds")]
pub(crate) fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}
