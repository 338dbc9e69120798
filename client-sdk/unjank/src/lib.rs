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
//! * **Recording never blocks.** Calls put events into a bounded queue, and a background thread does the rest. An event that
//!   does not fit is dropped, counted and reported as `sdk_health`.
//! * **The SDK never panics into the host app.** A panic in one of the app's callbacks is caught.
//! * **Before [`init`] and while collection is switched off**, every call only checks one flag, so libraries can be instrumented
//!   unconditionally.
//! * **Nothing is collected or sent without consent** if you use [`Config::start_disabled`]. The SDK collects no personal data
//!   unless the app supplies it.
//! * **Unsent events survive the process** if [`Config::data_dir`] is set, and the server stores each one once. A process that is killed
//!   loses its last second at most, and one that exits loses nothing. After a power cut, the last five seconds may be missing.
//! * **A stall that ends in a kill is reported** at the next start, with its stacks (`ended: killed`).
//! * **A child created by `fork` collects nothing** until it calls [`init`] itself, and dropping an inherited [`Guard`] there returns at
//!   once. The parent is not affected. The child needs a [`MainLoop`] and a [data directory](Config::data_dir) of its own. Ids never
//!   repeat. A child that is created past the C library (`clone`) goes unnoticed: do not use unjank there.
//!
//! # Signal handlers
//! Do not call the SDK in a signal handler. Inside a call of the SDK that the signal interrupted, a nested call may be lost, and
//! recording allocates memory, which may deadlock if the signal interrupted the allocator. In a handler, set a flag that the app
//! checks. While collection is off, recording calls with constant names only check one flag, which is safe anywhere.
//!
//! # Where to start
//! * [`span()`] times an operation, [`traced`] times functions and methods, and `tracing_layer` (feature `tracing`) records the
//!   spans of crates that are already instrumented with `tracing`.
//! * `http` (features `tower` and `reqwest`) measures the requests of HTTP clients.
//! * [`export`] writes recorded events to files on the device. `testing` (feature `test-kit`) shows an app's tests which events
//!   the app recorded.
//!
//! # Requirements
//! * Rust 1.95 or later. The minimum is raised only with a new minor version.
//! * A C compiler for zstd and, with the feature `ureq`, for TLS.
//!
//! | platform | stacks of stalls | monitors `cpu`, `memory` | status |
//! |---|---|---|---|
//! | Linux, x86-64 | read from outside while the thread waits, captured by a signal while it runs | both, and `battery` | tested |
//! | Linux, aarch64 | captured by a signal | both, and `battery` | tested under emulation |
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

mod bounded_text;
mod clock;
mod config;
mod deliver;
mod event;
mod exit;
pub mod export;
#[cfg(feature = "tower")]
pub mod http;
mod install;
pub mod live;
mod measure;
#[cfg(feature = "tower")]
mod measured_hosts;
mod names;
mod random;
mod report;
#[cfg(feature = "test-kit")]
pub mod testing;
mod toggles;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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
use unjank_stack_sampler::clear_in_children;
pub use unjank_stack_sampler::{CaptureError, StackSource};

pub use self::config::{Config, Device, Mode};
pub use self::deliver::transport::{Request, Response, Transport, TransportError};
pub use self::event::Event;
pub use self::exit::keep;
pub use self::measure::app::{AppStart, app_start, breadcrumb, redrawn};
pub use self::measure::app_state::set_foreground;
pub use self::measure::client::problem;
pub use self::measure::errors::error;
pub use self::measure::frames::{frame, frame_lasting, frame_tick, pause_ticks, set_refresh_rate};
#[doc(hidden)]
pub use self::measure::instrumented::{TracedFuture, traced_call, traced_future};
pub use self::measure::main_loop::MainLoop;
#[doc(hidden)]
pub use self::measure::method_callsite::MethodCallsite;
pub use self::measure::metric::{metric, metric_with};
pub use self::measure::metric_provider::MetricProvider;
pub use self::measure::monitor::{sample, sample_with};
pub use self::measure::next_frame::input;
pub use self::measure::page_load::{NetworkRequest, PageLoading, page_load, request};
pub use self::measure::set_monitor::set_monitor;
pub use self::measure::should_trace::SpanStart;
pub use self::measure::site::Callsite;
#[doc(hidden)]
pub use self::measure::span::callsite_span;
#[cfg(feature = "tokio")]
pub use self::measure::span::spawn;
pub use self::measure::span::{
    DetachedSpan, Entered, Inherited, Span, SpanContext, inherit, init_span, mark_main_thread,
    span, span_in, span_tagged,
};
pub use self::measure::span_tags::{SpanTags, SpanTagsError};
pub use self::measure::switches::Monitor;
#[cfg(feature = "tracing")]
pub use self::measure::tracing_layer::{tracing_layer, tracing_layer_of, tracing_layer_up_to};
pub use self::measure::traffic::{Transferred, set_utc_offset, traffic};
pub use self::measure::urgent::Urgent;
pub use self::report::{Console, ReportFile, Reporter};
pub use self::toggles::toggle;

use self::deliver::worker::Worker;
use self::measure::client;
use self::measure::client::Shared;
use self::measure::sampling::Settings;

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
    /// Returns why nothing is collected or why nothing arrives at the server, in one sentence for the developer: a missing app id, a
    /// wrong key, an address where no server is. Returns `None` if there is no problem, and before the first request. The app can
    /// continue in any case. [`Mode::Development`] prints each problem, too.
    ///
    /// ```
    /// let guard = unjank::init(unjank::Config::new("https://perf.example.com", "ujk_…"));
    /// let problem = guard.problem();
    /// assert_eq!(problem.as_deref(), Some("no app id: call `Config::app` with a non-empty id"));
    /// ```
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        match &self.shared {
            Some(shared) => shared.problem.text(),
            None => self.problem.clone(),
        }
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
/// `init` never fails: if something is wrong, [`Guard::problem`] returns the reason, and the app runs without the SDK. It returns in well
/// under a millisecond: it reads one small file, the last configuration, and the background thread does all other disk and network
/// access.
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
    if let Some(problem) = config.problem_of_settings() {
        return Guard::none(problem);
    }
    config.apply_print_only();
    let transport = match deliver::transport_choice::choose(&config) {
        Ok(transport) => transport,
        Err(problem) => return Guard::none(problem),
    };
    // Two workers would share a data directory. One that is still shutting down counts as running.
    // Without memory for this, a child created by `fork` collects events that nothing sends.
    let _no_memory = [client::switch_of_collection(), &WORKING]
        .into_iter()
        .any(|flag| clear_in_children(flag).is_err());
    if WORKING.swap(true, Ordering::AcqRel) {
        return Guard::none("unjank is already running: keep the guard of the first `init`");
    }
    if config.mode == Mode::Development {
        config.reporters.push(Arc::new(Console));
    }
    let session_draw = random::draw();
    // Without it, the first toggle and the first span of a start would not know what the server wants.
    let remembered = config.config_file().filter(|_| !config.start_disabled);
    let remembered = remembered.and_then(|file| deliver::remote::remembered(&file));
    let document = match remembered {
        Some(document) => config.remote_document(document),
        None => config.first_document(),
    };
    let settings = Settings::new(document, session_draw);
    let enabled = !config.start_disabled;
    let mut shared = Shared::new(config, settings);
    shared.open_system_trace();
    let shared = Arc::new(shared);
    let for_thread = Arc::clone(&shared);
    let run = move || {
        let ending = Arc::clone(&for_thread);
        // A panic in the SDK ends the measurement, not the app.
        let work = AssertUnwindSafe(|| work(for_thread, transport, session_draw));
        let _panicked = catch_unwind(work).is_err();
        WORKING.store(false, Ordering::Release);
        ending.requests.ended();
    };
    exit::prepare(&shared.config);
    measure::panics::prepare(&shared.config);
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
        if wanted.forget {
            let folder = shared.config.data_dir.as_deref();
            folder.into_iter().for_each(install::forget_unsent);
            shared.requests.forgotten();
        }
        if wanted.stop {
            return;
        }
    }
    Worker::open(shared, transport, session_draw).run();
}

impl Drop for Guard {
    #[expect(clippy::mem_forget, reason = "a thread of another process")]
    fn drop(&mut self) {
        let (Some(shared), Some(thread)) = (self.shared.take(), self.thread.take()) else {
            return;
        };
        if shared.is_inherited() {
            // The thread does not exist here, and joining or detaching it would touch the memory of another one.
            std::mem::forget(thread);
            return;
        }
        let timeout = shared.config.shutdown_timeout;
        let begun = Instant::now();
        let was_on = client::is_on();
        if was_on {
            shared.requests.flush(timeout);
        }
        client::switch(false);
        client::install(None);
        shared.urgent.close(timeout.saturating_sub(begun.elapsed()));
        shared
            .requests
            .change(|wanted| (wanted.stop, wanted.last_work) = (true, was_on));
        // Does not wait longer for a request in flight: a batch that is on disk is sent again.
        let left = timeout.saturating_sub(begun.elapsed());
        if thread.is_finished() || left > Duration::ZERO && shared.requests.stopped(left) {
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
    if enabled && !client::is_on() {
        shared.app_state.begin_again();
    }
    client::switch(enabled);
    if !enabled {
        // Done here rather than by the background thread, so that events recorded after renewed consent are kept.
        shared.forget_queued();
    }
    if enabled {
        shared.requests.change(|wanted| wanted.hurry = true);
    } else {
        shared.requests.forget();
    }
}

/// Sends everything collected so far, and blocks for at most `timeout`. Call it just before the system suspends the app, never on
/// the thread that draws.
///
/// Returns `true` if the server has everything, or if [`Config::offline`] keeps everything on the device. Returns `false` if something
/// still waits on the device and is retried, because time ran out, the server cannot be reached or asks to wait, only Wi-Fi is allowed,
/// or the disk cannot be read; and if the server refused a batch. [`problem()`] returns the reason. Before [`init`] and while collection is switched
/// off, returns `false` at once.
///
/// ```
/// use std::time::Duration;
///
/// let sent = unjank::flush(Duration::from_millis(500));
/// assert!(!sent); // the SDK is not running here
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
        let user_id = unjank_monitors::bounded(user_id.unwrap_or_default());
        if shared.users.current() != user_id {
            // What was measured until now belongs to the person before.
            if client::is_on() {
                shared.poll_meters(true);
            }
            *shared.meters.last_values() = unjank_monitors::LastValues::default();
            // The lines are about the person before.
            shared.meters.log().clear();
        }
        shared.users.set(user_id);
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
        if client::is_on() {
            shared
                .meters
                .log()
                .screen(measure::main_loop::logged_now(), page);
        }
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
