//! Reporters: they see every event that is sent to the server.

mod console;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use unjank_protocol::{Jank, Resource, SdkHealth};

pub use self::console::Console;
pub(crate) use self::console::{demangled, print, shown_frame};
use crate::event::Event;

/// Sees every event that is sent: traffic as the sums of a batch, everything else event by event. Runs on the background thread: a
/// slow reporter delays uploads, never the app. A panic is caught.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use unjank::{Config, Event, Reporter};
///
/// #[derive(Default)]
/// struct Stalls(AtomicU64);
///
/// impl Reporter for Stalls {
///     fn report(&self, event: &Event) {
///         if matches!(event, Event::Jank(_)) {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// let config = Config::new("http://127.0.0.1:8080", "demo").reporter(Stalls::default());
/// ```
pub trait Reporter: Send + Sync {
    /// Receives an event as it is sent.
    fn report(&self, event: &Event);

    /// Receives an event, and for a span also its tags, which are not sent. The SDK calls only this method; by default, it calls
    /// [`report`](Self::report).
    fn report_tagged(&self, event: &Event, _tags: &'static [&'static str]) {
        self.report(event);
    }

    /// Receives the app and the device that the events are from. Called once, before the first event, without a user.
    fn begin(&self, _resource: &Resource<'_>) {}

    /// Receives a stall that still goes on: its duration until now, and the stack that was captured, or why there is none. Called once
    /// for each stall that lasts until the background thread gets to it, at most a second later.
    /// When the stall is over, [`Reporter::report`] receives it with the same `start` and `thread`, and its whole duration.
    fn stall_began(&self, _stall: &Jank<'_>) {}

    /// Receives what the SDK has lost and cost since the last call.
    fn health(&self, _health: &SdkHealth<'_>) {}

    /// Writes out what is buffered. Called when events were sealed into a batch, and so also on a flush and when the app ends.
    fn flush(&self) {}
}

/// Writes one line of JSON per event to a file, `{"signal": "span", "event": {…}}`, with the fields of the wire format: the
/// report of a test run ([`crate::Mode::Test`]), to keep and to compare. The first line, `resource`, describes the app and the
/// device; `sdk_health` lines report what the SDK lost. `unjank export report --file run.jsonl` turns the file into a page.
///
/// ```
/// # let folder = std::env::temp_dir();
/// let config = unjank::Config::new("http://127.0.0.1:8080", "demo")
///     .app("com.example.shop", "4.12.0")
///     .mode(unjank::Mode::Test)
///     .reporter(unjank::ReportFile::create(folder.join("run.jsonl"))?);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ReportFile(Mutex<BufWriter<File>>);

impl ReportFile {
    /// Creates the file, or truncates an existing one.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self(Mutex::new(BufWriter::new(File::create(path)?))))
    }

    fn line(&self, line: &impl Serialize) {
        let Ok(mut line) = serde_json::to_vec(line) else {
            return;
        };
        line.push(b'\n');
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // If writing fails, the report is shorter; the app goes on.
        let _failed = file.write_all(&line).is_err();
    }
}

/// Lines of the report other than events, in the same form.
#[derive(Serialize)]
#[serde(tag = "signal", content = "event", rename_all = "snake_case")]
enum Aside<'a> {
    Resource(&'a Resource<'a>),
    SdkHealth(&'a SdkHealth<'a>),
}

impl Reporter for ReportFile {
    fn report(&self, event: &Event) {
        self.line(event);
    }

    fn begin(&self, resource: &Resource<'_>) {
        self.line(&Aside::Resource(resource));
    }

    fn health(&self, health: &SdkHealth<'_>) {
        self.line(&Aside::SdkHealth(health));
    }

    fn flush(&self) {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _failed = file.flush().is_err();
    }
}
