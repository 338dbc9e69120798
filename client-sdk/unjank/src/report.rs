//! Reporters: those who see every event that is sent, beside the server.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use unjank_protocol::{Resource, SdkHealth};

use crate::event::Event;

/// Sees every event that is sent. Runs on the background thread: what takes long here delays uploads, never the app. A panic is caught.
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
    /// An event, as it is sent.
    fn report(&self, event: &Event);

    /// Which app and device the events are from: once, before the first of them, without a user.
    fn begin(&self, _resource: &Resource<'_>) {}

    /// What the SDK itself lost and cost since it last said so.
    fn health(&self, _health: &SdkHealth<'_>) {}

    /// Events were sealed into a batch, somebody waits for a flush, or the app ends: what is buffered is to be written.
    fn flush(&self) {}
}

/// One line on standard error for each event: the reporter of [`crate::Mode::Development`].
///
/// ```
/// let config = unjank::Config::new("http://127.0.0.1:8080", "demo")
///     .mode(unjank::Mode::Test)
///     .reporter(unjank::Console); // has none of its own in this mode
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Console;

impl Reporter for Console {
    #[expect(clippy::print_stderr, reason = "a console is what it is")]
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

/// A file with one line of JSON for each event, `{"signal": "span", "event": {…}}`, with the fields of the wire: the report of a
/// test run ([`crate::Mode::Test`]), to keep and to compare. The first line, `resource`, says which app and device it is from;
/// lines `sdk_health` say what the SDK lost. `unjank export report --file run.jsonl` makes a page of it.
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
    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self(Mutex::new(BufWriter::new(File::create(path)?))))
    }

    fn line(&self, line: &impl Serialize) {
        let Ok(mut line) = serde_json::to_vec(line) else {
            return;
        };
        line.push(b'\n');
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A disk that does not take it leaves a shorter report; the app goes on.
        let _failed = file.write_all(&line).is_err();
    }
}

/// What is in the report beside events, in their form.
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
