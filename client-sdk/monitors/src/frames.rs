//! Frames: drawn, dropped, slow and frozen ones, and the time in the dropping state, in windows of one page.
//!
//! # The model
//! A frame is *wanted* from `vsync`, the display refresh at which the system intended to begin it (Android `FrameMetrics`:
//! `INTENDED_VSYNC_TIMESTAMP`; iOS: `CADisplayLink.timestamp`), and *rendered* when its pixels are handed over (Android: `vsync +
//! TOTAL_DURATION`). It is shown at the next refresh, a whole number of budgets after `vsync`.
//!
//! The display is **active** from the time a frame is wanted until it is shown. Overlapping frames of a pipelined renderer form
//! one active period. In an active period, every budget shows either a new frame or the old one again:
//!
//! > drawn + dropped = budgets that passed while active
//!
//! Between these periods no frame is wanted: that time is **idle**, and no frame is dropped in it. So a still screen costs
//! nothing, and a renderer that takes 30 ms per frame but delivers one at every refresh drops nothing after the first. The model
//! cannot see a main loop that is blocked before it requests a frame. That is a stall, see [`stalls`](crate::stalls). (Two frames
//! shown at the same refresh both count as drawn; drawn + dropped then exceeds the budgets that passed.)
//!
//! Definitions: the budget is 1000 / `refresh_hz` ms. A *slow* frame took longer than the budget (16.67 ms at 60 Hz). A *frozen*
//! frame took more than 700 ms, and is also slow. `delay` is the total time over budget. The **dropping state** (Uber) is entered
//! when E frames in a row were dropped. It is left when R frames in a row were drawn, or after an idle time of R budgets.
//! `jank_ms` is the active time in it, from the end of the E-th dropped budget.

mod window;

use unjank_protocol::FrameWindow;
use unjank_protocol::config::Frames;

use self::window::{FROZEN_US, Window};
use crate::{Scene, Uptime};

/// Tolerance for exceeding the budget, in microseconds: the times of refreshes and of frame ends are read in different places and
/// rounded.
const JITTER_US: u64 = 20;

/// Counts the frames of one display. For a single thread: the one that reports frames.
///
/// ```
/// use unjank_monitors::{FrameMeter, Scene, Uptime};
/// use unjank_protocol::config::Frames;
///
/// let mut meter = FrameMeter::new(&Frames::default(), 120, Scene::new("Feed"));
/// for frame in 0..1_300_u64 {
///     let vsync = Uptime::from_micros(frame * 8_333);
///     if let Some(window) = meter.frame(vsync, vsync.plus(5_000)) {
///         // Ten seconds at 120 Hz.
///         assert_eq!((window.frames_drawn, window.frames_dropped), (1_201, 0));
///     }
/// }
/// ```
#[derive(Debug)]
pub struct FrameMeter {
    window_us: u64,
    enter_dropped: u64,
    leave_drawn: u64,
    scene: Scene,
    refresh_hz: u16,
    budget_us: u64,
    /// The budget without the rounding, which would add up over a long frame.
    budget_ns: u64,
    window: Option<Window>,
    /// Until when the display is known to be active.
    shown: Uptime,
    dropping: bool,
    drawn_in_a_row: u64,
    last_tick: Option<Uptime>,
    totals: FrameTotals,
}

/// Frames since a meter was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameTotals {
    /// Drawn frames.
    pub drawn: u64,
    /// Whole frame budgets that passed without a frame while the display was active.
    pub dropped: u64,
    /// Frames that took longer than their budget.
    pub slow: u64,
    /// Frames that took longer than 700 ms.
    pub frozen: u64,
    /// How long frames were wanted, in microseconds: frames per second are frames per active second, because a still screen needs
    /// none.
    pub active_us: u64,
}

impl FrameTotals {
    #[inline]
    fn add(&mut self, took: u64, over: u64, (active, dropped): (u64, u64)) {
        self.active_us = self.active_us.saturating_add(active);
        self.dropped = self.dropped.saturating_add(dropped);
        self.slow = self.slow.saturating_add(u64::from(over > 0));
        self.frozen = self.frozen.saturating_add(u64::from(took > FROZEN_US));
    }
}

impl FrameMeter {
    /// Creates a meter for a display that refreshes `refresh_hz` times per second; 0 counts as 60.
    #[must_use]
    pub fn new(config: &Frames, refresh_hz: u16, scene: Scene) -> Self {
        let mut meter = Self {
            window_us: 0,
            enter_dropped: 0,
            leave_drawn: 0,
            scene,
            refresh_hz: 0,
            budget_us: 1,
            budget_ns: 1_000,
            window: None,
            shown: Uptime::default(),
            dropping: false,
            drawn_in_a_row: 0,
            last_tick: None,
            totals: FrameTotals::default(),
        };
        meter.set_config(config);
        meter.set_refresh_hz(refresh_hz);
        meter
    }

    /// Applies settings: `window_ms` from 1,000 to 60,000, `enter_dropped` and `leave_drawn` from 1 to 1,000. The new length also
    /// applies to an open window.
    pub fn set_config(&mut self, config: &Frames) {
        self.window_us = u64::from(config.window_ms.clamp(1_000, 60_000)).saturating_mul(1_000);
        self.enter_dropped = u64::from(config.enter_dropped.clamp(1, 1_000));
        self.leave_drawn = u64::from(config.leave_drawn.clamp(1, 1_000));
    }

    /// Sets the refresh rate from the next frame on: 1 to 1,000 Hz; 0 counts as 60. The window stays open; it reports the rate of
    /// its longest run of frames at one rate.
    pub fn set_refresh_hz(&mut self, refresh_hz: u16) {
        let refresh_hz = if refresh_hz == 0 { 60 } else { refresh_hz };
        self.refresh_hz = refresh_hz.min(1_000);
        self.budget_ns = 1_000_000_000_u64
            .checked_div(u64::from(self.refresh_hz))
            .unwrap_or(16_666_666);
        self.budget_us = self.budget_ns / 1_000;
    }

    /// Sets the surroundings. A change of the page ends the window. A frame that is reported later belongs entirely to the new
    /// page, because the user waits for it there. A window reports the network and the clock at its end.
    #[must_use]
    pub fn set_scene(&mut self, now: Uptime, scene: Scene) -> Option<FrameWindow<'static>> {
        let ended = (scene.page != self.scene.page)
            .then(|| self.flush(now))
            .flatten();
        self.scene = scene;
        ended
    }

    /// Counts a frame that was wanted at `vsync` and handed to the display at `rendered`.
    ///
    /// Returns the previous window if this frame lies past its end.
    #[must_use]
    #[inline]
    pub fn frame(&mut self, vsync: Uptime, rendered: Uptime) -> Option<FrameWindow<'static>> {
        let took = rendered.micros_since(vsync);
        let budget = self.budget_us;
        let mut shown = vsync.plus(budget);
        if took > budget.saturating_add(JITTER_US) {
            let took_ns = took.saturating_sub(JITTER_US).saturating_mul(1_000);
            shown = vsync.plus(self.budgets_us(took_ns.div_ceil(self.budget_ns.max(1))));
        }
        if vsync > self.shown {
            self.rest(vsync.micros_since(self.shown));
        }
        let from = vsync.max(self.shown);
        let ended = self.end_if_over(from);
        self.totals.drawn = self.totals.drawn.saturating_add(1);
        self.count(took, from, shown.micros_since(from));
        self.shown = self.shown.max(shown);
        ended
    }

    /// Counts a frame of which only the end and the duration are known.
    ///
    /// ```
    /// # use unjank_monitors::{FrameMeter, Scene, Uptime};
    /// # let mut meter = FrameMeter::new(&unjank_protocol::config::Frames::default(), 60, Scene::new("Feed"));
    /// assert!(meter.frame_lasting(40_000, Uptime::from_millis(100)).is_none()); // the window goes on
    /// assert_eq!(meter.flush(Uptime::from_millis(100)).map(|window| window.slow_frames), Some(1));
    /// ```
    #[must_use]
    pub fn frame_lasting(
        &mut self,
        took_us: u64,
        rendered: Uptime,
    ) -> Option<FrameWindow<'static>> {
        self.frame(rendered.minus(took_us), rendered)
    }

    /// Counts a tick of a callback that fires on every refresh while it is registered (`Choreographer.postFrameCallback`,
    /// `CADisplayLink`). Each tick is one frame, and a gap between two ticks is dropped frames. Gaps are rounded to whole
    /// budgets, because ticks jitter. Call [`pause_ticks`](Self::pause_ticks) when the callback is removed.
    ///
    /// ```
    /// # use unjank_monitors::{FrameMeter, Scene, Uptime};
    /// # let mut meter = FrameMeter::new(&unjank_protocol::config::Frames::default(), 60, Scene::new("Feed"));
    /// for at in [0, 16_700, 33_200, 100_100] {
    ///     assert!(meter.tick(Uptime::from_micros(at)).is_none()); // the window goes on
    /// }
    /// let window = meter.flush(Uptime::from_millis(101)).expect("three frames");
    /// assert_eq!((window.frames_drawn, window.frames_dropped), (3, 3));
    /// ```
    #[must_use]
    pub fn tick(&mut self, at: Uptime) -> Option<FrameWindow<'static>> {
        let before = self.last_tick.replace(at)?;
        if at <= before {
            return None;
        }
        let budgets = self.budgets_in(at.micros_since(before)).max(1);
        self.frame(before, before.plus(self.budgets_us(budgets)))
    }

    /// Marks the time until the next tick as idle.
    pub fn pause_ticks(&mut self) {
        self.last_tick = None;
    }

    /// Returns the time of the last tick, unless the ticks are paused.
    #[must_use]
    pub fn last_tick(&self) -> Option<Uptime> {
        self.last_tick
    }

    /// Returns the frames since the meter was created.
    #[must_use]
    pub fn totals(&self) -> FrameTotals {
        self.totals
    }

    /// Ends a window whose time is over although no frame has come since. Call it regularly; otherwise the window ends with the
    /// next frame.
    #[must_use]
    pub fn poll(&mut self, now: Uptime) -> Option<FrameWindow<'static>> {
        self.end_if_over(now)
    }

    /// Ends the open window, however short it is, for example when the app goes to the background or the settings change. Returns
    /// `None` if no frame was drawn.
    #[must_use]
    pub fn flush(&mut self, now: Uptime) -> Option<FrameWindow<'static>> {
        let window = self.window.take()?;
        let planned = window.start.plus(self.window_us);
        let end = planned.min(now).max(self.shown);
        Some(window.finish(end, self.refresh_hz, &self.scene))
    }

    #[inline]
    fn end_if_over(&mut self, now: Uptime) -> Option<FrameWindow<'static>> {
        let window = self.window.as_ref()?;
        if now.micros_since(window.start) < self.window_us {
            return None;
        }
        self.flush(now)
    }

    /// Handles idle time before a frame.
    #[inline]
    fn rest(&mut self, idle_us: u64) {
        if idle_us >= self.leave_drawn.saturating_mul(self.budget_us) {
            self.dropping = false;
            self.drawn_in_a_row = 0;
        }
    }

    /// Counts a frame that took `took` and kept the display active for `active` from `from`.
    #[inline]
    fn count(&mut self, took: u64, from: Uptime, active: u64) {
        let budget = self.budget_us;
        let dropped = self.budgets_in(active).saturating_sub(1);
        let mut jank_us = 0;
        if self.dropping {
            jank_us = active;
        } else if dropped >= self.enter_dropped {
            self.dropping = true;
            jank_us = active.saturating_sub(self.enter_dropped.saturating_mul(budget));
        }
        let run = if dropped == 0 { self.drawn_in_a_row } else { 0 };
        self.drawn_in_a_row = run.saturating_add(1);
        if self.drawn_in_a_row >= self.leave_drawn {
            self.dropping = false;
        }
        let over = took.saturating_sub(budget);
        let over = if over > JITTER_US { over } else { 0 };
        self.totals.add(took, over, (active, dropped));
        let window = self.window.get_or_insert_with(|| Window::new(from));
        window.add(took, over, self.refresh_hz);
        window.add_dropped(dropped, jank_us);
    }

    /// Returns a duration in budgets, rounded to the nearest. Avoids a division in the usual case.
    #[inline]
    fn budgets_in(&self, micros: u64) -> u64 {
        let half = self.budget_us / 2;
        if micros <= self.budget_us.saturating_add(half) {
            return u64::from(micros > half);
        }
        let nanos = micros.saturating_mul(1_000);
        let rounded = nanos.saturating_add(self.budget_ns / 2);
        rounded.checked_div(self.budget_ns).unwrap_or(0)
    }

    /// Returns the duration of a number of budgets, in microseconds.
    #[inline]
    fn budgets_us(&self, budgets: u64) -> u64 {
        budgets.saturating_mul(self.budget_ns) / 1_000
    }
}
