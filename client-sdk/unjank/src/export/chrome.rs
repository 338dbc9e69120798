//! The Trace Event Format, which Perfetto and `chrome://tracing` open.

mod bars;

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use unjank_protocol::Timestamp;

use self::bars::Tracks;
use super::tree::nodes;
use super::view::{Read, View};
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
/// * Manual spans are repeated on a track of their own, `manual spans`, and periods in which frames were dropped are bars on the track
///   `dropped frames`.
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
    let events: Vec<View<'e>> = events.into_iter().filter_map(View::of).collect();
    write_trace(&events, &mut out)
}

/// Writes the trace of a report that [`crate::ReportFile`] has written, as [`chrome_trace`] does. Returns the number of lines that could
/// not be read: a process that is killed may leave half a line at the end. Reads the whole report into memory.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let [report, trace] = ["run.jsonl", "trace.json"].map(|name| folder.path().join(name));
/// # std::fs::write(&report, "")?;
/// let unreadable = unjank::export::report_to_chrome_trace(&report, &trace)?;
/// assert_eq!(unreadable, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If the report cannot be read, is not UTF-8, or the trace cannot be written.
pub fn report_to_chrome_trace(
    report: impl AsRef<Path>,
    trace: impl AsRef<Path>,
) -> io::Result<usize> {
    let report = std::fs::read_to_string(report)?;
    let lines = report.lines().filter(|line| !line.trim().is_empty());
    let (read, failed): (Vec<_>, Vec<_>) = lines.map(Read::line).partition(Result::is_ok);
    let read: Vec<Read<'_>> = read.into_iter().flatten().collect();
    let events: Vec<View<'_>> = read.iter().filter_map(Read::view).collect();
    super::write(trace.as_ref(), |file| write_trace(&events, file))?;
    Ok(failed.len())
}

fn write_trace(events: &[View<'_>], mut out: impl Write) -> io::Result<()> {
    let first = events.iter().map(|event| event.start()).min();
    let first = first.unwrap_or_default();
    let other = json!({"start": first});
    writeln!(
        out,
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{other},\"traceEvents\":["
    )?;
    let nodes = nodes(events.iter().filter_map(|event| event.span()));
    let tracks = Tracks::new(&nodes, events);
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
    for entry in events.iter().filter_map(|event| point(*event, first)) {
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

/// Returns the entry of a counter or an instant, which are on no track.
fn point(event: View<'_>, first: Timestamp) -> Option<Entry<'_>> {
    let (name, cat, ph, args) = match event {
        View::FrameWindow(window) => {
            let args = json!({
                "drawn": window.frames_drawn, "dropped": window.frames_dropped,
                "slow": window.slow_frames, "frozen": window.frozen_frames, "jank_ms": window.jank_ms,
            });
            ("frames", "frames", "C", args)
        }
        View::Metric(metric) if metric.value.is_finite() => (
            metric.name.as_str(),
            "metric",
            "C",
            json!({"value": metric.value}),
        ),
        View::Recomposition(redrawn) => {
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
        ts: event.start().micros_since(first),
        dur: None,
        pid: PID,
        tid: 0,
        s: (ph == "i").then_some("p"),
        args,
    })
}
