//! The fields of each table: their numbers on the wire, which never change, and their kinds. `docs/columnar-batch.md` describes both.
//!
//! A new field gets the next number at the end of its list. Older readers skip it.

use unjank_protocol::{
    AppStart, Code, Dropped, Frame, FrameWindow, Jank, JankSample, JankStrategy, Limits, LogLine,
    Metric, Module, PageLoad, PageRequest, Phase, Recomposition, Resource, SdkHealth as Health,
    Span, SpanEvent, Text, Traffic as TrafficRow,
};
use uuid::Uuid;

use crate::envelope::Envelope;
use crate::fields::rows;
use crate::kinds::{
    Entries, Flat, LastOf, Line, List, Maybe, Parents, Plain, Rate, Shared, SpanIds, Texts, Times,
    TraceIds, Uptime, Uuids,
};

/// Modules of a batch.
const MODULES: usize = unjank_protocol::Batch::MAX_MODULES;
const SPLIT_FROM: usize = unjank_protocol::Batch::MAX_SPLIT_FROM;
/// Marks ids and times that JSON requires: a column that is left out does not stand for zeros.
const REQUIRED: bool = true;

rows! { Head: Envelope<'a> {
    0 batch_id: Uuids<REQUIRED>,
    1 session_id: Uuids,
    2 config_revision: Maybe,
    3 resource: Flat<Resources>,
    4 split_from: List<Parts, SPLIT_FROM>,
    5 modules: List<Modules, MODULES>,
} }

rows! { Resources: Resource<'a> {
    0 app_id: Texts,
    1 app_version: Texts,
    2 build: Plain,
    3 channel: Texts,
    4 mode: Texts,
    5 os_name: Texts,
    6 os_version: Texts,
    7 device_model: Texts,
    8 device_manufacturer: Texts,
    9 device_class: Texts,
    10 refresh_hz: Plain,
    11 locale: Texts,
    12 install_id: Uuids<REQUIRED>,
    13 user_id: Texts,
    14 sdk_name: Texts,
    15 sdk_version: Texts,
} }

rows! { Parts: Uuid = id {
    0 id: Uuids<REQUIRED>,
} }

rows! { Modules: Module<'a> {
    0 name: Texts,
    1 build_id: Texts,
    2 load_address: Maybe,
} }

rows! { Spans: Span<'a> {
    0 trace_id: TraceIds,
    1 span_id: SpanIds,
    2 parent_span_id: Parents,
    3 name: Texts,
    4 kind: Plain,
    5 start: Times<REQUIRED>,
    6 uptime_ms: Uptime,
    7 duration_us: Plain,
    8 thread: Texts,
    9 on_main_thread: Plain,
    10 status: Plain,
    11 page: Texts,
    12 network: Plain,
    13 code: Shared<Codes>,
    14 attributes: Entries<Pairs>,
    15 events: List<SpanEvents>,
    16 sample_rate: Rate,
} }

rows! { keyed Codes: Code<'a> {
    0 class: Texts,
    1 function: Texts,
    2 file: Texts,
    3 line: Plain,
} }

rows! { Pairs: (Text<'a>, Text<'a>) = (key, value) {
    0 key: Texts,
    1 value: Texts,
} }

rows! { SpanEvents: SpanEvent<'a> {
    0 time: Times,
    1 name: Texts,
} }

rows! { FrameWindows: FrameWindow<'a> {
    0 page: Texts,
    1 start: Times<REQUIRED>,
    2 uptime_ms: Uptime,
    3 duration_ms: Plain,
    4 refresh_hz: Plain,
    5 frames_drawn: Plain,
    6 frames_dropped: Plain,
    7 slow_frames: Plain,
    8 frozen_frames: Plain,
    9 longest_drop: Plain,
    10 jank_ms: Plain,
    11 delay_ms: Plain,
    12 network: Plain,
    13 frame_time_hist: Entries<Buckets>,
    14 sample_rate: Rate,
} }

rows! { Buckets: (u32, u32) = (bound, count) {
    0 bound: Plain,
    1 count: Plain,
} }

rows! { Janks: Jank<'a> {
    0 kind: Plain,
    1 page: Texts,
    2 start: Times<REQUIRED>,
    3 uptime_ms: Uptime,
    4 duration_ms: Plain,
    5 ended: Plain,
    6 thread: Texts,
    7 foreground: Plain,
    8 strategy: Flat<Strategies>,
    9 network: Plain,
    10 stack: List<Stack, { Limits::FRAMES }>,
    11 stack_missing: Texts,
    12 samples: List<Samples>,
    13 run_log: LastOf<LogLines>,
    14 sample_rate: Rate,
} }

rows! { Strategies: JankStrategy {
    0 threshold_ms: Plain,
    1 count: Plain,
    2 period_ms: Plain,
} }

rows! { Stack: Frame<'a> = frame {
    0 frame: Shared<Frames>,
} }

rows! { keyed Frames: Frame<'a> {
    0 class: Texts,
    1 module: Texts,
    2 function: Texts,
    3 file: Texts,
    4 line: Line,
    5 native: Plain,
    6 column: Plain,
    7 build_id: Texts,
    8 offset: Maybe,
    9 module_index: Maybe,
    10 address: Maybe,
} }

rows! { Samples: JankSample<'a> {
    0 offset_ms: Plain,
    1 stack: List<Stack, { Limits::FRAMES }>,
} }

rows! { LogLines: LogLine<'a> {
    0 time: Times,
    1 message: Texts,
} }

rows! { Traffic: TrafficRow<'a> {
    0 day: Times<REQUIRED>,
    1 source: Texts,
    2 network: Plain,
    3 tx_bytes: Plain,
    4 rx_bytes: Plain,
    5 requests: Plain,
    6 failed_requests: Plain,
} }

rows! { PageLoads: PageLoad<'a> {
    0 page: Texts,
    1 start: Times<REQUIRED>,
    2 uptime_ms: Uptime,
    3 t1_ms: Maybe,
    4 t2_ms: Maybe,
    5 t3_ms: Maybe,
    6 total_ms: Plain,
    7 launch: Plain,
    8 outcome: Plain,
    9 network: Plain,
    10 requests: List<Requests>,
    11 sample_rate: Rate,
} }

rows! { Requests: PageRequest<'a> {
    0 path: Texts,
    1 offset_ms: Plain,
    2 duration_ms: Plain,
    3 status: Plain,
} }

rows! { Metrics: Metric<'a> {
    0 name: Texts,
    1 time: Times<REQUIRED>,
    2 uptime_ms: Uptime,
    3 value: Plain,
    4 min: Maybe,
    5 max: Maybe,
    6 count: Maybe,
    7 page: Texts,
    8 network: Plain,
    9 attributes: Entries<Pairs>,
    10 sample_rate: Rate,
} }

rows! { AppStarts: AppStart<'a> {
    0 kind: Plain,
    1 start: Times<REQUIRED>,
    2 duration_ms: Plain,
    3 page: Texts,
    4 network: Plain,
    5 phases: List<Phases>,
    6 sample_rate: Rate,
} }

rows! { Phases: Phase<'a> {
    0 name: Texts,
    1 duration_ms: Plain,
} }

rows! { Recompositions: Recomposition<'a> {
    0 function: Texts,
    1 page: Texts,
    2 start: Times<REQUIRED>,
    3 uptime_ms: Uptime,
    4 window_ms: Plain,
    5 count: Plain,
    6 cause: Texts,
    7 network: Plain,
    8 sample_rate: Rate,
} }

rows! { SdkHealth: Health<'a> {
    0 dropped: List<Losses>,
    1 overhead_us: Plain,
    2 queue_bytes: Plain,
    3 upload_bytes: Plain,
} }

rows! { Losses: Dropped<'a> {
    0 signal: Plain,
    1 reason: Texts,
    2 count: Plain,
} }
