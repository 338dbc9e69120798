//! Events as text, for the developer.

use std::fmt::Write as _;
use std::io::Write as _;

use unjank_protocol::{Frame, Jank, Span};

use super::Reporter;
use crate::event::Event;

/// Prints each event to standard error: a line, and for a stall also its whole stack, innermost function first. The line of a span has
/// all its facts: duration, thread, `file:line`, kind, status, page, ids, tags and attributes. [`crate::Mode::Development`] adds this
/// reporter automatically.
///
/// ```
/// let config = unjank::Config::new("http://127.0.0.1:8080", "demo")
///     .mode(unjank::Mode::Test)
///     .reporter(unjank::Console); // this mode adds none automatically
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Console;

impl Reporter for Console {
    fn stall_began(&self, stall: &Jank<'_>) {
        print(&of_open_stall(stall));
    }

    fn report(&self, event: &Event) {
        self.report_tagged(event, &[]);
    }

    fn report_tagged(&self, event: &Event, tags: &'static [&'static str]) {
        print(&text(event, tags));
    }
}

/// Prints a text for the developer, or nothing if nobody reads standard error any longer: `eprintln!` would panic then.
pub(crate) fn print(text: &str) {
    // In one call, so that lines of the app do not come between.
    let line = format!("unjank: {text}\n");
    let _unread = std::io::stderr().write_all(line.as_bytes()).is_err();
}

fn text(event: &Event, tags: &[&str]) -> String {
    match event {
        Event::Span(span) => of_span(span, tags),
        Event::Jank(jank) => of_jank(jank),
        Event::FrameWindow(window) => format!(
            "{} drew {} frames and dropped {}, {} ms of jank",
            window.page, window.frames_drawn, window.frames_dropped, window.jank_ms
        ),
        Event::PageLoad(load) => {
            format!("{} {} after {} ms", load.page, load.outcome, load.total_ms)
        }
        Event::Metric(metric) => format!("{} = {}", metric.name, metric.value),
        Event::AppStart(start) => format!("{} start in {} ms", start.kind, start.duration_ms),
        Event::Traffic(traffic) => format!(
            "{} {} sent {} B, received {} B",
            traffic.source, traffic.network, traffic.tx_bytes, traffic.rx_bytes
        ),
        Event::Recomposition(redrawn) => format!(
            "{} redrawn {} times by {}",
            redrawn.function, redrawn.count, redrawn.cause
        ),
    }
}

fn of_span(span: &Span<'_>, tags: &[&str]) -> String {
    let mut text = format!(
        "span {} {:.3} ms on {} at {}:{} kind={} status={}",
        span.name,
        milliseconds(span.duration_us),
        span.thread,
        span.code.file,
        span.code.line,
        span.kind,
        span.status,
    );
    if !span.page.is_empty() {
        add(&mut text, "page", &span.page);
    }
    add(&mut text, "id", &format!("{:016x}", span.span_id.0));
    let parent = span.parent_span_id.map(|id| format!("{:016x}", id.0));
    add(&mut text, "parent", parent.as_deref().unwrap_or("none"));
    add(&mut text, "trace", &format!("{:032x}", span.trace_id.0));
    if !tags.is_empty() {
        add(&mut text, "tags", &tags.join(","));
    }
    for (name, value) in &span.attributes.0 {
        add(&mut text, name, value);
    }
    for event in &span.events {
        let after_us = event.time.micros_since(span.start);
        let line = write!(
            text,
            " [{} after {:.3} ms]",
            &*event.name,
            milliseconds(after_us)
        );
        // Writing into a string does not fail.
        line.unwrap_or_default();
    }
    text
}

fn add(text: &mut String, name: &str, value: &str) {
    for part in [" ", name, "=", value] {
        text.push_str(part);
    }
}

/// The number of functions that are printed while a stall goes on.
const CALLERS: usize = 5;

fn of_open_stall(stall: &Jank<'_>) -> String {
    let named = stall.stack.iter();
    let named = named.filter(|frame| !frame.function.is_empty());
    let names: Vec<String> = named.map(shown_frame).take(CALLERS).collect();
    let stack = match names.is_empty() {
        true => no_stack(stall),
        false => names.join(" < "),
    };
    format!(
        "{} is blocked for {} ms so far{}: {stack}",
        stall.thread,
        stall.duration_ms,
        on_page(&stall.page)
    )
}

/// Says that there is no stack, and why if that is known.
fn no_stack(stall: &Jank<'_>) -> String {
    match stall.stack_missing.as_str() {
        "" => "no stack".to_owned(),
        reason => format!("no stack, {reason}"),
    }
}

fn on_page(page: &str) -> String {
    match page {
        "" => String::new(),
        page => format!(" on the page {page}"),
    }
}

fn of_jank(jank: &Jank<'_>) -> String {
    let mut text = format!(
        "{} of {} ms on {}{}:",
        jank.kind,
        jank.duration_ms,
        jank.thread,
        on_page(&jank.page)
    );
    for frame in &jank.stack {
        text.push_str("\n    ");
        text.push_str(&shown_frame(frame));
    }
    if jank.stack.is_empty() {
        text.push(' ');
        text.push_str(&no_stack(jank));
    }
    text
}

/// Returns a frame as text, with a demangled function: Rust symbols are mangled on the device. A function without a name is shown by its
/// module and its offset in it.
pub(crate) fn shown_frame(frame: &Frame<'_>) -> String {
    let function = demangled(&frame.function);
    let mut text = match (frame.class.as_str(), function.as_str()) {
        (_, "") => {
            let offset = frame.offset.or(frame.address).unwrap_or_default();
            format!("{}+{offset:#x}", frame.module)
        }
        ("", _) => function,
        (class, _) => format!("{class}.{function}"),
    };
    if !frame.file.is_empty() {
        let place = write!(text, " ({}:{})", frame.file, frame.line);
        place.unwrap_or_default();
    }
    text
}

/// Demangles the name of a function of Rust. The hash, which differs between builds, is left out.
pub(crate) fn demangled(function: &str) -> String {
    let name = rustc_demangle::try_demangle(function);
    name.map_or_else(|_| function.to_owned(), |name| format!("{name:#}"))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "for people, to a thousandth of a millisecond"
)]
fn milliseconds(micros: i64) -> f64 {
    micros as f64 / 1_000.0
}
