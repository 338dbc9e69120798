//! The events, a type for each signal, with units, ranges and formulas at each field.

use serde::{Deserialize, Serialize};

use crate::lenient::{items, null_as_default};
use crate::{
    AppStartKind, Attributes, Day, Histogram, LaunchKind, Network, PageOutcome, Signal, SpanId,
    SpanKind, SpanStatus, Text, Timestamp, TraceId,
};

pub(crate) fn whole() -> f64 {
    1.0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
pub(crate) fn is_whole(rate: &f64) -> bool {
    (*rate - 1.0).abs() < f64::EPSILON
}

/// The time between two marks in the code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Span<'a> {
    /// The tree of spans this one belongs to.
    pub trace_id: TraceId,
    /// This span, within its trace.
    pub span_id: SpanId,
    /// The span this one ran inside; none for the root.
    #[serde(default)]
    pub parent_span_id: Option<SpanId>,
    /// What ran: the operation, or the fully qualified class and signature of a method.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// What the span stands for.
    #[serde(default)]
    pub kind: SpanKind,
    /// When it began.
    pub start: Timestamp,
    /// How long it took, in microseconds: 0 to 24 h.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400_000_000i64))]
    pub duration_us: i64,
    /// The thread it began on.
    #[serde(borrow, default)]
    pub thread: Text<'a>,
    /// Whether that was the main thread.
    #[serde(default, deserialize_with = "null_as_default")]
    pub on_main_thread: bool,
    /// How it ended.
    #[serde(default)]
    pub status: SpanStatus,
    /// The screen it ran on.
    #[serde(borrow, default)]
    pub page: Text<'a>,
    /// The network at its start.
    #[serde(default)]
    pub network: Network,
    /// Time since the app started, in milliseconds.
    #[serde(default, deserialize_with = "null_as_default")]
    pub uptime_ms: u64,
    /// Where in the source.
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    pub code: Code<'a>,
    /// Free attributes, at most 64.
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    pub attributes: Attributes<'a>,
    /// Timestamped logs inside the span, at most 64.
    #[serde(
        borrow,
        default,
        deserialize_with = "items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub events: Vec<SpanEvent<'a>>,
    /// The share of such spans that is sent: above 0, at most 1. Counts are weighted by its inverse.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 1))]
    pub sample_rate: f64,
}

/// Where in the source a span was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Code<'a> {
    /// Fully qualified class or module.
    #[serde(borrow, default)]
    pub class: Text<'a>,
    /// The function, with its signature where the language overloads.
    #[serde(borrow, default)]
    pub function: Text<'a>,
    /// The source file.
    #[serde(borrow, default)]
    pub file: Text<'a>,
    /// The line, from 1; 0 when not known.
    #[serde(default, deserialize_with = "null_as_default")]
    pub line: u32,
}

/// A timestamped log inside a span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SpanEvent<'a> {
    /// When.
    pub time: Timestamp,
    /// What.
    #[serde(borrow)]
    pub name: Text<'a>,
}

/// Frames over a short period on one page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FrameWindow<'a> {
    /// The screen.
    #[serde(borrow, default)]
    pub page: Text<'a>,
    /// When the window began.
    pub start: Timestamp,
    /// How long it is, in milliseconds: 0 to 24 h.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400_000))]
    pub duration_ms: i64,
    /// The refresh rate in the window; 0 takes the resource's. A frame's budget is 1000 / `refresh_hz` ms.
    #[serde(default, deserialize_with = "null_as_default")]
    pub refresh_hz: u16,
    /// Frames drawn.
    pub frames_drawn: u32,
    /// Whole budgets skipped between two drawn frames.
    #[serde(default, deserialize_with = "null_as_default")]
    pub frames_dropped: u32,
    /// Frames over their budget (over 16 ms at 60 Hz).
    #[serde(default, deserialize_with = "null_as_default")]
    pub slow_frames: u32,
    /// Frames over 700 ms.
    #[serde(default, deserialize_with = "null_as_default")]
    pub frozen_frames: u32,
    /// Frames of the longest run dropped at once.
    #[serde(default, deserialize_with = "null_as_default")]
    pub longest_drop: u32,
    /// Time in the dropping state, in milliseconds.
    #[serde(default, deserialize_with = "null_as_default")]
    pub jank_ms: u32,
    /// Frame time over budget, summed, in milliseconds.
    #[serde(default, deserialize_with = "null_as_default")]
    pub delay_ms: u32,
    /// Time since the app started, in milliseconds.
    #[serde(default, deserialize_with = "null_as_default")]
    pub uptime_ms: u64,
    /// The network.
    #[serde(default)]
    pub network: Network,
    /// Frames by duration: lower bound of a logarithmic bucket in milliseconds → frames.
    #[serde(default, deserialize_with = "null_as_default")]
    pub frame_time_hist: Histogram,
    /// The share of such windows that is sent.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 1))]
    pub sample_rate: f64,
}

/// Bytes of one local natural day, by source and network. Rows of one day add up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Traffic<'a> {
    /// The device's own natural day.
    pub day: Day,
    /// `api`, `web`, `cdn`, or a name of the team's own.
    #[serde(borrow)]
    pub source: Text<'a>,
    /// The network.
    #[serde(default)]
    pub network: Network,
    /// Bytes sent.
    #[serde(default, deserialize_with = "null_as_default")]
    pub tx_bytes: u64,
    /// Bytes received.
    #[serde(default, deserialize_with = "null_as_default")]
    pub rx_bytes: u64,
    /// Requests made.
    #[serde(default, deserialize_with = "null_as_default")]
    pub requests: u64,
    /// Requests sent and never answered.
    #[serde(default, deserialize_with = "null_as_default")]
    pub failed_requests: u64,
}

/// How long a page took, in three parts that overlap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PageLoad<'a> {
    /// The screen.
    #[serde(borrow)]
    pub page: Text<'a>,
    /// When the page was initialised.
    pub start: Timestamp,
    /// T1: initialised → first element shown, in milliseconds.
    #[serde(default)]
    pub t1_ms: Option<i64>,
    /// T2: first request begun → last ended, in milliseconds.
    #[serde(default)]
    pub t2_ms: Option<i64>,
    /// T3: data arrived → final draw, in milliseconds.
    #[serde(default)]
    pub t3_ms: Option<i64>,
    /// Initialised → final draw, in milliseconds: 0 to 24 h. Not the sum of the parts.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400_000))]
    pub total_ms: i64,
    /// First time in this process, or again.
    #[serde(default)]
    pub launch: LaunchKind,
    /// How it ended.
    #[serde(default)]
    pub outcome: PageOutcome,
    /// The network.
    #[serde(default)]
    pub network: Network,
    /// Time since the app started, in milliseconds.
    #[serde(default, deserialize_with = "null_as_default")]
    pub uptime_ms: u64,
    /// The page's requests, at most 64.
    #[serde(
        borrow,
        default,
        deserialize_with = "items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub requests: Vec<PageRequest<'a>>,
    /// The share of such page loads that is sent.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 1))]
    pub sample_rate: f64,
}

/// A request a page waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PageRequest<'a> {
    /// The path, without host and query.
    #[serde(borrow)]
    pub path: Text<'a>,
    /// From the page's start, in milliseconds; negative when it began before.
    #[serde(default, deserialize_with = "null_as_default")]
    pub offset_ms: i32,
    /// How long it took, in milliseconds.
    #[serde(default, deserialize_with = "null_as_default")]
    pub duration_ms: u32,
    /// HTTP status; 0 when never answered.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: u16,
}

/// A sample from a monitor. Means something only with its page and uptime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Metric<'a> {
    /// What was measured, with its unit: `memory_used_bytes`.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// When.
    pub time: Timestamp,
    /// The value, or the mean when pre-aggregated; finite.
    pub value: f64,
    /// Least value, when pre-aggregated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Greatest value, when pre-aggregated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Number of values, when pre-aggregated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The screen.
    #[serde(borrow, default)]
    pub page: Text<'a>,
    /// Time since the app started, in milliseconds.
    #[serde(default, deserialize_with = "null_as_default")]
    pub uptime_ms: u64,
    /// The network.
    #[serde(default)]
    pub network: Network,
    /// Free attributes, at most 64.
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    pub attributes: Attributes<'a>,
    /// The share of such samples that is sent.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 1))]
    pub sample_rate: f64,
}

/// How long the app took to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AppStart<'a> {
    /// `cold`, `warm` or `hot`.
    #[serde(default)]
    pub kind: AppStartKind,
    /// When.
    pub start: Timestamp,
    /// How long it took, in milliseconds: 0 to 24 h.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400_000))]
    pub duration_ms: i64,
    /// The screen it ended on.
    #[serde(borrow, default)]
    pub page: Text<'a>,
    /// The network.
    #[serde(default)]
    pub network: Network,
    /// Its parts, at most 64.
    #[serde(borrow, default, deserialize_with = "items")]
    pub phases: Vec<Phase<'a>>,
}

/// A part of a start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Phase<'a> {
    /// What.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// How long, in milliseconds.
    pub duration_ms: u32,
}

/// A UI function redrawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Recomposition<'a> {
    /// The function.
    #[serde(borrow)]
    pub function: Text<'a>,
    /// The screen.
    #[serde(borrow, default)]
    pub page: Text<'a>,
    /// When the window began.
    pub start: Timestamp,
    /// How long the window is, in milliseconds: 0 to 24 h.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400_000))]
    pub window_ms: i64,
    /// How often it was redrawn.
    pub count: u32,
    /// The state that changed.
    #[serde(borrow, default)]
    pub cause: Text<'a>,
    /// Time since the app started, in milliseconds.
    #[serde(default, deserialize_with = "null_as_default")]
    pub uptime_ms: u64,
    /// The network.
    #[serde(default)]
    pub network: Network,
    /// The share of such windows that is sent.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 1))]
    pub sample_rate: f64,
}

/// What the SDK itself cost and lost since its last report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SdkHealth<'a> {
    /// Events dropped on the device, at most 64 entries.
    #[serde(borrow, default, deserialize_with = "items")]
    pub dropped: Vec<Dropped<'a>>,
    /// CPU time the SDK used, in microseconds.
    #[serde(default, deserialize_with = "null_as_default")]
    pub overhead_us: u64,
    /// Bytes waiting on the device.
    #[serde(default, deserialize_with = "null_as_default")]
    pub queue_bytes: u64,
    /// Bytes uploaded.
    #[serde(default, deserialize_with = "null_as_default")]
    pub upload_bytes: u64,
}

/// Events of one signal dropped on the device for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Dropped<'a> {
    /// What.
    #[serde(default)]
    pub signal: Signal,
    /// Why: `queue_full`, `rate_limited`, `refused`, ….
    #[serde(borrow, default)]
    pub reason: Text<'a>,
    /// How many.
    pub count: u64,
}
