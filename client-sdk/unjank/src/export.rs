//! Writes recorded events to files on this device, for development and tests. Nothing here sends anything.
//!
//! ```
//! use unjank::export::Recorder;
//! use unjank::{Config, Mode};
//! # #[derive(Debug)] struct Nowhere;
//! # impl unjank::Transport for Nowhere {
//! #     fn send(&self, _: unjank::Request<'_>) -> Result<unjank::Response, unjank::TransportError> {
//! #         Err(unjank::TransportError("no server".to_owned()))
//! #     }
//! # }
//!
//! # let folder = std::env::temp_dir();
//! let recorder = Recorder::new();
//! let config = Config::new("http://127.0.0.1:8080", "demo")
//!     .app("com.example.shop", "4.12.0")
//!     .mode(Mode::Test)
//! #   .transport(Nowhere)
//!     .reporter(recorder.clone());
//! let guard = unjank::init(config);
//! unjank::span("checkout").end();
//! unjank::flush(std::time::Duration::from_secs(1)); // passes events to reporters now instead of within a second
//!
//! recorder.chrome_trace(folder.join("trace.json"))?; // opens in ui.perfetto.dev
//! recorder.csv(folder.join("spans.csv"))?;
//! println!("{}", recorder.slowest(10));
//! # assert!(recorder.slowest(10).contains("checkout"));
//! # drop(guard);
//! # Ok::<(), std::io::Error>(())
//! ```

mod chrome;
mod csv;
mod lanes;
mod slowest;
mod tree;
mod view;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use self::chrome::{chrome_trace, report_to_chrome_trace};
pub use self::csv::csv;
pub use self::slowest::slowest;
use crate::event::Event;
use crate::report::Reporter;

/// Keeps the latest events in memory. Clones share them: pass one to [`crate::Config::reporter`] and keep the other. The
/// [module](self) has an example that writes files.
///
/// ```
/// use unjank::export::Recorder;
///
/// let recorder = Recorder::with_capacity(1_000);
/// let config = unjank::Config::new("http://127.0.0.1:8080", "demo").reporter(recorder.clone());
/// // … `unjank::init(config)`, and the app …
/// assert_eq!((recorder.events().len(), recorder.forgotten()), (0, 0));
/// # let folder = std::env::temp_dir();
/// recorder.chrome_trace(folder.join("run.json"))?;
/// recorder.csv(folder.join("run.csv"))?;
/// println!("{}", recorder.slowest(10));
/// recorder.clear(); // the next run
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Debug)]
struct Recorded {
    events: VecDeque<Arc<Event>>,
    most: usize,
    forgotten: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// Keeps the latest 100,000 events, of about half a kilobyte each.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(100_000)
    }

    /// Keeps the latest `events` events, at least one.
    #[must_use]
    pub fn with_capacity(events: usize) -> Self {
        Self(Arc::new(Mutex::new(Recorded {
            events: VecDeque::new(),
            most: events.max(1),
            forgotten: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the list, so that the lock is not held while files are written.
    fn snapshot(&self) -> Vec<Arc<Event>> {
        self.lock().events.iter().cloned().collect()
    }

    /// Returns copies of the events, in the order they ended.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        let events = self.snapshot();
        events.iter().map(|event| (**event).clone()).collect()
    }

    /// Returns how many events were dropped to make room for later ones, since the last [`Recorder::clear`].
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.lock().forgotten
    }

    /// Deletes all events.
    pub fn clear(&self) {
        let mut recorded = self.lock();
        recorded.events.clear();
        recorded.forgotten = 0;
    }

    /// Writes a file for Perfetto and `chrome://tracing`; see [`chrome_trace`].
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn chrome_trace(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let events = self.snapshot();
        write(path.as_ref(), |file| {
            chrome_trace(events.iter().map(AsRef::as_ref), file)
        })
    }

    /// Writes a table of all spans; see [`csv()`].
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn csv(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let events = self.snapshot();
        write(path.as_ref(), |file| {
            csv(events.iter().map(AsRef::as_ref), file)
        })
    }

    /// Returns a table of the names that took the most time; see [`slowest()`].
    #[must_use]
    pub fn slowest(&self, names: usize) -> String {
        let events = self.snapshot();
        slowest(events.iter().map(AsRef::as_ref), names)
    }
}

fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    fill(&mut file)?;
    file.flush()
}

impl Reporter for Recorder {
    fn report(&self, event: &Event) {
        let event = Arc::new(event.clone());
        let mut recorded = self.lock();
        if recorded.events.len() >= recorded.most {
            recorded.events.pop_front();
            recorded.forgotten = recorded.forgotten.saturating_add(1);
        }
        recorded.events.push_back(event);
    }
}
