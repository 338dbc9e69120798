//! For tests of apps: runs code and returns the events it recorded. Requires the feature `test-kit`.
//!
//! ```
//! use unjank::Event;
//! use unjank::testing::with_captured_events;
//!
//! #[unjank::traced(name = "cart.total")]
//! fn total(prices: &[u64]) -> u64 {
//!     prices.iter().sum()
//! }
//!
//! let events = with_captured_events(|| {
//!     let _span = unjank::span("checkout");
//!     assert_eq!(total(&[1, 2]), 3);
//!     unjank::metric("cart_items", 2.0);
//! });
//! let names: Vec<&str> = events
//!     .iter()
//!     .filter_map(|event| match event {
//!         Event::Span(span) => Some(span.name.as_str()),
//!         _ => None,
//!     })
//!     .collect();
//! assert_eq!(names, ["cart.total", "checkout"]);
//! // The SDK's own monitors may add metrics, so search for your own.
//! let items = |event: &Event| matches!(event, Event::Metric(metric) if &*metric.name == "cart_items");
//! assert!(events.iter().any(items));
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::deliver::transport::{Request, Response, Transport, TransportError};
use crate::event::Event;
use crate::export::Recorder;
use crate::{Config, Mode};

/// Starts the SDK in test mode without a server, calls `run`, and returns the events that it recorded. Spans of one thread
/// are in the order they ended, and so are events of other signals.
/// Calls wait for each other, because a process has one SDK. Events of threads that `run` starts are included if they end before
/// `run` does.
///
/// ```
/// let events = unjank::testing::with_captured_events(|| unjank::span("checkout").end());
/// assert!(events.iter().any(|event| event.signal() == unjank::Signal::Spans));
/// ```
///
/// # Panics
/// If the SDK is already running, or does not finish within ten seconds.
pub fn with_captured_events(run: impl FnOnce()) -> Vec<Event> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let recorder = Recorder::with_capacity(usize::MAX);
    let config = Config::new("http://127.0.0.1:1", "test")
        .app("test", "0.0.0")
        .mode(Mode::Test)
        .start_jitter(Duration::ZERO)
        .queue_events(1 << 16)
        .transport(CollectingTransport::new())
        .reporter(recorder.clone());
    let guard = crate::init(config);
    assert_eq!(guard.problem(), None, "the SDK did not start");
    run();
    assert!(
        crate::flush(Duration::from_secs(10)),
        "the events were not collected in time"
    );
    drop(guard);
    recorder.events()
}

/// Moves the wall clock that the SDK of this process sees, as when the user sets the device's clock: forward, or back if
/// `seconds` is negative. Moves add up. Durations are not affected.
///
/// ```
/// unjank::testing::move_wall_clock(-3 * 86_400); // the device is set back by three days
/// unjank::testing::move_wall_clock(3 * 86_400); // and corrected
/// ```
pub fn move_wall_clock(seconds: i64) {
    let moved = seconds.saturating_mul(1_000_000);
    crate::clock::MOVED_US.fetch_add(moved, std::sync::atomic::Ordering::Relaxed);
}

/// A server in memory: accepts and keeps every batch, and has no remote configuration. Clones share the batches.
///
/// ```
/// use std::time::Duration;
/// use unjank::testing::CollectingTransport;
/// use unjank::{Config, Mode};
///
/// let server = CollectingTransport::new();
/// let config = Config::new("http://127.0.0.1:1", "key").app("test", "1.0.0").mode(Mode::Test);
/// let guard = unjank::init(config.start_jitter(Duration::ZERO).transport(server.clone()));
/// unjank::span("checkout").end();
/// drop(guard); // sends what is left
/// assert_eq!(server.events("spans")[0]["name"], "checkout");
/// ```
#[derive(Clone, Debug, Default)]
pub struct CollectingTransport(Arc<Mutex<Vec<Value>>>);

impl CollectingTransport {
    /// Creates a server that has no batches yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the batches that arrived, as the server would read them.
    ///
    /// ```
    /// assert!(unjank::testing::CollectingTransport::new().batches().is_empty());
    /// ```
    #[must_use]
    pub fn batches(&self) -> Vec<Value> {
        self.lock().clone()
    }

    /// Returns the events of one signal that arrived, such as `spans` or `metrics`.
    #[must_use]
    pub fn events(&self, signal: &str) -> Vec<Value> {
        let batches = self.lock();
        let lists = batches
            .iter()
            .filter_map(|batch| batch.get(signal)?.as_array());
        lists.flatten().cloned().collect()
    }
}

impl Transport for CollectingTransport {
    fn send(&self, request: Request<'_>) -> Result<Response, TransportError> {
        if request.method == "GET" {
            return Ok(Response {
                status: 304,
                ..Response::default()
            });
        }
        let unreadable = |error: &dyn std::fmt::Display| TransportError(error.to_string());
        let json = zstd::stream::decode_all(request.body).map_err(|error| unreadable(&error))?;
        let batch: Value = serde_json::from_slice(&json).map_err(|error| unreadable(&error))?;
        let accepted: usize = Value::as_object(&batch)
            .into_iter()
            .flatten()
            .filter(|(name, _)| *name != "split_from")
            .filter_map(|(_, list)| list.as_array().map(Vec::len))
            .sum();
        let receipt = json!({"batch_id": batch.get("batch_id"), "accepted": accepted});
        self.lock().push(batch);
        Ok(Response {
            status: 202,
            body: receipt.to_string().into_bytes(),
            ..Response::default()
        })
    }
}
