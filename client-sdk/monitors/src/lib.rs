//! The state machines of the SDK. They take measurements from the system and return finished events of the protocol.
//!
//! This crate decides when a window ends, what counts as a dropped frame, when a stall needs a stack, and which request belongs
//! to which page. It contains no threads, I/O, clocks, queues, callbacks or platform-specific code.
//!
//! * **Time is a parameter**: [`Uptime`], in microseconds since the app started, on a clock that never goes back. [`WallClock`]
//!   anchors uptime to wall time once. All wall times derive from that anchor, so setting the clock does not stretch
//!   measurements.
//! * **Settings may change at any time** (`set_config`). Values outside the protocol's ranges are clamped.
//! * **The call that finishes an event returns it**, owned and ready to be queued.
//! * **Everything is bounded.** Input beyond a bound is dropped and counted (`take_dropped`). Each bound is documented where it
//!   applies.
//! * Each module documents at its top its formulas, the source of the formulas, and its bounds.
//! * **Nothing panics**: arithmetic saturates, and calls with unknown ids or in an unexpected order do nothing.
//!
//! | module | event | fed by |
//! |---|---|---|
//! | [`frames`]: [`FrameMeter`] | `frame_window` | frames or display ticks of one display, on the UI thread |
//! | [`stalls`]: [`LoopClock`] + [`StallWatch`] | `jank` | the main loop writes the clock, a watchdog thread polls the watch |
//! | [`page_loads`]: [`PageLoads`] | `page_load` | screens, draws and requests |
//! | [`traffic`]: [`TrafficMeter`] | `traffic` | every request of the app |
//! | [`run_log`]: [`RunLog`] | part of `jank` | log lines and screens |
//! | [`app_start`]: [`AppStartTimer`] | `app_start` | the process, its first screen, its first draw |
//! | [`recompositions`]: [`Recompositions`] | `recomposition` | redraws of UI functions |
//! | [`metrics_window`]: [`MetricWindows`] | `metric` | samples of monitors |
//! | [`last_values`]: [`LastValues`] | part of `metric` | all values of metrics |
//!
//! ```
//! use unjank_monitors::{FrameMeter, Scene, Uptime};
//! use unjank_protocol::config::Frames;
//!
//! let mut frames = FrameMeter::new(&Frames::default(), 60, Scene::new("FeedActivity"));
//! // Requested at 1.000 s, delivered 60 ms later: the display showed the previous frame for four refreshes instead of one.
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
pub mod last_values;
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

pub use frames::{FrameMeter, FrameTotals};
pub use last_values::LastValues;
pub use loop_clock::{FinishedMessage, LoopClock};
pub use metrics_window::{MetricWindows, Series};
pub use names::bounded;
pub use page_loads::{PageId, PageLoads, RequestId};
pub use recompositions::Recompositions;
pub use run_log::{LoggedAt, RunLog};
pub use scene::Scene;
pub use stalls::{CaptureRequest, FinishedStall, Samples, StallWatch, Watched};
pub use traffic::{StateError, TrafficMeter, Transfer};
pub use uptime::{Uptime, WallClock};
