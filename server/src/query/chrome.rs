//! A trace in Chrome's trace event format, which Perfetto and `chrome://tracing` open.

use std::cmp::Reverse;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::store::reads::StoredSpan;

/// Times are truncated to microseconds, so a child may seem to end this much after its parent.
const ROUNDING_US: i64 = 1;

/// Returns complete events with times in microseconds. Each thread has one track, and more if its spans overlap without one being inside
/// the other, as those of `async` code do: Perfetto drops such events of one track.
#[must_use]
pub fn chrome_trace(spans: &[StoredSpan]) -> Value {
    let mut ordered: Vec<&StoredSpan> = spans.iter().collect();
    ordered.sort_by_key(|span| {
        let duration = Reverse(span.duration_us);
        (process(span), &span.thread, span.start, duration)
    });
    let mut events: Vec<Value> = Vec::new();
    let mut bars: Vec<(&StoredSpan, i64, [usize; 2])> = Vec::new();
    let (mut pid, mut tracks) = (0, 0);
    let mut last = None;
    for of_thread in ordered.chunk_by(|one, other| thread(one) == thread(other)) {
        let first = of_thread[0];
        if last != Some(process(first)) {
            last = Some(process(first));
            pid += 1;
            let name = process_name(first);
            events.push(
                json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}),
            );
        }
        let times = of_thread.iter().map(|span| (span.start, end(span)));
        let (drawn, count) = tracks_of(times);
        for track in 1..=count {
            let name = match track {
                1 => first.thread.clone(),
                _ => format!("{} ({track})", first.thread),
            };
            events.push(json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tracks + track, "args": {"name": name}}));
        }
        let placed = of_thread.iter().zip(drawn);
        bars.extend(placed.map(|(span, (track, end))| (*span, end, [pid, tracks + track])));
        tracks += count;
    }
    bars.sort_by_key(|(span, end, _)| (span.start, Reverse(*end)));
    events.extend(
        bars.into_iter()
            .map(|(span, end, place)| event(span, end, place)),
    );
    json!({"displayTimeUnit": "ms", "traceEvents": events})
}

/// The running app of a span. A trace may contain several, and their threads may have the same names.
fn process(span: &StoredSpan) -> (&str, &str, &str, Uuid) {
    let StoredSpan {
        app_id,
        app_version,
        device_model,
        install_id,
        ..
    } = span;
    (app_id, app_version, device_model, *install_id)
}

fn thread(span: &StoredSpan) -> ((&str, &str, &str, Uuid), &str) {
    (process(span), &span.thread)
}

fn process_name(span: &StoredSpan) -> String {
    let app = format!("{} {}", span.app_id, span.app_version);
    match span.device_model.as_str() {
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

fn event(span: &StoredSpan, end: i64, [pid, track]: [usize; 2]) -> Value {
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
        "pid": pid, "tid": track, "args": args
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
