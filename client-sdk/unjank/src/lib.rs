//! Performance monitoring for apps in production, at very low cost and controlled by a remote configuration.
//!
//! ```no_run
//! use unjank::{Config, Mode};
//!
//! fn main() {
//!     let _guard = unjank::init(
//!         Config::new("https://perf.example.com", "ujk_…").app("com.example.shop", "4.12.0").mode(Mode::Production),
//!     );
//!     let _span = unjank::span("checkout");
//!     // … the app …
//! } // dropping the guard sends the remaining events
//! ```
//!
//! # Guarantees
//! * **Recording never blocks.** Calls put events into a bounded queue, and one background thread does the rest. An event that
//!   does not fit is dropped, counted and reported as `sdk_health`.
//! * **The SDK never panics into the host app.** A panic in one of the app's callbacks is caught.
//! * **Before [`init`] and while collection is switched off**, every call only checks one flag, so libraries can be instrumented
//!   unconditionally.
//! * **Nothing is collected or sent without consent** if you use [`Config::start_disabled`]. The SDK collects no personal data
//!   unless the app supplies it.
//! * **Unsent batches survive the process** if [`Config::data_dir`] is set. Events are on disk about five seconds after they are
//!   recorded, and the server stores each one once.
//!
//! # Where to start
//! * [`span()`] times an operation, [`traced`] times functions and methods, and `tracing_layer` (feature `tracing`) records the
//!   spans of crates that are already instrumented with `tracing`.
//! * [`export`] writes recorded events to files on the device. `testing` (feature `test-kit`) shows an app's tests which events
//!   the app recorded.
//!
//! # Requirements
//! * Rust 1.95 or later. The minimum is raised only with a new minor version.
//! * A C compiler for zstd and, with the feature `ureq`, for TLS.
//!
//! | platform | stacks of stalls | monitors `cpu`, `memory` | status |
//! |---|---|---|---|
//! | Linux, x86-64 | captured by a signal | both | tested |
//! | Linux, aarch64 | captured by a signal | both | tested under emulation |
//! | Android | captured by a signal; from the host for Java | both | type-checked |
//! | macOS, iOS | from the host | both | type-checked |
//! | Windows and others | from the host | neither | type-checked |
#![warn(missing_docs)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::panic,
        clippy::expect_used,
        clippy::unwrap_used
    )
)]

mod app;
mod backlog;
mod batch;
mod budget;
mod client;
mod clock;
mod config;
mod event;
pub mod export;
mod frames;
mod instrumented;
mod losses;
mod main_loop;
mod measurements;
mod meters;
mod metric;
mod metric_provider;
mod modules;
mod monitor;
mod names;
mod page_load;
mod random;
mod remote;
mod report;
mod requests;
mod sampling;
mod span;
mod span_record;
#[cfg(feature = "test-kit")]
pub mod testing;
#[cfg(feature = "tracing")]
mod tracing_layer;
mod traffic;
mod transport;
mod uplink;
mod users;
mod worker;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Records a span for each call of a function, of a method, or of every method in an `impl` block:
///
/// ```
/// struct Cart {
///     items: Vec<u64>,
/// }
///
/// #[unjank::traced]
/// impl Cart {
///     #[unjank::traced(init)]
///     fn new() -> Self {
///         Self { items: Vec::new() }
///     }
///
///     fn total(&self) -> u64 {
///         self.items.iter().sum()
///     }
///
///     #[unjank::traced(skip)]
///     fn is_empty(&self) -> bool {
///         self.items.is_empty()
///     }
/// }
///
/// #[unjank::traced(tag = "checkout", err)]
/// async fn pay(cart: &Cart) -> Result<u64, String> {
///     if cart.is_empty() {
///         return Err("nothing to pay".to_owned());
///     }
///     Ok(cart.total())
/// }
/// # assert_eq!(Cart::new().total(), 0);
/// ```
pub use unjank_macros::traced;
pub use unjank_protocol as protocol;
pub use unjank_protocol::{AppStartKind, LaunchKind, Network, Signal};
pub use unjank_stack_sampler::{CaptureError, StackSource};

pub use self::app::{AppStart, app_start, breadcrumb, redrawn};
pub use self::config::{Config, Device, Mode};
pub use self::event::Event;
pub use self::frames::{frame, frame_lasting, set_refresh_rate};
#[doc(hidden)]
pub use self::instrumented::{TracedFuture, traced_call, traced_future};
pub use self::main_loop::MainLoop;
pub use self::metric::metric;
pub use self::metric_provider::MetricProvider;
pub use self::monitor::sample;
pub use self::page_load::{NetworkRequest, PageLoading, page_load, request};
pub use self::report::{Console, ReportFile, Reporter};
#[doc(hidden)]
pub use self::span::callsite_span;
pub use self::span::{
    DetachedSpan, Entered, Span, SpanContext, init_span, mark_main_thread, span, span_in,
};
pub use self::span_record::Callsite;
#[cfg(feature = "tracing")]
pub use self::tracing_layer::{tracing_layer, tracing_layer_up_to};
pub use self::traffic::{Transferred, set_utc_offset, traffic};
pub use self::transport::{Request, Response, Transport, TransportError};

use self::client::Shared;
use self::sampling::Settings;
use self::worker::Worker;

/// Keeps the SDK running. Dropping it sends the remaining events; [`Config::shutdown_timeout`] limits how long that blocks.
///
/// ```
/// # let config = unjank::Config::new("http://127.0.0.1:1", "demo").app("com.example.shop", "4.12.0").start_disabled(true);
/// let guard = unjank::init(config);
/// // … the app …
/// drop(guard); // or the end of `main`
/// ```
#[derive(Debug)]
#[must_use = "the SDK stops when this is dropped: bind it to a name, not to `_`"]
pub struct Guard {
    shared: Option<Arc<Shared>>,
    thread: Option<JoinHandle<()>>,
    problem: Option<String>,
}

impl Guard {
    /// Returns why nothing is collected, or `None` if the SDK started. The app can continue in both cases. Also `None` while
    /// collection is switched off.
    ///
    /// ```
    /// let guard = unjank::init(unjank::Config::new("https://perf.example.com", "ujk_…"));
    /// assert_eq!(guard.problem(), Some("no app id: call `Config::app` with a non-empty id"));
    /// ```
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    fn none(problem: impl Into<String>) -> Self {
        Self {
            shared: None,
            thread: None,
            problem: Some(problem.into()),
        }
    }
}

/// Starts the SDK. Call it once, early, on the main thread, and keep the returned guard until the app ends.
///
/// `init` never fails: if something is wrong, [`Guard::problem`] says what, and the app runs without the SDK. It returns in well
/// under a millisecond, because the background thread does all disk and network access.
///
/// While one guard is alive, a second `init` returns a guard that reports a problem and keeps nothing running. After the first
/// guard is dropped, the SDK can be started again.
///
/// ```
/// use unjank::Config;
///
/// let config = Config::new("https://perf.example.com", "ujk_…")
///     .app("com.example.shop", "4.12.0")
///     .start_disabled(true); // until the user agrees
/// let guard = unjank::init(config);
/// assert_eq!(guard.problem(), None);
/// ```
pub fn init(mut config: Config) -> Guard {
    if config.app_id.is_empty() {
        return Guard::none("no app id: call `Config::app` with a non-empty id");
    }
    let Some(transport) = config.transport.clone().or_else(built_in_transport) else {
        return Guard::none(
            "no transport: set `Config::transport`, or build with the feature `ureq`",
        );
    };
    // Two workers would share a data directory. One that is still shutting down counts as running.
    if WORKING.swap(true, Ordering::AcqRel) {
        return Guard::none("unjank is already running: keep the guard of the first `init`");
    }
    if config.mode == Mode::Development {
        config.reporters.push(Arc::new(Console));
    }
    let session_draw = random::draw();
    let settings = Settings::new(config.first_document(), session_draw);
    let enabled = !config.start_disabled;
    let shared = Arc::new(Shared::new(config, settings));
    let for_thread = Arc::clone(&shared);
    let run = move || {
        let ending = Arc::clone(&for_thread);
        // A panic in the SDK ends the measurement, not the app.
        let work = AssertUnwindSafe(|| work(for_thread, transport, session_draw));
        let _panicked = catch_unwind(work).is_err();
        WORKING.store(false, Ordering::Release);
        ending.requests.ended();
    };
    client::install(Some(Arc::clone(&shared)));
    client::switch(enabled);
    match std::thread::Builder::new()
        .name("unjank".to_owned())
        .spawn(run)
    {
        Ok(thread) => Guard {
            shared: Some(shared),
            thread: Some(thread),
            problem: None,
        },
        Err(error) => {
            client::switch(false);
            client::install(None);
            WORKING.store(false, Ordering::Release);
            Guard::none(format!("cannot start the background thread: {error}"))
        }
    }
}

/// Whether a background thread is running.
static WORKING: AtomicBool = AtomicBool::new(false);

/// The body of the background thread.
fn work(shared: Arc<Shared>, transport: Arc<dyn Transport>, session_draw: f64) {
    while !client::is_on() {
        // Touches neither disk nor network before consent. If the user declines, deletes what an earlier process left.
        let wanted = shared.requests.wait(Duration::from_secs(3_600));
        if wanted.forget
            && let Some(folder) = &shared.config.data_dir
        {
            worker::forget_unsent(folder);
        }
        if wanted.stop {
            return;
        }
    }
    Worker::open(shared, transport, session_draw).run();
}

#[cfg(feature = "ureq")]
#[expect(
    clippy::unnecessary_wraps,
    reason = "without the feature there is none"
)]
fn built_in_transport() -> Option<Arc<dyn Transport>> {
    Some(Arc::new(transport::Ureq::new()))
}

#[cfg(not(feature = "ureq"))]
fn built_in_transport() -> Option<Arc<dyn Transport>> {
    None
}

impl Drop for Guard {
    fn drop(&mut self) {
        let (Some(shared), Some(thread)) = (self.shared.take(), self.thread.take()) else {
            return;
        };
        let timeout = shared.config.shutdown_timeout;
        let was_on = client::is_on();
        if was_on {
            shared.requests.flush(timeout);
        }
        client::switch(false);
        client::install(None);
        shared
            .requests
            .change(|wanted| (wanted.stop, wanted.last_work) = (true, was_on));
        // Does not wait longer for a request in flight: a batch that is on disk is sent again.
        if thread.is_finished() || timeout > Duration::ZERO && shared.requests.stopped(timeout) {
            let _panicked = thread.join().is_err();
        }
    }
}

/// Switches collection on or off, according to the user's consent. Switching it off deletes everything that has not been sent.
///
/// The setting lasts until the next call or until the [`Guard`] is dropped, so the app has to remember the user's answer. Does
/// nothing before [`init`].
///
/// ```
/// # let config = unjank::Config::new("http://127.0.0.1:1", "demo").app("com.example.shop", "4.12.0");
/// let _guard = unjank::init(config.start_disabled(true));
/// let agreed = false; // the user's answer
/// unjank::set_enabled(agreed);
/// assert!(!unjank::span("checkout").is_recorded());
/// ```
pub fn set_enabled(enabled: bool) {
    let Some(shared) = client::installed() else {
        return;
    };
    client::switch(enabled);
    if !enabled {
        // Done here rather than by the background thread, so that events recorded after renewed consent are kept.
        shared.forget_queued();
    }
    shared.requests.change(|wanted| {
        wanted.hurry = true;
        // A pending `forget` stays pending if consent is renewed before it runs.
        wanted.forget |= !enabled;
    });
}

/// Sends everything collected so far, and blocks for at most `timeout`. Call it just before the system suspends the app, never on
/// the thread that draws.
///
/// Returns `true` if the attempt finished in time, even if the server did not accept everything: the rest stays on the device and
/// is retried. Returns `false` if time ran out or if some batches cannot be read from disk at the moment; they are kept and
/// retried, too. Before [`init`] and while collection is switched off, returns `false` at once.
///
/// ```
/// use std::time::Duration;
///
/// let attempted = unjank::flush(Duration::from_millis(500));
/// assert!(!attempted); // the SDK is not running here
/// ```
pub fn flush(timeout: Duration) -> bool {
    client::current().is_some_and(|shared| shared.requests.flush(timeout))
}

/// Sets the user of all later events: an id that the app has hashed. Longer ids are cut at 1 KiB. `None`, the initial state,
/// means no user. Also takes effect while collection is switched off; does nothing before [`init`].
///
/// ```
/// unjank::set_user(Some("9f86d081884c7d65")); // after signing in
/// unjank::set_user(None); // after signing out
/// ```
pub fn set_user(user_id: Option<&str>) {
    if let Some(shared) = client::installed() {
        shared
            .users
            .set(unjank_monitors::bounded(user_id.unwrap_or_default()));
    }
}

/// Sets the current screen. Events carry its name, and a change ends the open windows of frames, redraws and monitors.
///
/// Names are cut at 1 KiB. A process keeps at most 4,096 different names of screens and threads, and records any further name as
/// empty, so do not put ids into names. Also takes effect while collection is switched off; does nothing before [`init`].
///
/// ```
/// unjank::set_page("CartActivity");
/// ```
pub fn set_page(page: &str) {
    if let Some(shared) = client::installed() {
        shared.meters.log().screen(clock::wall_clock(), page);
        shared.set_page(page);
        shared.set_scene();
    }
}

/// Sets the network the device is on. Events carry it, and the remote configuration can restrict uploads to Wi-Fi. The initial
/// value is [`Network::Unknown`]. Also takes effect while collection is switched off; does nothing before [`init`].
///
/// ```
/// unjank::set_network(unjank::Network::Wifi); // from the system's callback
/// ```
pub fn set_network(network: Network) {
    if let Some(shared) = client::installed() {
        shared.set_network(network);
        shared.set_scene();
    }
}

/// Sets whether the app is visible, which stalls report. The initial value is `true`. Also takes effect while collection is
/// switched off; does nothing before [`init`].
///
/// ```
/// unjank::set_foreground(false); // the user left the app
/// ```
pub fn set_foreground(foreground: bool) {
    if let Some(shared) = client::installed() {
        shared.foreground.store(foreground, Ordering::Relaxed);
        shared.set_scene();
    }
}

/// Returns the value of one of the team's own toggles in the remote configuration: any JSON value.
///
/// Returns `None` if no toggle has this name, before a configuration has arrived, and before [`init`]. With a
/// [`Config::data_dir`], the background thread loads the last configuration when it starts. The call only reads memory and copies
/// the value.
///
/// ```
/// let new_cart = unjank::toggle("new_cart").is_some_and(|value| value == true);
/// assert!(!new_cart); // the SDK is not running here
/// ```
#[must_use]
pub fn toggle(name: &str) -> Option<serde_json::Value> {
    let shared = client::installed()?;
    shared.settings.load().document.toggles.get(name).cloned()
}
