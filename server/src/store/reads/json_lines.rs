//! Raw rows as the events that devices sent: one JSON object per line with wire names, and the devices that sent them.

use bytes::BytesMut;
use clickhouse::query::BytesCursor;

use super::functions::OfFunction;
use super::reading::Reading;
use super::statement::{Rest, Statement};
use crate::store::clickhouse::{ClickHouse, Failure};

/// Per subject: the signal's name in a report file, and the columns. `{name}` is the readable name of a span.
const EVENTS: &[(&str, &str, &str)] = &[
    (
        "spans",
        "span",
        "replaceAll(toString(s.trace_id), '-', '') AS trace_id, leftPad(lower(hex(s.span_id)), 16, '0') AS span_id, \
         {name} AS name, s.kind AS kind, s.start AS start, s.duration_us AS duration_us, s.thread AS thread, \
         s.on_main_thread AS on_main_thread, s.status AS status, s.page AS page, s.network AS network, \
         s.uptime_ms AS uptime_ms, s.sample_rate AS sample_rate",
    ),
    (
        "frame_windows",
        "frame_window",
        "s.page AS page, s.start AS start, s.duration_ms AS duration_ms, s.refresh_hz AS refresh_hz, \
         s.frames_drawn AS frames_drawn, s.frames_dropped AS frames_dropped, s.slow_frames AS slow_frames, \
         s.frozen_frames AS frozen_frames, s.longest_drop AS longest_drop, s.jank_ms AS jank_ms, s.delay_ms AS delay_ms, \
         s.uptime_ms AS uptime_ms, s.network AS network, s.sample_rate AS sample_rate",
    ),
    (
        "janks",
        "jank",
        "s.kind AS kind, s.page AS page, s.start AS start, s.duration_ms AS duration_ms, s.ended AS ended, s.thread AS thread, \
         s.foreground AS foreground, s.uptime_ms AS uptime_ms, s.network AS network, toString(s.stack_hash) AS stack_hash, s.stack_missing AS stack_missing, \
         CAST(arrayZip(s.`samples.offset_ms`, s.`samples.stack_hash`), 'Array(Tuple(offset_ms UInt32, stack_hash String))') AS samples, \
         CAST(arrayZip(s.`run_log.time`, s.`run_log.message`), 'Array(Tuple(time DateTime64(6, \\'UTC\\'), message String))') AS run_log, \
         s.sample_rate AS sample_rate",
    ),
    (
        "traffic",
        "traffic",
        "s.day AS day, s.source AS source, s.network AS network, s.tx_bytes AS tx_bytes, s.rx_bytes AS rx_bytes, \
         s.requests AS requests, s.failed_requests AS failed_requests",
    ),
    (
        "page_loads",
        "page_load",
        "s.page AS page, s.start AS start, s.t1_ms AS t1_ms, s.t2_ms AS t2_ms, s.t3_ms AS t3_ms, s.total_ms AS total_ms, \
         s.launch AS launch, s.outcome AS outcome, s.network AS network, s.uptime_ms AS uptime_ms, s.sample_rate AS sample_rate",
    ),
    (
        "metrics",
        "metric",
        "s.name AS name, s.time AS time, s.value AS value, s.min AS min, s.max AS max, s.count AS count, s.page AS page, \
         s.uptime_ms AS uptime_ms, s.network AS network, s.sample_rate AS sample_rate",
    ),
    (
        "app_starts",
        "app_start",
        "s.kind AS kind, s.start AS start, s.duration_ms AS duration_ms, s.page AS page, s.network AS network, \
         CAST(arrayZip(s.`phases.name`, s.`phases.duration_ms`), 'Array(Tuple(name String, duration_ms UInt32))') AS phases, \
         s.sample_rate AS sample_rate",
    ),
    (
        "recompositions",
        "recomposition",
        "s.function AS function, s.page AS page, s.start AS start, s.window_ms AS window_ms, s.count AS count, \
         s.cause AS cause, s.sample_rate AS sample_rate",
    ),
    (
        "sdk_health",
        "sdk_health",
        "CAST(arrayZip(s.`dropped.signal`, s.`dropped.reason`, s.`dropped.count`), \
         'Array(Tuple(signal String, reason String, count UInt64))') AS dropped, \
         s.overhead_us AS overhead_us, s.queue_bytes AS queue_bytes, s.upload_bytes AS upload_bytes",
    ),
];

const DEVICE: &str = "DISTINCT s.app_id AS app_id, s.app_version AS app_version, s.build AS build, s.channel AS channel, s.mode AS mode, \
     s.os_name AS os_name, s.os_version AS os_version, s.device_model AS device_model, \
     s.device_manufacturer AS device_manufacturer, s.device_class AS device_class, s.locale AS locale, \
     s.install_id AS install_id, s.session_id AS session_id";
/// Maximum number of distinct devices.
const MOST_DEVICES: u64 = 1_000;
/// An order that keeps the rows of a session together and does not depend on their content.
const BY_SESSION: &str = "cityHash64(s.session_id)";

/// Returns the subjects that are events, with the names of these in a report file.
pub fn recorded_signals() -> impl Iterator<Item = (&'static str, &'static str)> {
    EVENTS
        .iter()
        .map(|(subject, signal, _)| (*subject, *signal))
}

/// Returns the columns of a reading's events.
fn columns_of(reading: &Reading, database: &str) -> String {
    let mut events = EVENTS.iter();
    let columns = events
        .find(|(subject, ..)| *subject == reading.subject.name)
        .map_or("", |(.., columns)| *columns);
    columns.replace("{name}", &OfFunction::Name.of_row("s.name", database))
}

/// A stream of JSON objects, one per line.
pub struct JsonLines {
    cursor: BytesCursor,
    rest: BytesMut,
}

impl JsonLines {
    /// Returns the next line without its newline.
    pub async fn next(&mut self) -> Result<Option<BytesMut>, Failure> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let mut line = self.rest.split_to(end + 1);
                line.truncate(end);
                return Ok(Some(line));
            }
            match self.cursor.next().await? {
                Some(bytes) => self.rest.extend_from_slice(&bytes),
                None => return Ok(None),
            }
        }
    }
}

impl ClickHouse {
    /// Streams events with wire names, ordered by time. The reading must be of raw rows. Stalls carry hashes in place of stacks.
    pub fn events_as_json(&self, reading: &Reading, limit: u64) -> Result<JsonLines, Failure> {
        let columns = columns_of(reading, self.database());
        let rest = Rest {
            condition: "1",
            order: &format!("s.{}", reading.subject.time.column()),
            limit,
        };
        self.json(reading.events(self.database(), &columns, rest))
    }

    /// Streams events with their `session_id`, one session after another.
    pub fn events_by_session(&self, reading: &Reading, limit: u64) -> Result<JsonLines, Failure> {
        let columns = columns_of(reading, self.database());
        let columns = format!("{columns}, toString(s.session_id) AS session_id");
        let rest = Rest {
            condition: "1",
            order: &format!("{BY_SESSION}, s.{}", reading.subject.time.column()),
            limit,
        };
        self.json(reading.events(self.database(), &columns, rest))
    }

    /// Returns a sample of the sessions in a reading. The same reading always gives the same sample.
    pub async fn some_sessions(
        &self,
        reading: &Reading,
        limit: u64,
    ) -> Result<Vec<String>, Failure> {
        let rest = Rest {
            condition: "1",
            order: BY_SESSION,
            limit,
        };
        let columns = "DISTINCT toString(s.session_id) AS session_id, cityHash64(s.session_id)";
        let mut lines = self.json(reading.events(self.database(), columns, rest))?;
        let mut sessions = Vec::new();
        while let Some(line) = lines.next().await? {
            let line: serde_json::Value = serde_json::from_slice(&line).unwrap_or_default();
            sessions.extend(line["session_id"].as_str().map(ToOwned::to_owned));
        }
        Ok(sessions)
    }

    /// Streams the distinct apps and devices of a reading, with the fields of a batch's resource and `session_id`.
    pub fn devices_as_json(&self, reading: &Reading) -> Result<JsonLines, Failure> {
        let more = match reading.subject.name {
            "usage" | "sdk_health" => ", s.sdk_name AS sdk_name, s.sdk_version AS sdk_version",
            "traffic" => "",
            _ => ", s.refresh_hz AS refresh_hz",
        };
        let rest = Rest {
            condition: "1",
            order: "s.app_version",
            limit: MOST_DEVICES,
        };
        let columns = format!("{DEVICE}{more}");
        self.json(reading.events(self.database(), &columns, rest))
    }

    fn json(&self, statement: Statement) -> Result<JsonLines, Failure> {
        let query = self.question(&statement.sql)?;
        let cursor = statement
            .with_parameters(query)
            .with_setting("date_time_output_format", "iso")
            .with_setting("output_format_json_quote_64bit_integers", "0")
            .with_setting("output_format_json_named_tuples_as_objects", "1")
            .fetch_bytes("JSONEachRow")?;
        Ok(JsonLines {
            cursor,
            rest: BytesMut::new(),
        })
    }
}
