//! Panics of the app: the hook for them, and their report as errors with the name `panic`.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, mpsc};
use std::time::Duration;

use unjank_monitors::bounded;
use unjank_protocol::{Frame, Signal};
use unjank_stack_sampler::{Sampler, StackSource};

use super::client;
use super::errors::Failure;
use super::urgent::{self, Urgent};
use crate::bounded_text::bounded_text;
use crate::config::Config;
use crate::deliver::losses::Reason;

/// Further panics of a process are counted as lost: a thread pool may panic for each request.
const MOST: u32 = 20;
/// Lines of a stack in an event.
const LINES: usize = 64;
/// Captured frames, of which the innermost are those of the panic itself.
const DEPTH: usize = 128;
/// All frames of one panic lie within this many frames.
const NEAR: usize = 10;
/// Maximum wait of a panic for its stack. Before an abort, it also waits this long for the disk.
const LONGEST: Duration = Duration::from_millis(1_000);

impl Config {
    /// Reports panics of all threads: as [`crate::error`] does, with the name `panic`, the message (cut at 1 KiB) in the attribute `error`,
    /// the place of the panic, and the stack, innermost frame first, as the span's `events`. At most 20 panics of a process are
    /// reported. The default is `false`, because the message of a panic may contain personal data; [`Config::before_send`] can change it.
    ///
    /// [`crate::init`] installs a panic hook, which then calls the hook that was there before. A panic that is caught is reported, too. On
    /// Linux and Android, the stack is captured as those of stalls are; elsewhere, it is the backtrace of the standard library.
    ///
    /// If the process aborts (`panic = "abort"`, or a panic in a function that cannot unwind), the hook first writes everything to the
    /// [data directory](Config::data_dir), for at most a second, and the next start sends it. A panic of a thread that unwinds costs it the
    /// capture of the stack: some milliseconds, and more the first time.
    ///
    /// ```
    /// let config = unjank::Config::new("http://127.0.0.1:8080", "demo").report_panics(true);
    /// ```
    #[must_use]
    pub fn report_panics(mut self, report: bool) -> Self {
        self.report_panics = report;
        self
    }
}

/// Installs the hook, once per process, if the app wants to know of panics. It is never removed, because later hooks may call it.
pub(crate) fn prepare(config: &Config) {
    static HOOK: Once = Once::new();
    // A thread that panics cannot change the hook.
    let is_wanted = config.report_panics || !config.hooks.on_urgent.is_empty();
    if is_wanted && !std::thread::panicking() {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                notify_of_panic(info);
                report(info);
                before(info);
            }));
        });
    }
}

/// Notifies the listeners of a panic, unless it is the panic of a listener.
fn notify_of_panic(info: &PanicHookInfo<'_>) {
    let is_of_listener = std::thread::current().name() == Some(urgent::THREAD);
    if let Some(shared) = client::current().filter(|_| !is_of_listener) {
        shared.urgent.notify(|| of_panic(info));
    }
}

fn of_panic(info: &PanicHookInfo<'_>) -> Urgent {
    let message = info.payload_as_str().unwrap_or_default();
    let place = info.location().map(ToString::to_string);
    Urgent::Panic {
        thread: std::thread::current()
            .name()
            .unwrap_or("unnamed")
            .to_owned(),
        message: bounded(message).to_owned(),
        place: place.unwrap_or_default(),
    }
}

thread_local! {
    /// Whether this thread is reporting a panic. A panic inside the report is not reported.
    static REPORTS: Cell<bool> = const { Cell::new(false) };
}

static REPORTED: AtomicU32 = AtomicU32::new(0);

fn report(info: &PanicHookInfo<'_>) {
    let Some(shared) = client::current().filter(|shared| shared.config.report_panics) else {
        return;
    };
    let is_free = REPORTS.try_with(|reports| !reports.replace(true));
    if !is_free.unwrap_or(false) {
        return;
    }
    let message = info.payload_as_str().unwrap_or("a value that is no text");
    // The standard library panics again before it aborts, with these messages. The first panic is reported.
    let cannot_unwind = [
        "panic in a function that cannot unwind",
        "panic in a destructor during cleanup",
    ]
    .contains(&message);
    let is_reported = !cannot_unwind && REPORTED.fetch_add(1, Ordering::Relaxed) < MOST;
    if is_reported {
        let place = info.location();
        shared.report_failure(Failure {
            name: "panic".into(),
            message: bounded_text(&message).into_string(),
            place: place.map(|place| (place.file().to_owned(), place.line())),
            lines: stack(),
        });
        shared.hurry();
    } else if !cannot_unwind && shared.settings.load().collects_errors() {
        shared.losses.add(Signal::Spans, Reason::RateLimited, 1);
    }
    // The background thread cannot wait for itself.
    let is_own = std::thread::current().name() == Some("unjank");
    if (cannot_unwind || cfg!(panic = "abort")) && !is_own && shared.config.data_dir.is_some() {
        let _kept = shared.requests.keep(LONGEST);
    }
    let _ending = REPORTS.try_with(|reports| reports.set(false)).is_err();
}

/// Returns the stack of this thread, innermost frame first, without the frames of the panic itself.
fn stack() -> Vec<String> {
    let lines = captured().unwrap_or_else(|| lines_of(&Backtrace::force_capture().to_string()));
    let is_of_panic = |line: &String| {
        let parts = [
            "rust_panic_with_hook",
            "rust_begin_unwind",
            "core::panicking::",
            "std::panicking::begin_panic",
        ];
        parts.iter().any(|part| line.contains(part))
    };
    // The frames of one panic are adjacent. A panic further out is an earlier one, during which this one happened.
    let first = lines.iter().position(is_of_panic);
    let first = first.map_or(0, |first| {
        let mut near = lines.iter().skip(first).take(NEAR);
        let last = near.rposition(is_of_panic).unwrap_or_default();
        first.saturating_add(last).saturating_add(1)
    });
    let lines = lines.into_iter().skip(first).take(LINES);
    lines.map(|line| bounded(&line).to_owned()).collect()
}

/// Captures the stack of this thread from another thread. Returns `None` if that is not supported or fails.
fn captured() -> Option<Vec<String>> {
    let sampler = Sampler::for_this_thread().ok()?;
    let (sender, receiver) = mpsc::sync_channel(1);
    let capture = move || {
        let frames = StackSource::capture(&sampler, DEPTH);
        let frames = frames.ok().filter(|frames| !frames.is_empty());
        // The thread that panics may no longer wait.
        let _late = sender.send(frames).is_err();
    };
    let thread = std::thread::Builder::new().name("unjank-panic".to_owned());
    thread.spawn(capture).ok()?;
    let frames = receiver.recv_timeout(LONGEST).ok()??;
    Some(frames.iter().map(line_of).collect())
}

/// Returns a frame as a line: the function, if its name is known, and where it is in which build of which module.
fn line_of(frame: &Frame<'_>) -> String {
    let name = match &*frame.function {
        "" => "unknown".to_owned(),
        name => format!("{:#}", rustc_demangle::demangle(name)),
    };
    match frame.offset {
        Some(offset) => format!(
            "{name} ({}+{offset:#x}, build {})",
            &*frame.module, &*frame.build_id
        ),
        None => name,
    }
}

/// Returns the frames of a backtrace as the standard library prints it: a line with number and function, and one with the place.
fn lines_of(backtrace: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in backtrace.lines().map(str::trim) {
        if let Some(place) = line.strip_prefix("at ") {
            if let Some(last) = lines.last_mut() {
                last.push_str(&format!(" ({place})"));
            }
        } else if let Some((number, name)) = line.split_once(": ")
            && number.parse::<u32>().is_ok()
        {
            lines.push(name.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backtrace_of_the_standard_library_becomes_lines() {
        let text =
            "   0: shop::pay\n             at ./src/pay.rs:7:5\n   1: <unknown>\n   2: main\n";
        let expected = ["shop::pay (./src/pay.rs:7:5)", "<unknown>", "main"];
        assert_eq!(lines_of(text), expected);
    }

    #[test]
    fn a_stack_begins_where_the_panic_was() {
        let lines = std::thread::spawn(stack).join().unwrap();
        assert!(lines.len() <= LINES && !lines.is_empty());
        assert!(
            lines.iter().any(|line| line.contains("panics::stack")),
            "{lines:#?}"
        );
    }
}
