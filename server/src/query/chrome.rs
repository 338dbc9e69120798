//! A trace in Chrome's trace event format, which Perfetto and `chrome://tracing` open.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::period::LONGEST;
use super::{NamedQuery, QueryError};
use crate::store::ClickHouse;
use crate::store::reads::{JankEvent, StackDetail, StoredFrame, StoredSpan};

/// Times are truncated to microseconds, so a child may seem to end this much after its parent.
const ROUNDING_US: i64 = 1;
/// Maximum number of janks of a trace, latest first.
const MOST_JANKS: u64 = 1_000;
/// Janks that began at most this long before a trace are found.
const BEFORE: Duration = Duration::from_secs(3_600);
const MANUAL: &str = "manual";

/// The janks of the sessions of a trace, while a span of the trace was open.
#[derive(Debug, Default)]
pub struct TraceJanks {
    janks: Vec<JankEvent>,
    stacks: HashMap<u64, StackDetail>,
}

impl TraceJanks {
    /// Reads the janks during a trace, which `spans` must be of.
    pub async fn read(
        clickhouse: &ClickHouse,
        project: &str,
        spans: &[StoredSpan],
        now: UnixTime,
    ) -> Result<Self, QueryError> {
        let starts = spans.iter().map(|span| span.start);
        let (Some(first), Some(start), Some(last)) =
            (spans.first(), starts.min(), spans.iter().map(end).max())
        else {
            return Ok(Self::default());
        };
        let from = UnixTime::from_micros(start) - BEFORE;
        let to = UnixTime::from_micros(last.saturating_add(1)).min(from + LONGEST);
        let trace = first.trace_id.to_string();
        let ask = NamedQuery {
            from: Some(from),
            to: Some(to),
            measures: vec!["count".to_owned()],
            filters: vec![("during_trace".to_owned(), trace)],
            ..NamedQuery::default()
        };
        let reading = ask.single(project, "janks", now)?;
        let (janks, _) = clickhouse.jank_events(&reading, MOST_JANKS).await?;
        let hashes: Vec<u64> = janks.iter().map(|jank| jank.stack_hash).collect();
        let stacks = clickhouse.stacks_of(project, &hashes).await?;
        Ok(Self { janks, stacks })
    }
}

/// The running app of a span. A trace may contain several, and their threads may have the same names.
type Process<'s> = (&'s str, &'s str, &'s str, Uuid);

/// A thread of a process, or bars of one kind, which come after the threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Lane<'s> {
    process: Process<'s>,
    after_threads: bool,
    name: &'s str,
}

/// An event with a duration.
struct Bar<'s> {
    lane: Lane<'s>,
    name: &'s str,
    category: &'s str,
    start: i64,
    end: i64,
    args: Value,
}

impl<'s> Bar<'s> {
    fn order(&self) -> (Lane<'s>, i64, Reverse<i64>) {
        (self.lane, self.start, Reverse(self.end))
    }
}

/// Returns complete events with times in microseconds. Each thread has one track, and more if its spans overlap without one being inside
/// the other, as those of `async` code do: Perfetto drops such events of one track. Below the threads of a process are its stalls and, if
/// there are other spans, a copy of its manual spans.
#[must_use]
pub fn chrome_trace(spans: &[StoredSpan], janks: &TraceJanks) -> Value {
    let mut bars = bars(spans, janks);
    bars.sort_by_key(Bar::order);
    let mut events: Vec<Value> = Vec::new();
    let mut placed: Vec<(&Bar<'_>, i64, [usize; 2])> = Vec::new();
    let (mut pid, mut tracks) = (0, 0);
    let mut last = None;
    for of_lane in bars.chunk_by(|one, other| one.lane == other.lane) {
        let lane = of_lane[0].lane;
        if last != Some(lane.process) {
            last = Some(lane.process);
            pid += 1;
            let name = process_name(lane.process);
            events.push(
                json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}),
            );
        }
        let (drawn, count) = tracks_of(of_lane.iter().map(|bar| (bar.start, bar.end)));
        for track in 1..=count {
            let name = match track {
                1 => lane.name.to_owned(),
                _ => format!("{} ({track})", lane.name),
            };
            events.push(json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tracks + track, "args": {"name": name}}));
        }
        let drawn = of_lane.iter().zip(drawn);
        placed.extend(drawn.map(|(bar, (track, end))| (bar, end, [pid, tracks + track])));
        tracks += count;
    }
    placed.sort_by_key(|(bar, end, _)| (bar.start, Reverse(*end)));
    events.extend(placed.into_iter().map(|(bar, end, [pid, track])| {
        json!({
            "ph": "X", "name": bar.name, "cat": bar.category, "ts": bar.start, "dur": end - bar.start,
            "pid": pid, "tid": track, "args": bar.args
        })
    }));
    json!({"displayTimeUnit": "ms", "traceEvents": events})
}

fn bars<'s>(spans: &'s [StoredSpan], janks: &'s TraceJanks) -> Vec<Bar<'s>> {
    let mut bars: Vec<Bar<'s>> = spans.iter().map(of_span).collect();
    if spans.iter().any(|span| span.kind != MANUAL) {
        let manual = spans.iter().filter(|span| span.kind == MANUAL);
        bars.extend(manual.map(|span| Bar {
            lane: lane(process(span), "manual spans"),
            ..of_span(span)
        }));
    }
    let processes: HashMap<Uuid, Process<'s>> = spans
        .iter()
        .map(|span| (span.session_id, process(span)))
        .collect();
    bars.extend(janks.janks.iter().filter_map(|jank| {
        let process = processes.get(&jank.session_id)?;
        Some(of_jank(jank, &janks.stacks, *process))
    }));
    bars
}

fn lane<'s>(process: Process<'s>, name: &'s str) -> Lane<'s> {
    Lane {
        process,
        after_threads: true,
        name,
    }
}

fn of_span(span: &StoredSpan) -> Bar<'_> {
    Bar {
        lane: Lane {
            process: process(span),
            after_threads: false,
            name: &span.thread,
        },
        name: &span.name,
        category: &span.kind,
        start: span.start,
        end: end(span),
        args: args(span),
    }
}

fn of_jank<'s>(
    jank: &'s JankEvent,
    stacks: &HashMap<u64, StackDetail>,
    process: Process<'s>,
) -> Bar<'s> {
    let frames = stacks.get(&jank.stack_hash).map(|stack| &stack.frames);
    let stack: Vec<String> = frames
        .into_iter()
        .flatten()
        .map(StoredFrame::label)
        .collect();
    Bar {
        lane: lane(process, "stalls"),
        name: &jank.kind,
        category: "jank",
        start: jank.start,
        end: jank
            .start
            .saturating_add(i64::from(jank.duration_ms) * 1_000),
        args: json!({"thread": jank.thread, "page": jank.page, "ended": jank.ended, "stack": stack}),
    }
}

fn process(span: &StoredSpan) -> Process<'_> {
    let StoredSpan {
        app_id,
        app_version,
        device_model,
        install_id,
        ..
    } = span;
    (app_id, app_version, device_model, *install_id)
}

fn process_name((app_id, app_version, device_model, _): Process<'_>) -> String {
    let app = format!("{app_id} {app_version}");
    match device_model {
        "" => app.trim().to_owned(),
        model => format!("{} on {model}", app.trim()),
    }
}

fn end(span: &StoredSpan) -> i64 {
    span.start.saturating_add_unsigned(span.duration_us)
}

/// Finds a track, from 1, and the drawn end for each bar, and counts the tracks. Bars are given by start, the longest first. Bars of one
/// track are beside or inside each other.
fn tracks_of(bars: impl Iterator<Item = (i64, i64)>) -> (Vec<(usize, i64)>, usize) {
    // The ends of the bars that are open in each track, innermost last.
    let mut open: Vec<Vec<i64>> = Vec::new();
    let mut drawn = Vec::new();
    for (start, end) in bars {
        let mut place = None;
        for (track, ends) in open.iter_mut().enumerate() {
            while ends.last().is_some_and(|last| *last <= start) {
                ends.pop();
            }
            let around = ends.last().copied().unwrap_or(i64::MAX);
            if end <= around.saturating_add(ROUNDING_US) {
                let end = end.min(around);
                ends.push(end);
                place = Some((track + 1, end));
                break;
            }
        }
        drawn.push(place.unwrap_or_else(|| {
            open.push(vec![end]);
            (open.len(), end)
        }));
    }
    (drawn, open.len())
}

fn args(span: &StoredSpan) -> Value {
    let mut args = serde_json::Map::new();
    for (name, value) in &span.attributes {
        args.insert(name.clone(), value.clone().into());
    }
    if !span.code_file.is_empty() {
        args.insert(
            "file".to_owned(),
            format!("{}:{}", span.code_file, span.code_line).into(),
        );
    }
    // 0 if unknown.
    if span.uptime_ms > 0 {
        args.insert("uptime_ms".to_owned(), span.uptime_ms.into());
    }
    args.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bars_of_a_track_never_overlap_partially(
            mut bars in proptest::collection::vec((0..60_i64, 0..40_i64), 0..20),
        ) {
            bars.sort_by_key(|(start, long)| (*start, -long));
            let bars: Vec<_> = bars.iter().map(|(start, long)| (*start, start + long)).collect();
            let (drawn, count) = tracks_of(bars.iter().copied());
            for (first, (track, end)) in bars.iter().zip(&drawn) {
                prop_assert!((1..=count).contains(track) && (first.1 - end) <= ROUNDING_US);
                for (second, (other_track, other_end)) in bars.iter().zip(&drawn) {
                    let across = first.0 < second.0 && second.0 < *end && end < other_end;
                    prop_assert!(track != other_track || !across, "{first:?} {second:?}");
                }
            }
        }
    }
}
