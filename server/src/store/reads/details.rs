//! Single events from raw rows: janks, stacks with their frames, spans of traces.

use std::borrow::Cow;

use clickhouse::Row;
use serde::{Deserialize, Serialize};
use unjank_protocol::Frame;
use unjank_stacks::{readable_function, top_level_code};
use uuid::Uuid;

use super::functions::{IS_OBFUSCATED, OfFunction, package};
use super::reading::Reading;
use super::run::Read;
use super::statement::Rest;
use crate::store::clickhouse::{ClickHouse, Failure};
use crate::store::stacks::stored_stacks::{latest_symbolication, readable_columns};

/// A frame of a stack for people: as it was reported, with a demangled function. The mangled one is in `stacks`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct StoredFrame {
    pub class: String,
    pub module: String,
    pub function: String,
    pub file: String,
    /// The build of the module.
    pub build_id: String,
    pub line: u32,
    /// The offset in the module, for frames without a symbol; 0 if unknown.
    pub offset: u64,
    /// How the frame follows from the reported one: 0 reported as it is, 1 called, 2 inlined, 3 ambiguous.
    pub origin: u8,
}

impl From<&Frame<'_>> for StoredFrame {
    fn from(frame: &Frame<'_>) -> Self {
        Self {
            class: frame.class.to_string(),
            module: frame.module.to_string(),
            function: readable_function(&frame.function).into_owned(),
            file: frame.file.to_string(),
            build_id: frame.build_id.to_string(),
            line: u32::try_from(frame.line).unwrap_or_default(),
            offset: frame.offset.unwrap_or_default(),
            origin: 0,
        }
    }
}

impl StoredFrame {
    /// Returns a readable name, which is stable across releases as long as the symbols are.
    #[must_use]
    pub fn label(&self) -> String {
        match (self.class.as_str(), self.function.as_str()) {
            ("", "") if self.module.is_empty() => top_level_code(&self.file),
            ("", "") if self.offset == 0 => self.module.clone(),
            ("", "") => format!("{}+{:#x}", self.module, self.offset),
            ("", function) => function.to_owned(),
            (class, "") => class.to_owned(),
            (class, function) if class.contains("::") || function.contains("::") => {
                format!("{class}::{function}")
            }
            (class, function) => format!("{class}.{function}"),
        }
    }
}

/// The frames of a stored stack, innermost first, and the builds whose symbols it lacks.
#[derive(Clone, Debug, Default)]
pub struct StackDetail {
    pub frames: Vec<StoredFrame>,
    /// Builds without a symbol file.
    pub missing: Vec<String>,
    /// Builds whose symbol file does not belong to them.
    pub mismatched: Vec<String>,
}

#[derive(Row, Deserialize)]
struct StackRow {
    stack_hash: u64,
    classes: Vec<String>,
    modules: Vec<String>,
    functions: Vec<String>,
    files: Vec<String>,
    build_ids: Vec<String>,
    lines: Vec<u32>,
    #[expect(dead_code, reason = "the columns of a frame come together")]
    columns: Vec<u32>,
    offsets: Vec<u64>,
    origins: Vec<u8>,
    missing: Vec<String>,
    mismatched: Vec<String>,
}

impl From<StackRow> for (u64, StackDetail) {
    fn from(row: StackRow) -> Self {
        let names = row.classes.into_iter().zip(row.modules).zip(row.functions);
        let places = row.files.into_iter().zip(row.lines);
        let images = row.build_ids.into_iter().zip(row.offsets);
        // A stack that was not symbolicated has no origins.
        let origins = row.origins.into_iter().chain(std::iter::repeat(0));
        let parts = names.zip(places).zip(images);
        let frames = parts.zip(origins).map(|(frame, origin)| {
            let ((((class, module), function), (file, line)), (build_id, offset)) = frame;
            StoredFrame {
                class,
                module,
                function: demangled(function),
                file,
                build_id,
                line,
                offset,
                origin,
            }
        });
        let detail = StackDetail {
            frames: frames.collect(),
            missing: row.missing,
            mismatched: row.mismatched,
        };
        (row.stack_hash, detail)
    }
}

fn demangled(function: String) -> String {
    match readable_function(&function) {
        Cow::Owned(readable) => readable,
        Cow::Borrowed(_) => function,
    }
}

/// A jank as reported, with its stacks by hash.
#[derive(Clone, Debug, Row, Deserialize)]
pub struct JankEvent {
    /// Microseconds since the epoch.
    pub start: i64,
    pub kind: String,
    pub duration_ms: u32,
    pub page: String,
    pub app_version: String,
    pub build: u64,
    pub os_name: String,
    pub os_version: String,
    pub device_model: String,
    pub device_class: String,
    pub network: String,
    #[serde(with = "clickhouse::serde::uuid")]
    pub install_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    pub session_id: Uuid,
    pub uptime_ms: u64,
    pub foreground: bool,
    pub ended: String,
    pub thread: String,
    pub threshold_ms: u32,
    pub strategy_count: u32,
    pub stack_hash: u64,
    pub stack_missing: String,
    pub sample_offsets: Vec<u32>,
    pub sample_hashes: Vec<u64>,
    pub log_times: Vec<i64>,
    pub log_messages: Vec<String>,
}

/// A span as it was reported.
#[derive(Clone, Debug, Row, Deserialize)]
pub struct StoredSpan {
    #[serde(with = "clickhouse::serde::uuid")]
    pub trace_id: Uuid,
    pub span_id: u64,
    /// 0 if the span has no parent.
    pub parent_span_id: u64,
    pub name: String,
    pub kind: String,
    /// Microseconds since the epoch.
    pub start: i64,
    pub duration_us: u64,
    pub thread: String,
    pub on_main_thread: bool,
    pub status: String,
    pub page: String,
    pub app_id: String,
    pub app_version: String,
    pub os_name: String,
    pub device_model: String,
    #[serde(with = "clickhouse::serde::uuid")]
    pub session_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    pub install_id: Uuid,
    /// Milliseconds since the launch of the app, when the span began.
    pub uptime_ms: u64,
    pub code_class: String,
    pub code_function: String,
    pub code_file: String,
    pub code_line: u32,
    pub package: String,
    pub attributes: Vec<(String, String)>,
    pub event_times: Vec<i64>,
    pub event_names: Vec<String>,
    pub sample_rate: f64,
}

const JANK_COLUMNS: &str = "toUnixTimestamp64Micro(s.start) AS start, toString(s.kind) AS kind, s.duration_ms, toString(s.page) AS page, \
     toString(s.app_version) AS app_version, s.build, toString(s.os_name) AS os_name, toString(s.os_version) AS os_version, \
     toString(s.device_model) AS device_model, toString(s.device_class) AS device_class, toString(s.network) AS network, \
     s.install_id, s.session_id, s.uptime_ms, s.foreground, toString(s.ended) AS ended, toString(s.thread) AS thread, \
     s.strategy_threshold_ms AS threshold_ms, s.strategy_count, s.stack_hash, s.stack_missing, \
     s.`samples.offset_ms` AS sample_offsets, s.`samples.stack_hash` AS sample_hashes, \
     arrayMap(time -> toUnixTimestamp64Micro(time), s.`run_log.time`) AS log_times, s.`run_log.message` AS log_messages";

/// The columns of [`StoredSpan`], with the readable names of obfuscated functions.
fn span_columns(database: &str) -> String {
    let of_function = |part: OfFunction, reported: &str| part.of_row(reported, database);
    format!(
        "s.trace_id, s.span_id, s.parent_span_id, {name} AS name, toString(s.kind) AS kind, \
         toUnixTimestamp64Micro(s.start) AS start, s.duration_us, toString(s.thread) AS thread, s.on_main_thread, \
         toString(s.status) AS status, toString(s.page) AS page, toString(s.app_id) AS app_id, \
         toString(s.app_version) AS app_version, \
         toString(s.os_name) AS os_name, toString(s.device_model) AS device_model, s.session_id, s.install_id, s.uptime_ms, \
         {class} AS code_class, {function} AS code_function, {file} AS code_file, \
         if({IS_OBFUSCATED}, 0, s.code_line) AS code_line, {package} AS package, \
         CAST(s.attributes, 'Map(String, String)') AS attributes, \
         arrayMap(time -> toUnixTimestamp64Micro(time), s.`events.time`) AS event_times, \
         arrayMap(name -> toString(name), s.`events.name`) AS event_names, s.sample_rate",
        name = of_function(OfFunction::Name, "s.name"),
        class = of_function(OfFunction::Class, "s.code_class"),
        function = of_function(OfFunction::Function, "s.code_function"),
        file = of_function(OfFunction::File, "s.code_file"),
        package = of_function(OfFunction::Package, &package("s.code_class")),
    )
}

/// The sort order of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    Latest,
    Slowest,
    /// The spans whose durations are nearest to this one, in microseconds.
    Near(i64),
}

/// Selects spans of a reading.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    pub at_least_us: i64,
    pub first: First,
    /// Only spans after this position.
    pub after: Option<SpanPlace>,
    pub limit: u64,
}

/// The position of a span in the order of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanPlace {
    /// The start or the duration, depending on the order.
    pub key: i64,
    pub span_id: u64,
    pub trace_id: Uuid,
}

impl First {
    /// Returns the position of a span in this order.
    #[must_use]
    pub fn place(self, span: &StoredSpan) -> SpanPlace {
        let key = match self {
            Self::Latest => span.start,
            Self::Slowest => i64::try_from(span.duration_us).unwrap_or(i64::MAX),
            Self::Near(us) => i64::try_from(span.duration_us)
                .unwrap_or(i64::MAX)
                .abs_diff(us)
                .try_into()
                .map_or(i64::MIN, |distance: i64| -distance),
        };
        SpanPlace {
            key,
            span_id: span.span_id,
            trace_id: span.trace_id,
        }
    }
}

impl ClickHouse {
    /// Reads the latest janks. The reading must be of raw rows.
    pub async fn jank_events(
        &self,
        reading: &Reading,
        limit: u64,
    ) -> Result<(Vec<JankEvent>, Read), Failure> {
        self.read(reading.events(
            self.database(),
            JANK_COLUMNS,
            Rest {
                condition: "1",
                order: "s.start DESC",
                limit,
            },
        ))
        .await
    }

    /// Reads spans. The reading must be of raw rows.
    pub async fn spans(
        &self,
        reading: &Reading,
        search: Search,
    ) -> Result<(Vec<StoredSpan>, Read), Failure> {
        let (column, key) = match search.first {
            First::Latest => ("s.start", "fromUnixTimestamp64Micro({after:Int64}, 'UTC')"),
            First::Slowest => ("s.duration_us", "{after:Int64}"),
            First::Near(_) => (
                "-abs(toInt64(s.duration_us) - {near:Int64})",
                "{after:Int64}",
            ),
        };
        let after = search.after.map_or(String::new(), |_| {
            // The second condition implies the first, but ClickHouse can skip data only by the first.
            format!(
                " AND {column} <= {key} AND ({column}, s.span_id, s.trace_id) < ({key}, {{after_span:UInt64}}, {{after_trace:UUID}})"
            )
        });
        let rest = Rest {
            condition: &format!("s.duration_us >= {{at_least:Int64}}{after}"),
            order: &format!("{column} DESC, s.span_id DESC, s.trace_id DESC"),
            limit: search.limit,
        };
        let mut statement = reading.events(self.database(), &span_columns(self.database()), rest);
        statement
            .numbers
            .push(("at_least".to_owned(), search.at_least_us));
        if let First::Near(us) = search.first {
            statement.numbers.push(("near".to_owned(), us));
        }
        if let Some(after) = search.after {
            statement.numbers.push(("after".to_owned(), after.key));
            statement
                .texts
                .push(("after_span".to_owned(), after.span_id.to_string()));
            statement
                .texts
                .push(("after_trace".to_owned(), after.trace_id.to_string()));
        }
        self.read(statement).await
    }

    /// Reads all spans of the given traces by start, at most `limit`.
    pub async fn spans_of_traces(
        &self,
        project: &str,
        traces: &[Uuid],
        limit: u64,
    ) -> Result<(Vec<StoredSpan>, Read), Failure> {
        let sql = format!(
            "SELECT {} FROM `{}`.spans AS s WHERE s.project = {{project:String}} \
             AND s.trace_id IN {{traces:Array(UUID)}} ORDER BY s.start, s.duration_us DESC, s.span_id LIMIT {limit}",
            span_columns(self.database()),
            self.database()
        );
        let traces: Vec<String> = traces.iter().map(Uuid::to_string).collect();
        let query = self
            .question(&sql)?
            .param("project", project)
            .param("traces", traces);
        self.collect(query).await
    }

    /// Reads stacks by their hashes.
    pub async fn stacks_of(
        &self,
        project: &str,
        hashes: &[u64],
    ) -> Result<std::collections::HashMap<u64, StackDetail>, Failure> {
        if hashes.is_empty() {
            return Ok(std::collections::HashMap::new());
        }
        let range = "project = {project:String} AND stack_hash IN {hashes:Array(UInt64)}";
        let database = self.database();
        let sql = format!(
            "SELECT s.stack_hash AS stack_hash, {columns}, any(r.origins) AS origins, \
             any(r.missing) AS missing, any(r.mismatched) AS mismatched \
             FROM (SELECT * FROM `{database}`.stacks WHERE {range}) AS s \
             LEFT JOIN ({readable}) AS r ON s.stack_hash = r.stack_hash GROUP BY stack_hash",
            columns = readable_columns("any"),
            readable = latest_symbolication(database, range),
        );
        let query = self
            .question(&sql)?
            .param("project", project)
            .param("hashes", hashes);
        let (rows, _): (Vec<StackRow>, _) = self.collect(query).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }
}
