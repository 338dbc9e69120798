//! The events: one type per signal, with the unit, range and formula of each field.

use serde::{Deserialize, Serialize};

use crate::lenient::{is_default, items, null_as_default, parent};
use crate::scalar::{is_whole, rate, scalar, scalar_or_default, whole};
use crate::{
    AppStartKind, Attributes, Day, Histogram, LaunchKind, Network, PageOutcome, SpanId, SpanKind,
    SpanStatus, Text, Timestamp, TraceId,
};

/// The duration of an operation or a function call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Span<'a> {
    /// The trace to which the span belongs.
    pub trace_id: TraceId,
    /// The id of the span, unique within its trace.
    pub span_id: SpanId,
    /// The id of the enclosing span. The root has none.
    #[serde(
        default,
        deserialize_with = "parent",
        skip_serializing_if = "is_default"
    )]
    pub parent_span_id: Option<SpanId>,
    /// The name of the operation, or the fully qualified class and signature of a method.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub name: Text<'a>,
    /// The kind of work.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: SpanKind,
    /// The start.
    pub start: Timestamp,
    /// The duration in microseconds: 0 to 24 h.
    #[serde(deserialize_with = "scalar")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400_000_000i64))]
    pub duration_us: i64,
    /// The thread on which the span began.
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    pub thread: Text<'a>,
    /// Whether it began on the main thread.
    #[serde(
        default,
        deserialize_with = "scalar_or_default",
        skip_serializing_if = "is_default"
    )]
    pub on_main_thread: bool,
    /// The outcome.
    #[serde(default, skip_serializing_if = "is_default")]
    pub status: SpanStatus,
    /// The screen at the start.
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    pub page: Text<'a>,
    /// The network at the start.
    #[serde(default, skip_serializing_if = "is_default")]
    pub network: Network,
    /// Time since the app started, in milliseconds.
    #[serde(
        default,
        deserialize_with = "scalar_or_default",
        skip_serializing_if = "is_default"
    )]
    #[cfg_attr(feature = "openapi", schema(maximum = 4_398_046_511_104i64))]
    pub uptime_ms: u64,
    /// The location in the source code.
    #[serde(
        borrow,
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "is_default"
    )]
    pub code: Code<'a>,
    /// Attributes of the app, at most 64.
    #[serde(
        borrow,
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "is_default"
    )]
    pub attributes: Attributes<'a>,
    /// Log entries during the span, at most 64.
    #[serde(
        borrow,
        default,
        deserialize_with = "items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub events: Vec<SpanEvent<'a>>,
    /// The sample rate: 1e-9 to 1. Counts are weighted by its inverse.
    #[serde(
        default = "whole",
        deserialize_with = "rate",
        skip_serializing_if = "is_whole"
    )]
    #[cfg_attr(
        feature = "openapi",
        schema(minimum = 1e-9, maximum = 1, default = 1.0)
    )]
    pub sample_rate: f64,
}

/// A location in the source code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Code<'a> {
    /// The fully qualified class or module.
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    pub class: Text<'a>,
    /// The function, with its signature in languages with overloading.
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    pub function: Text<'a>,
    /// The source file. In an obfuscated app `r8-map-id-` and the id of the mapping, as R8 writes it, so that the function becomes readable.
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    pub file: Text<'a>,
    /// The line, from 1; 0 if unknown.
    #[serde(
        default,
        deserialize_with = "scalar_or_default",
        skip_serializing_if = "is_default"
    )]
    pub line: u32,
}

/// A log entry of a span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SpanEvent<'a> {
    /// The time.
    pub time: Timestamp,
    /// The text.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub name: Text<'a>,
}

/// Frames over a short period on one page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FrameWindow<'a> {
    /// The screen.
    #[serde(borrow, default)]
    pub page: Text<'a>,
    /// The start of the window.
    pub start: Timestamp,
    /// The length of the window in milliseconds: 0 to 24 h.
    #[serde(deserialize_with = "scalar")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400_000))]
    pub duration_ms: i64,
    /// The refresh rate in hertz; 0 means the rate of the resource. The budget of a frame is 1000 / `refresh_hz` ms.
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub refresh_hz: u16,
    /// The number of drawn frames.
    #[serde(deserialize_with = "scalar")]
    pub frames_drawn: u32,
    /// The number of whole frame budgets that passed without a frame, between drawn frames.
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub frames_dropped: u32,
    /// The number of frames that took longer than their budget (16 ms at 60 Hz).
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub slow_frames: u32,
    /// The number of frames that took longer than 700 ms.
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub frozen_frames: u32,
    /// The largest number of frames dropped in a row.
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub longest_drop: u32,
    /// The time during which frames were dropped, in milliseconds.
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub jank_ms: u32,
    /// The sum of the time by which frames exceeded their budget, in milliseconds.
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub delay_ms: u32,
    /// Time since the app started, in milliseconds.
    #[serde(default, deserialize_with = "scalar_or_default")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4_398_046_511_104i64))]
    pub uptime_ms: u64,
    /// The network.
    #[serde(default)]
    pub network: Network,
    /// The number of frames by duration: the key is the lower bound of a logarithmic bucket in milliseconds.
    #[serde(default, deserialize_with = "null_as_default")]
    pub frame_time_hist: Histogram,
    /// The sample rate: 1e-9 to 1.
    #[serde(
        default = "whole",
        deserialize_with = "rate",
        skip_serializing_if = "is_whole"
    )]
    #[cfg_attr(
        feature = "openapi",
        schema(minimum = 1e-9, maximum = 1, default = 1.0)
    )]
    pub sample_rate: f64,
}

/// The bytes of one day on the device's calendar, by source and network. Rows of the same day add up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Traffic<'a> {
    /// The day on the device's calendar.
    pub day: Day,
    /// The source: `web`, `other`, or a name from the configuration such as `api`.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub source: Text<'a>,
    /// The network.
    #[serde(default)]
    pub network: Network,
    /// Bytes sent.
    #[serde(default, deserialize_with = "scalar_or_default")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4_398_046_511_104i64))]
    pub tx_bytes: u64,
    /// Bytes received.
    #[serde(default, deserialize_with = "scalar_or_default")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4_398_046_511_104i64))]
    pub rx_bytes: u64,
    /// The number of requests.
    #[serde(default, deserialize_with = "scalar_or_default")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4_398_046_511_104i64))]
    pub requests: u64,
    /// The number of requests without a response.
    #[serde(default, deserialize_with = "scalar_or_default")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4_398_046_511_104i64))]
    pub failed_requests: u64,
}

/// The load of a page, in three parts that overlap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PageLoad<'a> {
    /// The screen.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub page: Text<'a>,
    /// When the page was initialized.
    pub start: Timestamp,
    /// T1: from the initialization to the first visible element, in milliseconds.
    #[serde(default, deserialize_with = "scalar")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400_000))]
    pub t1_ms: Option<i64>,
    /// T2: from the start of the first request to the end of the last one, in milliseconds.
    #[serde(default, deserialize_with = "scalar")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400_000))]
    pub t2_ms: Option<i64>,
    /// T3: from the arrival of the data to the final draw, in milliseconds.
    #[serde(default, deserialize_with = "scalar")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400_000))]
    pub t3_ms: Option<i64>,
    /// From the initialization to the final draw, in milliseconds: 0 to 24 h. Not the sum of the parts, because they overlap.
    #[serde(deserialize_with = "scalar")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400_000))]
    pub total_ms: i64,
    /// Whether the page was loaded for the first time in this process.
    #[serde(default)]
    pub launch: LaunchKind,
    /// The outcome.
    #[serde(default)]
    pub outcome: PageOutcome,
    /// The network.
    #[serde(default)]
    pub network: Network,
    /// Time since the app started, in milliseconds.
    #[serde(default, deserialize_with = "scalar_or_default")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4_398_046_511_104i64))]
    pub uptime_ms: u64,
    /// The requests of the page, at most 64.
    #[serde(
        borrow,
        default,
        deserialize_with = "items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub requests: Vec<PageRequest<'a>>,
    /// The sample rate: 1e-9 to 1.
    #[serde(
        default = "whole",
        deserialize_with = "rate",
        skip_serializing_if = "is_whole"
    )]
    #[cfg_attr(
        feature = "openapi",
        schema(minimum = 1e-9, maximum = 1, default = 1.0)
    )]
    pub sample_rate: f64,
}

/// A request that a page waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PageRequest<'a> {
    /// The path, without host and query.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub path: Text<'a>,
    /// The start relative to the start of the page, in milliseconds. Negative if the request began earlier.
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub offset_ms: i32,
    /// The duration in milliseconds.
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub duration_ms: u32,
    /// The HTTP status; 0 without a response.
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub status: u16,
}

/// A value of a monitor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Metric<'a> {
    /// The name of the metric with its unit, such as `memory_used_bytes`.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub name: Text<'a>,
    /// The time.
    pub time: Timestamp,
    /// The value, or the mean of several values. Must be finite.
    #[serde(deserialize_with = "scalar")]
    #[cfg_attr(feature = "openapi", schema(minimum = -1e240, maximum = 1e240))]
    pub value: f64,
    /// The minimum of several values, not above `max`.
    #[serde(
        default,
        deserialize_with = "scalar",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(minimum = -1e240, maximum = 1e240))]
    pub min: Option<f64>,
    /// The maximum of several values.
    #[serde(
        default,
        deserialize_with = "scalar",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(minimum = -1e240, maximum = 1e240))]
    pub max: Option<f64>,
    /// The number of values, if there are several.
    #[serde(
        default,
        deserialize_with = "scalar",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(
        feature = "openapi",
        schema(minimum = 1, maximum = 4_398_046_511_104i64)
    )]
    pub count: Option<u64>,
    /// The screen.
    #[serde(borrow, default)]
    pub page: Text<'a>,
    /// Time since the app started, in milliseconds.
    #[serde(default, deserialize_with = "scalar_or_default")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4_398_046_511_104i64))]
    pub uptime_ms: u64,
    /// The network.
    #[serde(default)]
    pub network: Network,
    /// Attributes of the app, at most 64.
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    pub attributes: Attributes<'a>,
    /// The sample rate: 1e-9 to 1.
    #[serde(
        default = "whole",
        deserialize_with = "rate",
        skip_serializing_if = "is_whole"
    )]
    #[cfg_attr(
        feature = "openapi",
        schema(minimum = 1e-9, maximum = 1, default = 1.0)
    )]
    pub sample_rate: f64,
}

/// A start of the app.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AppStart<'a> {
    /// `cold`, `warm` or `hot`.
    #[serde(default)]
    pub kind: AppStartKind,
    /// The time.
    pub start: Timestamp,
    /// The duration in milliseconds: 0 to 24 h.
    #[serde(deserialize_with = "scalar")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400_000))]
    pub duration_ms: i64,
    /// The screen at the end of the start.
    #[serde(borrow, default)]
    pub page: Text<'a>,
    /// The network.
    #[serde(default)]
    pub network: Network,
    /// The phases, at most 64.
    #[serde(borrow, default, deserialize_with = "items")]
    pub phases: Vec<Phase<'a>>,
    /// The sample rate: 1e-9 to 1.
    #[serde(
        default = "whole",
        deserialize_with = "rate",
        skip_serializing_if = "is_whole"
    )]
    #[cfg_attr(
        feature = "openapi",
        schema(minimum = 1e-9, maximum = 1, default = 1.0)
    )]
    pub sample_rate: f64,
}

/// A phase of a start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Phase<'a> {
    /// The name of the phase.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub name: Text<'a>,
    /// The duration in milliseconds.
    #[serde(deserialize_with = "scalar")]
    pub duration_ms: u32,
}

/// The redraws of a UI function in a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Recomposition<'a> {
    /// The function.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub function: Text<'a>,
    /// The screen.
    #[serde(borrow, default)]
    pub page: Text<'a>,
    /// The start of the window.
    pub start: Timestamp,
    /// The length of the window in milliseconds: 0 to 24 h.
    #[serde(default, deserialize_with = "scalar_or_default")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400_000))]
    pub window_ms: i64,
    /// The number of redraws.
    #[serde(deserialize_with = "scalar")]
    pub count: u32,
    /// The state whose change caused the redraws.
    #[serde(borrow, default)]
    pub cause: Text<'a>,
    /// Time since the app started, in milliseconds.
    #[serde(default, deserialize_with = "scalar_or_default")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4_398_046_511_104i64))]
    pub uptime_ms: u64,
    /// The network.
    #[serde(default)]
    pub network: Network,
    /// The sample rate: 1e-9 to 1.
    #[serde(
        default = "whole",
        deserialize_with = "rate",
        skip_serializing_if = "is_whole"
    )]
    #[cfg_attr(
        feature = "openapi",
        schema(minimum = 1e-9, maximum = 1, default = 1.0)
    )]
    pub sample_rate: f64,
}
