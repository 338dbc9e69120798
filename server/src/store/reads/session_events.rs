//! The events of one session, by signal. The totals of a session are in `sessions`.

use clickhouse::Row;
use serde::Deserialize;
use uuid::Uuid;

use super::functions::OfFunction;
use super::parts::Part;
use super::reading::Reading;
use super::statement::{Rest, Statement};
use super::subjects::requests::{HOST, IS_REQUEST, METHOD, PATH, STATUS_CODE};
use crate::store::clickhouse::{ClickHouse, Failure};

/// Maximum number of metrics of a session. Metrics with more samples take precedence.
const MOST_METRICS: u64 = 30;
/// Maximum number of points of a metric.
const MOST_POINTS: u128 = 300;

/// A page load. All times are in microseconds since the epoch.
#[derive(Clone, Debug, Row, Deserialize)]
pub struct SessionPageLoad {
    pub start: i64,
    pub page: String,
    pub t1_ms: Option<u32>,
    pub t2_ms: Option<u32>,
    pub t3_ms: Option<u32>,
    pub total_ms: u32,
    pub launch: String,
    pub outcome: String,
    pub network: String,
    pub request_paths: Vec<String>,
    pub request_offsets: Vec<i32>,
    pub request_durations: Vec<u32>,
    pub request_statuses: Vec<u16>,
}

#[derive(Clone, Debug, Row, Deserialize)]
pub struct SessionFrames {
    pub start: i64,
    pub duration_ms: u32,
    pub page: String,
    pub refresh_hz: u16,
    pub frames_drawn: u32,
    pub frames_dropped: u32,
    pub slow_frames: u32,
    pub frozen_frames: u32,
    pub longest_drop: u32,
    pub jank_ms: u32,
}

#[derive(Clone, Debug, Row, Deserialize)]
pub struct SessionJank {
    pub start: i64,
    pub duration_ms: u32,
    pub kind: String,
    pub page: String,
    pub ended: String,
    pub stack_hash: u64,
    /// 0 if the stack has no class yet.
    pub group_id: u64,
    pub title: String,
    pub category: String,
    pub culprit: String,
    pub log_times: Vec<i64>,
    pub log_messages: Vec<String>,
}

#[derive(Clone, Debug, Row, Deserialize)]
pub struct SessionSpan {
    #[serde(with = "clickhouse::serde::uuid")]
    pub trace_id: Uuid,
    pub span_id: u64,
    pub name: String,
    pub kind: String,
    pub start: i64,
    pub duration_us: u64,
    pub thread: String,
    pub on_main_thread: bool,
    pub status: String,
    pub page: String,
    pub event_times: Vec<i64>,
    pub event_names: Vec<String>,
    /// Empty unless the span describes a request. The same applies to the next three fields.
    pub method: String,
    pub host: String,
    pub path: String,
    pub http_status: String,
}

#[derive(Clone, Debug, Row, Deserialize)]
pub struct SessionStart {
    pub start: i64,
    pub duration_ms: u32,
    pub kind: String,
    pub page: String,
    pub phase_names: Vec<String>,
    pub phase_durations: Vec<u32>,
}

#[derive(Clone, Debug, Row, Deserialize)]
pub struct SessionRedraws {
    pub start: i64,
    pub window_ms: u32,
    pub function: String,
    pub page: String,
    pub count: u32,
    pub cause: String,
}

/// The values of a metric in one step of time.
#[derive(Clone, Debug, Row, Deserialize)]
pub struct SessionPoint {
    pub name: String,
    /// The time of the first sample.
    pub time: i64,
    /// The mean.
    pub value: f64,
    pub min: f64,
    pub max: f64,
    pub samples: u64,
}

/// Which spans of a session to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanChoice {
    /// Spans that describe requests.
    Requests,
    Others,
}

const PAGE_LOADS: &str = "toUnixTimestamp64Micro(s.start) AS start, toString(s.page) AS page, s.t1_ms, s.t2_ms, s.t3_ms, s.total_ms, \
     toString(s.launch) AS launch, toString(s.outcome) AS outcome, toString(s.network) AS network, \
     arrayMap(path -> toString(path), s.`requests.path`) AS request_paths, s.`requests.offset_ms` AS request_offsets, \
     s.`requests.duration_ms` AS request_durations, s.`requests.status` AS request_statuses";

const FRAMES: &str = "toUnixTimestamp64Micro(s.start) AS start, s.duration_ms, toString(s.page) AS page, s.refresh_hz, s.frames_drawn, \
     s.frames_dropped, s.slow_frames, s.frozen_frames, s.longest_drop, s.jank_ms";

/// `c` is the class of the stack, which a reading by group joins.
const JANKS: &str = "toUnixTimestamp64Micro(s.start) AS start, s.duration_ms, toString(s.kind) AS kind, toString(s.page) AS page, \
     toString(s.ended) AS ended, s.stack_hash AS stack_hash, c.group_id AS group_id, toString(c.title) AS title, \
     toString(c.category) AS category, toString(c.culprit) AS culprit, \
     arrayMap(time -> toUnixTimestamp64Micro(time), s.`run_log.time`) AS log_times, s.`run_log.message` AS log_messages";

const STARTS: &str = "toUnixTimestamp64Micro(s.start) AS start, s.duration_ms, toString(s.kind) AS kind, toString(s.page) AS page, \
     arrayMap(name -> toString(name), s.`phases.name`) AS phase_names, s.`phases.duration_ms` AS phase_durations";

const REDRAWS: &str = "toUnixTimestamp64Micro(s.start) AS start, s.window_ms, toString(s.function) AS function, toString(s.page) AS page, \
     s.count, toString(s.cause) AS cause";

fn span_columns(database: &str) -> String {
    let of_request = |value: &str| format!("if({IS_REQUEST}, {value}, '')");
    format!(
        "s.trace_id, s.span_id, {} AS name, toString(s.kind) AS kind, toUnixTimestamp64Micro(s.start) AS start, s.duration_us, \
         toString(s.thread) AS thread, s.on_main_thread, toString(s.status) AS status, toString(s.page) AS page, \
         arrayMap(time -> toUnixTimestamp64Micro(time), s.`events.time`) AS event_times, \
         arrayMap(name -> toString(name), s.`events.name`) AS event_names, \
         {} AS method, {} AS host, {} AS path, {} AS http_status",
        OfFunction::Name.of_row("s.name", database),
        of_request(&METHOD.raw_value()),
        of_request(&HOST.raw_value()),
        of_request(&PATH.raw_value()),
        of_request(&STATUS_CODE.raw_value()),
    )
}

impl ClickHouse {
    /// Reads the longest page loads of a session. Here and in the other functions, the reading must be of the signal and of raw rows.
    pub async fn session_page_loads(
        &self,
        reading: &Reading,
        session: Uuid,
        limit: u64,
    ) -> Result<Vec<SessionPageLoad>, Failure> {
        self.of_session(
            reading,
            session,
            (PAGE_LOADS, "1", "s.total_ms DESC, s.start", limit),
        )
        .await
    }

    /// Reads the frame windows of a session with the most jank.
    pub async fn session_frames(
        &self,
        reading: &Reading,
        session: Uuid,
        limit: u64,
    ) -> Result<Vec<SessionFrames>, Failure> {
        self.of_session(
            reading,
            session,
            (FRAMES, "1", "s.jank_ms DESC, s.start", limit),
        )
        .await
    }

    /// Reads the longest janks of a session. The reading must be by `group_id`.
    pub async fn session_janks(
        &self,
        reading: &Reading,
        session: Uuid,
        limit: u64,
    ) -> Result<Vec<SessionJank>, Failure> {
        self.of_session(
            reading,
            session,
            (JANKS, "1", "s.duration_ms DESC, s.start", limit),
        )
        .await
    }

    /// Reads the longest spans of a session.
    pub async fn session_spans(
        &self,
        reading: &Reading,
        session: Uuid,
        choice: SpanChoice,
        limit: u64,
    ) -> Result<Vec<SessionSpan>, Failure> {
        let condition = match choice {
            SpanChoice::Requests => format!("({IS_REQUEST})"),
            SpanChoice::Others => format!("NOT ({IS_REQUEST})"),
        };
        let columns = span_columns(self.database());
        let order = "s.duration_us DESC, s.span_id";
        self.of_session(reading, session, (&columns, &condition, order, limit))
            .await
    }

    /// Reads the longest app starts of a session.
    pub async fn session_starts(
        &self,
        reading: &Reading,
        session: Uuid,
        limit: u64,
    ) -> Result<Vec<SessionStart>, Failure> {
        self.of_session(
            reading,
            session,
            (STARTS, "1", "s.duration_ms DESC, s.start", limit),
        )
        .await
    }

    /// Reads the recompositions of a session with the highest counts.
    pub async fn session_redraws(
        &self,
        reading: &Reading,
        session: Uuid,
        limit: u64,
    ) -> Result<Vec<SessionRedraws>, Failure> {
        self.of_session(
            reading,
            session,
            (REDRAWS, "1", "s.count DESC, s.start", limit),
        )
        .await
    }

    /// Reads the 30 metrics of a session with the most samples, each in at most 300 steps of time.
    pub async fn session_metrics(
        &self,
        reading: &Reading,
        session: Uuid,
    ) -> Result<Vec<SessionPoint>, Failure> {
        let step =
            (reading.span.to.since(reading.span.from).as_micros() / MOST_POINTS).max(1_000_000);
        let mut statement = Statement::default();
        let rows = reading.rows(&Part::whole(reading), self.database(), &mut statement);
        let rows = format!(
            "FROM {} WHERE {rows} AND s.session_id = {{session:UUID}}",
            reading.from(self.database())
        );
        statement.text("session", &session.to_string());
        statement.sql = format!(
            "SELECT toString(s.name) AS name, min(toUnixTimestamp64Micro(s.time)) AS time, \
             sum(s.value * greatest(s.count, 1)) / sum(greatest(s.count, 1)) AS value, min(s.min) AS min, max(s.max) AS max, \
             count() AS samples {rows} \
             AND s.name IN (SELECT s.name {rows} GROUP BY s.name ORDER BY count() DESC, s.name LIMIT {MOST_METRICS}) \
             GROUP BY s.name, intDiv(toUnixTimestamp64Micro(s.time), {step}) ORDER BY name, time \
             LIMIT {}",
            // A period that does not start on a step boundary overlaps one more step.
            u128::from(MOST_METRICS) * (MOST_POINTS + 1)
        );
        let (points, _) = self.read(statement).await?;
        Ok(points)
    }

    async fn of_session<T>(
        &self,
        reading: &Reading,
        session: Uuid,
        (columns, condition, order, limit): (&str, &str, &str, u64),
    ) -> Result<Vec<T>, Failure>
    where
        T: clickhouse::RowOwned + clickhouse::RowRead,
    {
        let condition = format!("s.session_id = {{session:UUID}} AND {condition}");
        let rest = Rest {
            condition: &condition,
            order,
            limit,
        };
        let mut statement = reading.events(self.database(), columns, rest);
        statement.text("session", &session.to_string());
        let (rows, _) = self.read(statement).await?;
        Ok(rows)
    }
}
