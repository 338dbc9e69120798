//! A trace in Chrome's trace event format, which Perfetto and `chrome://tracing` open.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::store::reads::StoredSpan;

/// Times are truncated to microseconds, so a child may seem to end this much after its parent.
const ROUNDING_US: i64 = 1;

/// Returns complete events with times in microseconds. Each thread has one track, and more if its spans overlap without one being inside
/// the other, as those of `async` code do: Perfetto drops such events of one track.
#[must_use]
pub fn chrome_trace(spans: &[StoredSpan]) -> Value {
    let mut ordered: Vec<&StoredSpan> = spans.iter().collect();
    ordered.sort_by_key(|span| (&span.thread, span.start, Reverse(span.duration_us)));
    let process = spans.first().map(|span| {
        let name = format!("{} on {}", span.app_version, span.device_model);
        json!({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": name}})
    });
    let mut events: Vec<Value> = process.into_iter().collect();
    let mut bars: Vec<(&StoredSpan, i64, usize)> = Vec::new();
    let mut tracks = 0;
    for of_thread in ordered.chunk_by(|one, other| one.thread == other.thread) {
        let times = of_thread.iter().map(|span| (span.start, end(span)));
        let (drawn, count) = tracks_of(times);
        let thread = of_thread.first().map_or("", |span| span.thread.as_str());
        for track in 1..=count {
            let name = match track {
                1 => thread.to_owned(),
                _ => format!("{thread} ({track})"),
            };
            events.push(json!({"ph": "M", "name": "thread_name", "pid": 1, "tid": tracks + track, "args": {"name": name}}));
        }
        let placed = of_thread.iter().zip(drawn);
        bars.extend(placed.map(|(span, (track, end))| (*span, end, tracks + track)));
        tracks += count;
    }
    bars.sort_by_key(|(span, end, _)| (span.start, Reverse(*end)));
    events.extend(
        bars.into_iter()
            .map(|(span, end, track)| event(span, end, track)),
    );
    json!({"displayTimeUnit": "ms", "traceEvents": events})
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

fn event(span: &StoredSpan, end: i64, track: usize) -> Value {
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
    json!({
        "ph": "X", "name": span.name, "cat": span.kind, "ts": span.start, "dur": end - span.start,
        "pid": 1, "tid": track, "args": args
    })
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
