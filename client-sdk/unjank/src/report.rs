//! Reporters: they see every event that is sent to the server.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use unjank_protocol::{Resource, SdkHealth};

use crate::event::Event;

/// Sees every event that is sent, except traffic sums. Runs on the background thread: a slow reporter delays uploads, never the
/// app. A panic is caught.
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

    /// Receives the app and the device that the events are from. Called once, before the first event, without a user.
    fn begin(&self, _resource: &Resource<'_>) {}

    /// Receives what the SDK has lost and cost since the last call.
    fn health(&self, _health: &SdkHealth<'_>) {}

    /// Writes out what is buffered. Called when events were sealed into a batch, and so also on a flush and when the app ends.
    fn flush(&self) {}
}

/// Prints one line per event to standard error. [`crate::Mode::Development`] adds this reporter automatically.
///
/// ```
/// let config = unjank::Config::new("http://127.0.0.1:8080", "demo")
///     .mode(unjank::Mode::Test)
///     .reporter(unjank::Console); // this mode adds none automatically
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Console;

impl Reporter for Console {
    #[expect(clippy::print_stderr, reason = "printing is its purpose")]
    fn report(&self, event: &Event) {
        match event {
            Event::Span(span) => eprintln!(
                "unjank: span {} {:.3} ms on {}",
                span.name,
                milliseconds(span.duration_us),
                span.thread
            ),
            Event::Jank(jank) => {
                let innermost = jank.stack.first();
                eprintln!(
                    "unjank: {} of {} ms on {}: {}",
                    jank.kind,
                    jank.duration_ms,
                    jank.page,
                    innermost.map_or("no stack", |frame| &frame.function)
                );
            }
            Event::FrameWindow(window) => eprintln!(
                "unjank: {} drew {} frames and dropped {}, {} ms of jank",
                window.page, window.frames_drawn, window.frames_dropped, window.jank_ms
            ),
            Event::PageLoad(load) => {
                eprintln!(
                    "unjank: {} {} after {} ms",
                    load.page, load.outcome, load.total_ms
                );
            }
            Event::Metric(metric) => eprintln!("unjank: {} = {}", metric.name, metric.value),
            Event::AppStart(start) => {
                eprintln!("unjank: {} start in {} ms", start.kind, start.duration_ms);
            }
            Event::Traffic(traffic) => eprintln!(
                "unjank: {} {} sent {} B, received {} B",
                traffic.source, traffic.network, traffic.tx_bytes, traffic.rx_bytes
            ),
            Event::Recomposition(redrawn) => {
                eprintln!(
                    "unjank: {} redrawn {} times by {}",
                    redrawn.function, redrawn.count, redrawn.cause
                );
            }
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "for people, to a thousandth of a millisecond"
)]
fn milliseconds(micros: i64) -> f64 {
    micros as f64 / 1_000.0
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
