//! Events that have a duration, on tracks.

use serde_json::{Map, Value, json};
use unjank_protocol::{
    AppStart, Frame, FrameWindow, Jank, PageLoad, SpanEvent, SpanKind, Timestamp,
};

use super::{Entry, PID};
use crate::export::lanes::lanes;
use crate::export::tree::Node;
use crate::export::view::View;
use crate::report::demangled;

/// An event with a duration.
#[derive(Debug)]
struct Bar<'e> {
    name: &'e str,
    category: &'static str,
    start_us: i64,
    end_us: i64,
    args: Value,
    /// The events inside it.
    events: &'e [SpanEvent<'e>],
}

/// Bars that belong together, such as those of a thread.
#[derive(Debug)]
struct Group<'e> {
    name: &'e str,
    is_main: bool,
    bars: Vec<Bar<'e>>,
}

/// All bars, and the track of each.
#[derive(Debug)]
pub(super) struct Tracks<'e> {
    names: Vec<(usize, String)>,
    /// Each with its track and its end.
    bars: Vec<(Bar<'e>, usize, i64)>,
}

impl<'e> Tracks<'e> {
    pub(super) fn new(nodes: &[Node<'e>], events: &[View<'e>]) -> Self {
        let mut groups: Vec<Group<'e>> = Vec::new();
        for node in nodes {
            let thread = (node.span.thread.as_str(), node.span.on_main_thread);
            add(&mut groups, thread, of_span(node));
        }
        // Groups with the main thread come first, the others in the order of their first spans.
        groups.sort_by_key(|group| !group.is_main);
        for event in events {
            match event {
                View::Span(_) | View::Metric(_) | View::Recomposition(_) => {}
                View::FrameWindow(window) => add_dropped(&mut groups, window),
                View::Jank(jank) => add(&mut groups, ("stalls", false), of_jank(jank)),
                View::PageLoad(load) => add(&mut groups, ("page loads", false), of_load(load)),
                View::AppStart(start) => add(&mut groups, ("app starts", false), of_start(start)),
            }
        }
        for node in nodes
            .iter()
            .filter(|node| node.span.kind == SpanKind::Manual)
        {
            let copy = Bar {
                category: "manual_span",
                ..of_span(node)
            };
            add(&mut groups, ("manual spans", false), copy);
        }
        let mut tracks = Self {
            names: Vec::new(),
            bars: Vec::new(),
        };
        for group in groups {
            tracks.draw(group);
        }
        tracks
    }

    fn draw(&mut self, mut group: Group<'e>) {
        let order = |bar: &Bar<'_>| (bar.start_us, std::cmp::Reverse(bar.end_us));
        group.bars.sort_by_key(order);
        let times: Vec<_> = group
            .bars
            .iter()
            .map(|bar| (bar.start_us, bar.end_us))
            .collect();
        let drawn = lanes(&times);
        let most = drawn
            .iter()
            .map(|(lane, _)| *lane)
            .max()
            .unwrap_or_default();
        let before = self.names.len().saturating_add(1);
        for lane in 0..=most {
            let name = match lane {
                0 => group.name.to_owned(),
                _ => format!("{} ({})", group.name, lane.saturating_add(1)),
            };
            self.names.push((before.saturating_add(lane), name));
        }
        for (bar, (lane, end)) in group.bars.into_iter().zip(drawn) {
            self.bars.push((bar, before.saturating_add(lane), end));
        }
    }

    /// Returns the tracks by number, from 1.
    pub(super) fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        self.names.iter().map(|(tid, name)| (*tid, name.as_str()))
    }

    pub(super) fn entries(&self, first: Timestamp) -> impl Iterator<Item = Entry<'_>> {
        self.bars.iter().flat_map(move |(bar, tid, end)| {
            let whole = Entry {
                name: bar.name,
                cat: bar.category,
                ph: "X",
                ts: bar.start_us.saturating_sub(first.as_micros()),
                dur: Some(end.saturating_sub(bar.start_us)),
                pid: PID,
                tid: *tid,
                s: None,
                args: bar.args.clone(),
            };
            let inside = bar.events.iter().map(move |event| Entry {
                name: &event.name,
                cat: "event",
                ph: "i",
                ts: event.time.micros_since(first),
                dur: None,
                pid: PID,
                tid: *tid,
                s: Some("t"),
                args: json!({}),
            });
            std::iter::once(whole).chain(inside)
        })
    }
}

fn add<'e>(groups: &mut Vec<Group<'e>>, (name, is_main): (&'e str, bool), bar: Bar<'e>) {
    let same = |group: &&mut Group<'_>| (group.name, group.is_main) == (name, is_main);
    match groups.iter_mut().find(same) {
        Some(group) => group.bars.push(bar),
        None => groups.push(Group {
            name,
            is_main,
            bars: vec![bar],
        }),
    }
}

fn of_span<'e>(node: &Node<'e>) -> Bar<'e> {
    let span = node.span;
    let mut args = Map::new();
    for (name, value) in &span.attributes.0 {
        args.insert(name.to_string(), json!(value));
    }
    let fields = [
        ("status", json!(span.status)),
        ("page", json!(span.page)),
        ("self_us", json!(node.self_us)),
        ("class", json!(span.code.class)),
        ("function", json!(span.code.function)),
        (
            "source",
            json!(format!("{}:{}", span.code.file, span.code.line)),
        ),
        ("span_id", json!(span.span_id)),
        ("trace_id", json!(span.trace_id)),
    ];
    args.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    Bar {
        name: &span.name,
        category: span.kind.as_str(),
        start_us: node.start_us,
        end_us: node.start_us.saturating_add(span.duration_us.max(0)),
        args: Value::Object(args),
        events: &span.events,
    }
}

/// Makes a bar of an event that is timed in milliseconds.
fn bar<'e>(
    name: &'e str,
    category: &'static str,
    (start, duration_ms): (Timestamp, i64),
    args: Value,
) -> Bar<'e> {
    let start_us = start.as_micros();
    let duration_us = duration_ms.max(0).saturating_mul(1_000);
    Bar {
        name,
        category,
        start_us,
        end_us: start_us.saturating_add(duration_us),
        args,
        events: &[],
    }
}

/// Adds the bar of a window in which frames were dropped.
fn add_dropped<'e>(groups: &mut Vec<Group<'e>>, window: &'e FrameWindow<'e>) {
    if window.frames_dropped == 0 {
        return;
    }
    let name = match window.page.as_str() {
        "" => "dropped frames",
        page => page,
    };
    let args = json!({
        "dropped": window.frames_dropped, "drawn": window.frames_drawn, "longest_drop": window.longest_drop,
        "jank_ms": window.jank_ms,
    });
    let time = (window.start, window.duration_ms);
    add(
        groups,
        ("dropped frames", false),
        bar(name, "dropped_frames", time, args),
    );
}

fn of_jank<'e>(jank: &'e Jank<'e>) -> Bar<'e> {
    let stack: Vec<_> = jank.stack.iter().map(shown).collect();
    let args = json!({"thread": jank.thread, "page": jank.page, "stack": stack});
    bar(
        jank.kind.as_str(),
        "jank",
        (jank.start, jank.duration_ms),
        args,
    )
}

/// Returns a frame as text, with a demangled function: Rust symbols come mangled from the device.
fn shown(frame: &Frame<'_>) -> String {
    let function = demangled(&frame.function);
    let name = if frame.class.is_empty() {
        function
    } else {
        format!("{}.{function}", frame.class)
    };
    format!("{name} ({}:{})", frame.file, frame.line)
}

fn of_load<'e>(load: &'e PageLoad<'e>) -> Bar<'e> {
    let args = json!({
        "t1_ms": load.t1_ms, "t2_ms": load.t2_ms, "t3_ms": load.t3_ms,
        "launch": load.launch, "outcome": load.outcome,
    });
    bar(&load.page, "page_load", (load.start, load.total_ms), args)
}

fn of_start<'e>(start: &'e AppStart<'e>) -> Bar<'e> {
    let args = json!({"page": start.page, "phases": start.phases});
    bar(
        start.kind.as_str(),
        "app_start",
        (start.start, start.duration_ms),
        args,
    )
}
