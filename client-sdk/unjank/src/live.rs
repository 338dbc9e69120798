//! Current values of the app, for a view inside the app during development. Nothing here sends anything or writes files.
//!
//! The SDK keeps these values only while a [`Watch`] exists. Without one, the background thread checks one flag for each event,
//! and threads of the app check it for each request that they report with [`crate::traffic()`].
//!
//! ```
//! let watch = unjank::live::watch();
//! // … the app …
//! let live = watch.read();
//! println!("{live}"); // as text
//! if let Some(stall) = &live.stall {
//!     println!("the last stall took {} ms in {:?}", stall.duration_ms, stall.stack.first());
//! }
//! # assert!(!live.collecting);
//! ```
//!
//! Two widgets draw the values:
//! * `show` (feature `egui`) draws a window over an egui app, and another window with the whole stack after each stall.
//! * `Panel` (feature `live-terminal`) is a widget of ratatui.
//!
//! Spans and stalls appear when the background thread passes them to reporters, within a second of their end.

#[cfg(feature = "egui")]
mod overlay;
mod spans;
mod state;
#[cfg(feature = "live-terminal")]
mod terminal;
mod text;
mod tree;

use serde::Serialize;

#[cfg(feature = "egui")]
pub use self::overlay::show;
pub use self::spans::SpanTotal;
pub use self::state::{Watch, watch};
pub(crate) use self::state::{clear, count_request, is_watched, sample, see};
#[cfg(feature = "live-terminal")]
pub use self::terminal::Panel;
pub use self::text::Line;
pub use self::tree::TreeSpan;

/// The values at one time. Counts begin with the oldest [`Watch`] that exists.
///
/// ```
/// let live = unjank::live::watch().read();
/// assert_eq!((live.collecting, live.stalls), (false, 0));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Live {
    /// Whether the SDK runs and collects.
    pub collecting: bool,
    /// The current screen.
    pub page: String,
    /// Frames of the last five seconds.
    pub frames: Frames,
    /// The CPU time of the process since the previous sample, at most a few seconds ago, in percent of one core. `None` if the
    /// system does not report it.
    pub cpu_percent: Option<f64>,
    /// The memory in use, in bytes. `None` if the system does not report it.
    pub memory_bytes: Option<u64>,
    /// The stall that is under way, or else the last one.
    pub stall: Option<Stall>,
    /// The number of stalls that are over.
    pub stalls: u64,
    /// Spans by name, the most hazardous first; at most 256 names. A name that comes later replaces the least hazardous one.
    pub spans: Vec<SpanTotal>,
    /// The last 200 spans: traces in the order they began, each span below its parent.
    pub tree: Vec<TreeSpan>,
    /// Traffic that the app reported.
    pub traffic: Traffic,
}

/// Frames over a few seconds.
///
/// ```
/// let frames = unjank::live::watch().read().frames;
/// assert_eq!((frames.fps, frames.slow), (None, 0)); // no frame was drawn
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Frames {
    /// Frames per second of the time in which frames were wanted. `None` if none was drawn.
    pub fps: Option<f64>,
    /// Drawn frames.
    pub drawn: u64,
    /// Frame budgets without a new frame while one was wanted.
    pub dropped: u64,
    /// Frames that took longer than their budget.
    pub slow: u64,
    /// Frames that took longer than 700 ms.
    pub frozen: u64,
}

/// A stall of the main loop.
///
/// ```
/// fn innermost(stall: &unjank::live::Stall) -> &str {
///     stall.stack.first().unwrap_or(&stall.stack_missing)
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stall {
    /// `jank` or `anr`.
    pub kind: String,
    /// Its duration, or its duration until now, in milliseconds.
    pub duration_ms: i64,
    /// Whether the stall still goes on.
    pub under_way: bool,
    /// The thread that was blocked.
    pub thread: String,
    /// The screen.
    pub page: String,
    /// The whole stack, innermost function first, demangled; at most 128 entries.
    pub stack: Vec<String>,
    /// Why the stack is empty. Empty if there is a stack or the reason is unknown.
    pub stack_missing: String,
}

/// How much a duration harms the user.
///
/// ```
/// use unjank::live::Warning;
///
/// assert!(Warning::Low < Warning::High);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// Nobody notices.
    #[default]
    None,
    /// Drops a frame: from 16 ms on the main thread, or 1 s on another thread.
    Low,
    /// Feels slow: from 100 ms on the main thread, or 5 s on another thread.
    Medium,
    /// The app appears frozen: from 700 ms on the main thread.
    High,
}

impl Warning {
    /// Returns the level of a duration in microseconds.
    ///
    /// ```
    /// use unjank::live::Warning;
    ///
    /// assert_eq!(Warning::of(120_000, true), Warning::Medium);
    /// assert_eq!(Warning::of(120_000, false), Warning::None);
    /// ```
    #[must_use]
    pub fn of(duration_us: i64, on_main_thread: bool) -> Self {
        match (duration_us, on_main_thread) {
            (700_000.., true) => Self::High,
            (100_000.., true) | (5_000_000.., false) => Self::Medium,
            (16_000.., true) | (1_000_000.., false) => Self::Low,
            _ => Self::None,
        }
    }
}

/// Bytes of requests.
///
/// ```
/// let traffic = unjank::live::watch().read().traffic;
/// assert_eq!(traffic.requests, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Traffic {
    /// Sent bytes.
    pub tx_bytes: u64,
    /// Received bytes.
    pub rx_bytes: u64,
    /// Requests.
    pub requests: u64,
    /// Requests without a response.
    pub failed_requests: u64,
}
