//! The Trace Event Format, which Perfetto and `chrome://tracing` open.

mod bars;

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};
use unjank_protocol::Timestamp;

use self::bars::Tracks;
use super::tree::nodes;
use crate::event::Event;

/// One process: the app.
const PID: u32 = 1;

/// An entry of the file.
#[derive(Debug, Serialize)]
struct Entry<'e> {
    name: &'e str,
    cat: &'e str,
    /// `X`: from `ts` for `dur`; `i`: at `ts`; `C`: values from `ts` on; `M`: a name.
    ph: &'e str,
    /// Microseconds since the first event of the file.
    ts: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<i64>,
    pid: u32,
    tid: usize,
    /// The scope of an instant: `t`hread or `p`rocess.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'e str>,
    args: Value,
}

/// Writes events in the Trace Event Format (JSON), one per line, which `ui.perfetto.dev` and `chrome://tracing` open.
///
/// * Spans are complete events (`ph` is `X`), on a track for each thread. Spans that overlap without nesting, as in `async` code,
///   go to further tracks of the thread, such as `worker (2)`. Events inside a span are instants (`i`).
/// * Stalls, page loads and starts have their own tracks; the stack of a stall is in its arguments.
/// * Frame windows and metrics are counters (`C`), and redrawn functions are instants.
/// * Traffic is left out, because it covers whole days.
///
/// Times are in microseconds since the first event; `otherData.start` is the time of that event.
///
/// ```
/// let mut file = Vec::new();
/// unjank::export::chrome_trace(&[], &mut file)?;
/// let trace: serde_json::Value = serde_json::from_slice(&file)?;
/// assert!(trace["traceEvents"].is_array());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If `out` cannot be written.
pub fn chrome_trace<'e>(
    events: impl IntoIterator<Item = &'e Event>,
    mut out: impl Write,
) -> io::Result<()> {
    let events: Vec<&Event> = events.into_iter().collect();
    let first = events.iter().filter_map(|event| start(event)).min();
    let first = first.unwrap_or_default();
    let other = json!({"start": first});
    writeln!(
        out,
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{other},\"traceEvents\":["
    )?;
    let nodes = nodes(events.iter().copied());
    let tracks = Tracks::new(&nodes, &events);
    write_entry(
        &mut out,
        &named("process_name", 0, json!({"name": "app"})),
        true,
    )?;
    for (tid, name) in tracks.names() {
        let entry = named("thread_name", tid, json!({"name": name}));
        write_entry(&mut out, &entry, false)?;
        let entry = named("thread_sort_index", tid, json!({"sort_index": tid}));
        write_entry(&mut out, &entry, false)?;
    }
    for entry in tracks.entries(first) {
        write_entry(&mut out, &entry, false)?;
    }
    for entry in events.iter().filter_map(|event| point(event, first)) {
        write_entry(&mut out, &entry, false)?;
    }
    writeln!(out, "\n]}}")
}

fn write_entry(out: &mut impl Write, entry: &Entry<'_>, first: bool) -> io::Result<()> {
    if !first {
        out.write_all(b",\n")?;
    }
    serde_json::to_writer(out, entry).map_err(io::Error::from)
}

fn named<'e>(what: &'e str, tid: usize, args: Value) -> Entry<'e> {
    Entry {
        name: what,
        cat: "__metadata",
        ph: "M",
        ts: 0,
        dur: None,
        pid: PID,
        tid,
        s: None,
        args,
    }
}

/// Returns when an event began; `None` for traffic.
fn start(event: &Event) -> Option<Timestamp> {
    match event {
        Event::Span(span) => Some(span.start),
        Event::FrameWindow(window) => Some(window.start),
        Event::Jank(jank) => Some(jank.start),
        Event::PageLoad(load) => Some(load.start),
        Event::Metric(metric) => Some(metric.time),
        Event::AppStart(start) => Some(start.start),
        Event::Recomposition(redrawn) => Some(redrawn.start),
        Event::Traffic(_) => None,
    }
}

/// Returns the entry of a counter or an instant, which are on no track.
fn point(event: &Event, first: Timestamp) -> Option<Entry<'_>> {
    let (name, cat, ph, args) = match event {
        Event::FrameWindow(window) => {
            let args = json!({
                "drawn": window.frames_drawn, "dropped": window.frames_dropped,
                "slow": window.slow_frames, "frozen": window.frozen_frames, "jank_ms": window.jank_ms,
            });
            ("frames", "frames", "C", args)
        }
        Event::Metric(metric) if metric.value.is_finite() => (
            metric.name.as_str(),
            "metric",
            "C",
            json!({"value": metric.value}),
        ),
        Event::Recomposition(redrawn) => {
            let args = json!({
                "count": redrawn.count, "cause": redrawn.cause, "page": redrawn.page, "window_ms": redrawn.window_ms,
            });
            (redrawn.function.as_str(), "recomposition", "i", args)
        }
        _ => return None,
    };
    Some(Entry {
        name,
        cat,
        ph,
        ts: start(event)?.micros_since(first),
        dur: None,
        pid: PID,
        tid: 0,
        s: (ph == "i").then_some("p"),
        args,
    })
}
