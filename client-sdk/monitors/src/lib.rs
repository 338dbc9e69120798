//! The state machines of the SDK: what the system tells goes in, finished events of the protocol come out.
//!
//! What lives here: when a window ends, what a dropped frame is, when a stall is worth a stack, which request belongs to
//! which page. What may not: threads, I/O, clocks, queues, callbacks, anything of one platform.
//!
//! * **Time is a parameter**: [`Uptime`], microseconds since the app started on a clock that never goes back. Wall time
//!   is told once by [`WallClock`] and derived from there, so that a moved clock does not stretch what is measured.
//! * **Settings may change at any moment** (`set_config`). Values outside the ranges of the protocol are clamped.
//! * **Events are handed back** from the call that finished them, owned, ready to be queued.
//! * **Everything is bounded.** What finds no room is dropped and counted (`take_dropped`), and each bound is documented
//!   where it holds.
//! * The formulas, the model behind them and the bounds stand at the top of each module.
//! * **Nothing panics**: arithmetic saturates, calls with unknown ids or in an odd order do nothing.
//!
//! | module | event | fed by |
//! |---|---|---|
//! | [`frames`]: [`FrameMeter`] | `frame_window` | frames or display ticks of one display, on the UI thread |
//! | [`stalls`]: [`LoopClock`] + [`StallWatch`] | `jank` | the main loop writes the clock, a watchdog thread asks the watch |
//! | [`page_loads`]: [`PageLoads`] | `page_load` | screens, draws and requests |
//! | [`traffic`]: [`TrafficMeter`] | `traffic` | every request of the app |
//! | [`run_log`]: [`RunLog`] | part of `jank` | log lines and screens |
//! | [`app_start`]: [`AppStartTimer`] | `app_start` | the process, its first screen, its first draw |
//! | [`recompositions`]: [`Recompositions`] | `recomposition` | redraws of UI functions |
//! | [`metrics_window`]: [`MetricWindows`] | `metric` | samples of monitors |
//!
//! ```
//! use unjank_monitors::{FrameMeter, Scene, Uptime};
//! use unjank_protocol::config::Frames;
//!
//! let mut frames = FrameMeter::new(&Frames::default(), 60, Scene::new("FeedActivity"));
//! // Wanted at 1.000 s, handed over 60 ms later: the display showed the frame before it four times instead of once.
//! let open = frames.frame(Uptime::from_millis(1_000), Uptime::from_millis(1_060));
//! assert!(open.is_none());
//! let window = frames.flush(Uptime::from_millis(2_000)).expect("a frame was drawn");
//! assert_eq!((window.frames_drawn, window.frames_dropped), (1, 3));
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::expect_used,
        clippy::unwrap_used
    )
)]

pub mod app_start;
pub mod frames;
pub mod loop_clock;
pub mod metrics_window;
mod names;
pub mod page_loads;
pub mod recompositions;
pub mod run_log;
pub mod scene;
pub mod stalls;
pub mod traffic;
pub mod uptime;

pub use app_start::{AppStartTimer, start_kind};
pub use frames::FrameMeter;
pub use loop_clock::{FinishedMessage, LoopClock};
pub use metrics_window::MetricWindows;
pub use names::bounded;
pub use page_loads::{PageId, PageLoads, RequestId};
pub use recompositions::Recompositions;
pub use run_log::RunLog;
pub use scene::Scene;
pub use stalls::{CaptureRequest, FinishedStall, Samples, StallWatch, Watched};
pub use traffic::{StateError, TrafficMeter, Transfer};
pub use uptime::{Uptime, WallClock};
