//! Stalls of the main loop and the stacks captured during them.

use serde::{Deserialize, Serialize};

use crate::latest::latest;
use crate::lenient::{frames, is_default, items, null_as_default};
use crate::scalar::{is_whole, rate, scalar, scalar_or_default, whole};
use crate::{JankEnd, JankKind, Network, Text, Timestamp};

/// A stall: the main loop was blocked. Contains the stack that was captured meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Jank<'a> {
    /// `jank` or `anr`.
    #[serde(default)]
    pub kind: JankKind,
    /// The screen.
    #[serde(borrow, default)]
    pub page: Text<'a>,
    /// The start of the stall.
    pub start: Timestamp,
    /// The duration in milliseconds: 0 to 24 h.
    #[serde(deserialize_with = "scalar")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400_000))]
    pub duration_ms: i64,
    /// How it ended.
    #[serde(default, skip_serializing_if = "is_finished")]
    pub ended: JankEnd,
    /// The blocked thread.
    #[serde(borrow, default)]
    pub thread: Text<'a>,
    /// Whether the app was in the foreground.
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub foreground: bool,
    /// The rule that matched.
    #[serde(default, deserialize_with = "null_as_default")]
    pub strategy: JankStrategy,
    /// Time since the app started, in milliseconds.
    #[serde(default, deserialize_with = "scalar_or_default")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4_398_046_511_104i64))]
    pub uptime_ms: u64,
    /// The network.
    #[serde(default)]
    pub network: Network,
    /// The stack of the blocked thread, innermost frame first; at most 128 frames.
    #[serde(borrow, default, deserialize_with = "frames")]
    pub stack: Vec<Frame<'a>>,
    /// Why `stack` is empty, as a sentence without an initial capital; empty if there is a stack or the reason is unknown.
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    pub stack_missing: Text<'a>,
    /// More stacks of the same stall, at most 64.
    #[serde(
        borrow,
        default,
        deserialize_with = "items",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub samples: Vec<JankSample<'a>>,
    /// The last log lines and screens before the stall, oldest first; at most 64. Of more, the last 64 are kept. They are read from JSON
    /// text only: use `serde_json::from_str` or `from_slice`, not a `serde_json::Value`.
    #[serde(
        borrow,
        default,
        deserialize_with = "latest",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub run_log: Vec<LogLine<'a>>,
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_finished(end: &JankEnd) -> bool {
    *end == JankEnd::Finished
}

/// A rule: `count` stalls of at least `threshold_ms` within a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JankStrategy {
    /// The minimum duration of a stall, in milliseconds.
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub threshold_ms: u32,
    /// How many such stalls the period must have.
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub count: u32,
    /// The period, in milliseconds; 0 for a single stall.
    #[serde(default, deserialize_with = "scalar_or_default")]
    pub period_ms: u32,
}

/// Another stack of a stall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JankSample<'a> {
    /// The time since the start of the stall, in milliseconds.
    #[serde(deserialize_with = "scalar")]
    pub offset_ms: u32,
    /// The stack at that time, innermost frame first; at most 128 frames.
    #[serde(borrow, default, deserialize_with = "frames")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub stack: Vec<Frame<'a>>,
}

/// A line of the run log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogLine<'a> {
    /// The time.
    pub time: Timestamp,
    /// The line, or the name of a screen.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub message: Text<'a>,
}

/// One frame of a stack. Every field may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Frame<'a> {
    /// The fully qualified class; empty in languages without classes.
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    pub class: Text<'a>,
    /// The library, image or package.
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    pub module: Text<'a>,
    /// The function.
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    pub function: Text<'a>,
    /// The source file.
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    pub file: Text<'a>,
    /// The line, from 1; 0 or less if unknown (the JVM reports -2 for native methods).
    #[serde(
        default,
        deserialize_with = "scalar_or_default",
        skip_serializing_if = "is_unknown"
    )]
    pub line: i64,
    /// Whether the frame is native code called from a managed language. Not stored: two stacks that differ only in this are two stacks.
    #[serde(
        default,
        deserialize_with = "scalar_or_default",
        skip_serializing_if = "is_default"
    )]
    pub native: bool,
    /// The column, from 1; 0 if unknown. For Hermes bytecode, the line is 1 and the column is the offset of the bytecode plus 1.
    #[serde(
        default,
        deserialize_with = "scalar_or_default",
        skip_serializing_if = "is_default"
    )]
    pub column: u32,
    /// The id of the build, for symbolication: hexadecimal, see [`Module::build_id`](crate::Module::build_id).
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    pub build_id: Text<'a>,
    /// The offset of the instruction in the image, in bytes. For a caller, one byte before the return address.
    #[serde(
        default,
        deserialize_with = "scalar",
        skip_serializing_if = "Option::is_none"
    )]
    pub offset: Option<u64>,
    /// The module in the batch's list [`modules`](crate::Batch::modules), from 0. It provides `module` and `build_id` if these are empty. An
    /// event that names a missing module is rejected (`unknown_module`).
    #[serde(
        default,
        deserialize_with = "scalar",
        skip_serializing_if = "Option::is_none"
    )]
    pub module_index: Option<u32>,
    /// The address of the instruction in the process, in bytes. Used if `offset` is missing: the offset is `address` minus the
    /// module's `load_address`.
    #[serde(
        default,
        deserialize_with = "scalar",
        skip_serializing_if = "Option::is_none"
    )]
    pub address: Option<u64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_unknown(line: &i64) -> bool {
    *line <= 0
}
