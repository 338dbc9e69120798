//! The spans of whole sessions, for times that depend on how spans nest.

use std::time::Duration;

use clickhouse::Row;
use serde::Deserialize;
use uuid::Uuid;

use super::Read;
use super::details::StoredSpan;
use super::functions::{OfFunction, package};
use super::parts::Part;
use super::reading::{Grain, Reading};
use super::statement::{Rest, Statement};
use crate::store::clickhouse::{ClickHouse, Failure};

/// Maximum number of spans that are counted.
const MOST_COUNTED: u64 = 50_000;
/// Maximum number of spans that are read, with those around the counted ones.
const MOST_READ: u64 = 200_000;
/// Spans that contain a counted span, or that it contains, are found if they began at most this much earlier or later.
const AROUND: Duration = Duration::from_secs(3_600);
/// The position of a session in a random order, which is the same for every query.
const PLACE: &str = "cityHash64(s.session_id)";

/// The fields of a span that nesting needs.
#[derive(Clone, Debug, Row, Deserialize)]
pub struct NestedSpan {
    #[serde(with = "clickhouse::serde::uuid")]
    pub trace_id: Uuid,
    pub span_id: u64,
    /// 0 if the span has no parent.
    pub parent_span_id: u64,
    #[serde(with = "clickhouse::serde::uuid")]
    pub session_id: Uuid,
    pub thread: String,
    pub on_main_thread: bool,
    /// Microseconds since the epoch.
    pub start: i64,
    pub duration_us: u64,
    /// Empty if unknown.
    pub package: String,
    pub sample_rate: f64,
    /// Whether the reading selects the span. Other spans of the session are read because they may nest with selected ones.
    pub is_counted: bool,
    place: u64,
}

/// The spans of some sessions.
#[derive(Clone, Debug, Default)]
pub struct NestedSpans {
    pub spans: Vec<NestedSpan>,
    /// The share of the sessions that were read: above 0, at most 1.
    pub share: f64,
}

impl ClickHouse {
    /// Reads the spans of the sessions that a reading selects; of a random share of the sessions, if there are too many spans. The
    /// same reading always gives the same sessions.
    pub async fn nested_spans(&self, reading: &Reading) -> Result<NestedSpans, Failure> {
        let reading = Reading {
            base: None,
            grain: Grain::Raw,
            ..reading.clone()
        };
        let rest = Rest {
            condition: "1",
            order: "place",
            limit: MOST_COUNTED + 1,
        };
        let places = reading.events(self.database(), &format!("{PLACE} AS place"), rest);
        let (places, _) = self.read::<u64>(places).await?;
        let mut bound = bound(places.iter().copied(), MOST_COUNTED);
        let statement = around(&reading, bound, self.database());
        let (mut spans, _) = self.read::<NestedSpan>(statement).await?;
        if let Some(lower) = self::bound(spans.iter().map(|span| span.place), MOST_READ) {
            bound = Some(lower);
            spans.retain(|span| span.place < lower);
        }
        Ok(NestedSpans {
            spans,
            share: bound.map_or(1.0, share_below),
        })
    }
}

/// Maximum number of traces that are children by time.
const MOST_TRACES: u32 = 5_000;

#[derive(Row, Deserialize)]
struct TraceRow {
    #[serde(with = "clickhouse::serde::uuid")]
    trace_id: Uuid,
}

impl ClickHouse {
    /// Reads the spans of whole traces, at most `limit`: the traces of these spans, and those that ran during them.
    pub async fn spans_around(
        &self,
        project: &str,
        spans: &[StoredSpan],
        limit: u64,
    ) -> Result<(Vec<StoredSpan>, Read), Failure> {
        let mut traces = self.traces_during(project, spans).await?;
        traces.extend(spans.iter().map(|span| span.trace_id));
        traces.sort_unstable();
        traces.dedup();
        self.spans_of_traces(project, &traces, limit).await
    }

    /// Returns the traces whose root ran on the main thread of the same session during one of the spans, at most 5,000. Spans on other
    /// threads are ignored, because threads may share a name.
    async fn traces_during(
        &self,
        project: &str,
        spans: &[StoredSpan],
    ) -> Result<Vec<Uuid>, Failure> {
        let main = || spans.iter().filter(|span| span.on_main_thread);
        let end = |span: &StoredSpan| span.start.saturating_add_unsigned(span.duration_us);
        let (Some(from), Some(to)) = (main().map(|span| span.start).min(), main().map(end).max())
        else {
            return Ok(Vec::new());
        };
        let sql = format!(
            "SELECT DISTINCT s.trace_id AS trace_id FROM `{}`.spans AS s INNER JOIN (\
                 SELECT arrayJoin(arrayZip({{sessions:Array(UUID)}}, {{begins:Array(Int64)}}, {{ends:Array(Int64)}})) AS open, \
                 open.1 AS session_id, open.2 AS begins, open.3 AS ends\
             ) AS around ON s.session_id = around.session_id \
             WHERE s.project = {{project:String}} AND s.session_id IN {{sessions:Array(UUID)}} \
             AND s.on_main_thread AND s.parent_span_id = 0 \
             AND s.start >= fromUnixTimestamp64Micro({{from:Int64}}, 'UTC') \
             AND s.start <= fromUnixTimestamp64Micro({{to:Int64}}, 'UTC') \
             AND around.begins <= toUnixTimestamp64Micro(s.start) \
             AND toUnixTimestamp64Micro(s.start) + toInt64(s.duration_us) <= around.ends LIMIT {MOST_TRACES}",
            self.database()
        );
        let sessions: Vec<String> = main().map(|span| span.session_id.to_string()).collect();
        let begins: Vec<i64> = main().map(|span| span.start).collect();
        let ends: Vec<i64> = main().map(end).collect();
        let query = (self.question(&sql)?)
            .param("project", project)
            .param("sessions", sessions)
            .param("from", from)
            .param("to", to)
            .param("begins", begins)
            .param("ends", ends);
        let (rows, _) = self.collect::<TraceRow>(query).await?;
        Ok(rows.into_iter().map(|row| row.trace_id).collect())
    }
}

/// Returns the place before which all sessions are read whole, if there are more than `most` spans. Places are in order.
fn bound(places: impl ExactSizeIterator<Item = u64> + Clone, most: u64) -> Option<u64> {
    if places.len() as u64 <= most {
        return None;
    }
    let (first, last) = (places.clone().next()?, places.last()?);
    // One session alone may have too many spans.
    Some(if first == last {
        last.saturating_add(1)
    } else {
        last
    })
}

/// Returns the share of all places below a bound.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn share_below(bound: u64) -> f64 {
    (bound as f64 / u64::MAX as f64).max(f64::MIN_POSITIVE)
}

/// Selects all spans of the sessions below a bound.
fn around(reading: &Reading, bound: Option<u64>, database: &str) -> Statement {
    let mut statement = Statement::default();
    let rows = reading.rows(&Part::whole(reading), database, &mut statement);
    let sessions = match bound {
        None => rows.clone(),
        Some(bound) => {
            statement.text("bound", &bound.to_string());
            format!("{rows} AND {PLACE} < {{bound:UInt64}}")
        }
    };
    // A period of arrival does not limit the time of spans.
    let near = if reading.received {
        "1"
    } else {
        let (from, to) = (reading.span.from - AROUND, reading.span.to + AROUND);
        statement
            .numbers
            .push(("near_from".to_owned(), from.as_micros()));
        statement
            .numbers
            .push(("near_to".to_owned(), to.as_micros()));
        "s.start >= fromUnixTimestamp64Micro({near_from:Int64}, 'UTC') AND s.start < fromUnixTimestamp64Micro({near_to:Int64}, 'UTC')"
    };
    let limit = MOST_READ + 1;
    statement.sql = format!(
        "SELECT s.trace_id, s.span_id, s.parent_span_id, s.session_id, toString(s.thread) AS thread, s.on_main_thread, \
         toUnixTimestamp64Micro(s.start) AS start, s.duration_us, {package} AS package, s.sample_rate, \
         toBool({rows}) AS is_counted, {PLACE} AS place \
         FROM `{database}`.spans AS s WHERE s.project = {{project:String}} AND {near} \
         AND s.session_id IN (SELECT s.session_id FROM `{database}`.spans AS s WHERE {sessions}) \
         ORDER BY place, s.session_id LIMIT {limit}",
        package = OfFunction::Package.of_row(&package("s.code_class"), database),
    );
    statement
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_read_whole_up_to_the_bound() {
        let bound_of = |places: &[u64], most| bound(places.iter().copied(), most);
        assert_eq!(bound_of(&[3, 3, 5], 3), None);
        assert_eq!(bound_of(&[3, 3, 5, 9], 3), Some(9));
        assert_eq!(bound_of(&[3, 3, 3], 2), Some(4));
        assert!((share_below(1 << 63) - 0.5).abs() < 1e-9);
    }
}
