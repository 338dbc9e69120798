//! The answer with the timeline of a session.

use std::collections::BTreeSet;

use serde::Serialize;
use unjank_protocol::Timestamp;
use utoipa::ToSchema;

use super::SessionBody;
use crate::query::Timeline;
use crate::store::reads::{
    SessionFrames, SessionJank, SessionPageLoad, SessionPoint, SessionRedraws, SessionSpan,
    SessionStart,
};

/// Maximum number of log lines: the latest ones.
const MOST_LINES: usize = 2_000;

/// The events of one session. The lists of events are not sorted by time.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionTimeline)]
pub(crate) struct TimelineBody {
    session: SessionBody,
    /// The period that was searched. The session may have more events outside it.
    #[schema(value_type = String, format = DateTime)]
    searched_from: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    searched_to: Timestamp,
    /// The period of the returned events.
    #[schema(value_type = String, format = DateTime)]
    from: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    to: Timestamp,
    page_loads: Vec<PageLoadBody>,
    frame_windows: Vec<FramesBody>,
    janks: Vec<JankBody>,
    /// Spans that do not describe requests.
    spans: Vec<SpanBody>,
    requests: Vec<RequestBody>,
    app_starts: Vec<StartBody>,
    recompositions: Vec<RedrawsBody>,
    metrics: Vec<MetricBody>,
    /// The log lines that the device kept before janks, and the events of spans. Sorted by time.
    log: Vec<LineBody>,
    left_out: LeftOut,
}

/// The numbers of events in the period that are not in the answer.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionEventsLeftOut)]
struct LeftOut {
    page_loads: u64,
    frame_windows: u64,
    janks: u64,
    spans: u64,
    requests: u64,
    app_starts: u64,
    recompositions: u64,
    /// Samples of metrics that are not in the answer.
    metrics: u64,
    /// Log lines. Lines of janks and spans that are themselves left out are not counted.
    log: u64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionPageLoad)]
struct PageLoadBody {
    #[schema(value_type = String, format = DateTime)]
    start: Timestamp,
    page: String,
    t1_ms: Option<u32>,
    t2_ms: Option<u32>,
    t3_ms: Option<u32>,
    total_ms: u32,
    launch: String,
    outcome: String,
    network: String,
    requests: Vec<PageRequestBody>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionPageRequest)]
struct PageRequestBody {
    path: String,
    /// Since the start of the page load.
    offset_ms: i32,
    duration_ms: u32,
    /// 0 without a response.
    status: u16,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionFrameWindow)]
struct FramesBody {
    #[schema(value_type = String, format = DateTime)]
    start: Timestamp,
    duration_ms: u32,
    page: String,
    refresh_hz: u16,
    frames_drawn: u32,
    frames_dropped: u32,
    slow_frames: u32,
    frozen_frames: u32,
    longest_drop: u32,
    jank_ms: u32,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionJank)]
struct JankBody {
    #[schema(value_type = String, format = DateTime)]
    start: Timestamp,
    duration_ms: u32,
    kind: String,
    page: String,
    ended: String,
    /// Missing while the stack has no class.
    #[serde(skip_serializing_if = "Option::is_none")]
    group_id: Option<String>,
    title: String,
    category: String,
    culprit: String,
    stack_hash: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionSpan)]
struct SpanBody {
    trace_id: String,
    span_id: String,
    name: String,
    kind: String,
    #[schema(value_type = String, format = DateTime)]
    start: Timestamp,
    duration_us: u64,
    thread: String,
    on_main_thread: bool,
    status: String,
    page: String,
}

/// A span that describes a request.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionRequest)]
struct RequestBody {
    #[serde(flatten)]
    span: SpanBody,
    method: String,
    host: String,
    path: String,
    http_status: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionAppStart)]
struct StartBody {
    #[schema(value_type = String, format = DateTime)]
    start: Timestamp,
    duration_ms: u32,
    kind: String,
    page: String,
    phases: Vec<PhaseBody>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionStartPhase)]
pub(crate) struct PhaseBody {
    name: String,
    duration_ms: u32,
}

impl PhaseBody {
    pub(crate) fn list(names: Vec<String>, durations_ms: Vec<u32>) -> Vec<Self> {
        let phases = names.into_iter().zip(durations_ms);
        phases
            .map(|(name, duration_ms)| Self { name, duration_ms })
            .collect()
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionRecomposition)]
struct RedrawsBody {
    #[schema(value_type = String, format = DateTime)]
    start: Timestamp,
    window_ms: u32,
    function: String,
    page: String,
    count: u32,
    cause: String,
}

/// A metric over time, in at most 301 steps.
#[derive(Serialize, ToSchema)]
#[schema(as = SessionMetric)]
struct MetricBody {
    name: String,
    points: Vec<PointBody>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionMetricPoint)]
struct PointBody {
    #[schema(value_type = String, format = DateTime)]
    time: Timestamp,
    /// The mean of the step.
    value: f64,
    min: f64,
    max: f64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionLogLine)]
struct LineBody {
    #[schema(value_type = String, format = DateTime)]
    time: Timestamp,
    message: String,
    /// `jank`: kept by the device before a jank. `span`: an event of a span.
    source: &'static str,
}

impl From<Timeline> for TimelineBody {
    fn from(found: Timeline) -> Self {
        let (log, lines_left_out) = log(&found);
        let left_out = LeftOut {
            page_loads: missing(found.sent.page_loads, &found.page_loads),
            frame_windows: missing(found.sent.frame_windows, &found.frames),
            janks: missing(found.sent.janks, &found.janks),
            spans: missing(
                found.sent.spans.saturating_sub(found.sent.requests),
                &found.spans,
            ),
            requests: missing(found.sent.requests, &found.requests),
            app_starts: missing(found.sent.app_starts, &found.starts),
            recompositions: missing(found.sent.recompositions, &found.redraws),
            metrics: (found.sent.metrics)
                .saturating_sub(found.points.iter().map(|point| point.samples).sum()),
            log: lines_left_out,
        };
        Self {
            session: SessionBody::from(found.facts),
            searched_from: found.searched.from.into(),
            searched_to: found.searched.to.into(),
            from: found.shown.from.into(),
            to: found.shown.to.into(),
            page_loads: found.page_loads.into_iter().map(Into::into).collect(),
            frame_windows: found.frames.into_iter().map(Into::into).collect(),
            janks: found.janks.into_iter().map(Into::into).collect(),
            spans: found.spans.into_iter().map(Into::into).collect(),
            requests: found.requests.into_iter().map(Into::into).collect(),
            app_starts: found.starts.into_iter().map(Into::into).collect(),
            recompositions: found.redraws.into_iter().map(Into::into).collect(),
            metrics: metrics(found.points),
            log,
            left_out,
        }
    }
}

fn missing<T>(sent: u64, read: &[T]) -> u64 {
    sent.saturating_sub(read.len() as u64)
}

/// Returns the latest log lines, and the number of lines that are left out. A line that several janks have is returned once.
fn log(found: &Timeline) -> (Vec<LineBody>, u64) {
    let mut lines = BTreeSet::new();
    for jank in &found.janks {
        let kept = jank.log_times.iter().zip(&jank.log_messages);
        lines.extend(kept.map(|(time, message)| (*time, message.as_str(), "jank")));
    }
    for span in found.spans.iter().chain(&found.requests) {
        let events = span.event_times.iter().zip(&span.event_names);
        lines.extend(events.map(|(time, message)| (*time, message.as_str(), "span")));
    }
    let left_out = lines.len().saturating_sub(MOST_LINES);
    let latest = lines.into_iter().skip(left_out);
    let latest = latest.map(|(time, message, source)| LineBody {
        time: Timestamp::from_micros(time),
        message: message.to_owned(),
        source,
    });
    (latest.collect(), left_out as u64)
}

/// Groups points by metric. They must be sorted by name.
fn metrics(points: Vec<SessionPoint>) -> Vec<MetricBody> {
    let mut metrics: Vec<MetricBody> = Vec::new();
    for point in points {
        let body = PointBody {
            time: Timestamp::from_micros(point.time),
            value: point.value,
            min: point.min,
            max: point.max,
        };
        match metrics.last_mut().filter(|one| one.name == point.name) {
            Some(metric) => metric.points.push(body),
            None => metrics.push(MetricBody {
                name: point.name,
                points: vec![body],
            }),
        }
    }
    metrics
}

impl From<SessionPageLoad> for PageLoadBody {
    fn from(load: SessionPageLoad) -> Self {
        let times = load.request_offsets.into_iter().zip(load.request_durations);
        let requests = load.request_paths.into_iter().zip(times);
        Self {
            start: Timestamp::from_micros(load.start),
            page: load.page,
            t1_ms: load.t1_ms,
            t2_ms: load.t2_ms,
            t3_ms: load.t3_ms,
            total_ms: load.total_ms,
            launch: load.launch,
            outcome: load.outcome,
            network: load.network,
            requests: requests
                .zip(load.request_statuses)
                .map(
                    |((path, (offset_ms, duration_ms)), status)| PageRequestBody {
                        path,
                        offset_ms,
                        duration_ms,
                        status,
                    },
                )
                .collect(),
        }
    }
}

impl From<SessionFrames> for FramesBody {
    fn from(window: SessionFrames) -> Self {
        Self {
            start: Timestamp::from_micros(window.start),
            duration_ms: window.duration_ms,
            page: window.page,
            refresh_hz: window.refresh_hz,
            frames_drawn: window.frames_drawn,
            frames_dropped: window.frames_dropped,
            slow_frames: window.slow_frames,
            frozen_frames: window.frozen_frames,
            longest_drop: window.longest_drop,
            jank_ms: window.jank_ms,
        }
    }
}

impl From<SessionJank> for JankBody {
    fn from(jank: SessionJank) -> Self {
        Self {
            start: Timestamp::from_micros(jank.start),
            duration_ms: jank.duration_ms,
            kind: jank.kind,
            page: jank.page,
            ended: jank.ended,
            group_id: (jank.group_id != 0).then(|| jank.group_id.to_string()),
            title: jank.title,
            category: jank.category,
            culprit: jank.culprit,
            stack_hash: jank.stack_hash.to_string(),
        }
    }
}

impl From<SessionSpan> for SpanBody {
    fn from(span: SessionSpan) -> Self {
        Self {
            trace_id: span.trace_id.simple().to_string(),
            span_id: format!("{:016x}", span.span_id),
            name: span.name,
            kind: span.kind,
            start: Timestamp::from_micros(span.start),
            duration_us: span.duration_us,
            thread: span.thread,
            on_main_thread: span.on_main_thread,
            status: span.status,
            page: span.page,
        }
    }
}

impl From<SessionSpan> for RequestBody {
    fn from(mut span: SessionSpan) -> Self {
        Self {
            method: std::mem::take(&mut span.method),
            host: std::mem::take(&mut span.host),
            path: std::mem::take(&mut span.path),
            http_status: std::mem::take(&mut span.http_status),
            span: span.into(),
        }
    }
}

impl From<SessionStart> for StartBody {
    fn from(start: SessionStart) -> Self {
        Self {
            start: Timestamp::from_micros(start.start),
            duration_ms: start.duration_ms,
            kind: start.kind,
            page: start.page,
            phases: PhaseBody::list(start.phase_names, start.phase_durations),
        }
    }
}

impl From<SessionRedraws> for RedrawsBody {
    fn from(redraws: SessionRedraws) -> Self {
        Self {
            start: Timestamp::from_micros(redraws.start),
            window_ms: redraws.window_ms,
            function: redraws.function,
            page: redraws.page,
            count: redraws.count,
            cause: redraws.cause,
        }
    }
}
