//! Measures an app in production, under remote control, at next to no cost.
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
//! } // the guard sends what is left
//! ```
//!
//! # What it promises
//! * **It never waits.** Calls put events into a bounded queue; one background thread does the rest. What does not fit is
//!   dropped, counted, and reported as `sdk_health`.
//! * **It never panics into the host.** Callbacks of the app that panic are caught.
//! * **Before [`init`] and while it is switched off** every call is a look at one flag, so libraries can instrument for free.
//! * **Nothing is sent without consent** with [`Config::start_disabled`], and nothing about people unless the app says it.
//! * Unsent batches survive the process when there is a [`Config::data_dir`]: events are on disk five seconds after they
//!   happened, and are sent once.
//!
//! # Where to begin
//! * [`span()`] for an operation, [`traced`] for functions and methods, `tracing_layer` (feature `tracing`) for crates that are
//!   instrumented with `tracing` already.
//! * [`export`] writes what was recorded to files on this device; `testing` (feature `test-kit`) shows an app's tests what the app
//!   recorded.
//!
//! # What it needs
//! * Rust 1.94 or later: the oldest on which it is to compile. A later minimum comes with a new minor version.
//! * A C compiler, for zstd, and for TLS with the feature `ureq`.
//!
//! | system | stacks of stalls | monitors `cpu`, `memory` | tried |
//! |---|---|---|---|
//! | Linux, x86-64 | by a signal | both | tested |
//! | Linux, aarch64 | by a signal | both | tested under emulation |
//! | Android | by a signal; the host's for Java | both | type-checked |
//! | macOS, iOS | the host's | both | type-checked |
//! | Windows and others | the host's | neither | type-checked |
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
mod meters;
mod metric;
mod monitor;
mod names;
mod page_load;
mod remote;
mod report;
mod settings;
mod span;
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

/// A span for every call of a function, of a method, or of all methods of an `impl` block:
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
pub use self::monitor::{MetricProvider, sample};
pub use self::page_load::{NetworkRequest, PageLoading, page_load, request};
pub use self::report::{Console, ReportFile, Reporter};
#[doc(hidden)]
pub use self::span::{Callsite, callsite_span};
pub use self::span::{
    DetachedSpan, Entered, Span, SpanContext, init_span, mark_main_thread, span, span_in,
};
#[cfg(feature = "tracing")]
pub use self::tracing_layer::{tracing_layer, tracing_layer_up_to};
pub use self::traffic::{Transferred, set_utc_offset, traffic};
pub use self::transport::{Request, Response, Transport, TransportError};

use self::client::Shared;
use self::settings::Settings;
use self::worker::Worker;

/// Keeps the SDK running; dropped, it sends what is left, and waits for that as [`Config::shutdown_timeout`] says.
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
    /// Why nothing is collected, when that is so: the app goes on without. It is `None` also while collection is switched off.
    ///
    /// ```
    /// let guard = unjank::init(unjank::Config::new("https://perf.example.com", "ujk_…"));
    /// assert_eq!(guard.problem(), Some("`Config::app` was not called, or with an empty id"));
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

/// Starts the SDK. Call it once, early, on the main thread, and keep the answer until the app ends.
///
/// It never fails: what is wrong stands in [`Guard::problem`], and the app goes on without. It takes well under a millisecond and
/// waits for nothing: disk and network are the background thread's. While one guard lives, a second `init` answers a guard with a
/// problem that keeps nothing running; after its end the SDK may be started again.
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
        return Guard::none("`Config::app` was not called, or with an empty id");
    }
    let Some(transport) = config.transport.clone().or_else(built_in_transport) else {
        return Guard::none(
            "no transport: give `Config::transport`, or build with the feature `ureq`",
        );
    };
    // Two at once would share a disk: one that still ends counts as running.
    if WORKING.swap(true, Ordering::AcqRel) {
        return Guard::none("unjank runs already: keep the guard of the first `init`");
    }
    if config.mode == Mode::Development {
        config.reporters.push(Arc::new(Console));
    }
    let session_draw = client::draw();
    let settings = Settings::new(config.first_document(), session_draw);
    let enabled = !config.start_disabled;
    let shared = Arc::new(Shared::new(config, settings));
    let for_thread = Arc::clone(&shared);
    let run = move || {
        let wishes = Arc::clone(&for_thread);
        // A mistake of ours ends the measuring, and nothing else.
        let work = AssertUnwindSafe(|| work(for_thread, transport, session_draw));
        let _panicked = catch_unwind(work).is_err();
        WORKING.store(false, Ordering::Release);
        wishes.wishes.ended();
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
            Guard::none(format!("no background thread: {error}"))
        }
    }
}

/// Whether there is a background thread.
static WORKING: AtomicBool = AtomicBool::new(false);

/// What the background thread does.
fn work(shared: Arc<Shared>, transport: Arc<dyn Transport>, session_draw: f64) {
    while !client::is_on() {
        // Nothing is touched before consent; and what an earlier process left goes when the answer is no.
        let wanted = shared.wishes.wait(Duration::from_secs(3_600));
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
            shared.wishes.flush(timeout);
        }
        client::switch(false);
        client::install(None);
        shared
            .wishes
            .change(|wanted| (wanted.stop, wanted.last_work) = (true, was_on));
        // A request under way is not waited for: its batch is on disk, and is sent again.
        if thread.is_finished() || timeout > Duration::ZERO && shared.wishes.stopped(timeout) {
            let _panicked = thread.join().is_err();
        }
    }
}

/// Switches collection on or off, as the user agrees or not. Switched off, nothing is collected, and what was not sent is deleted.
/// It holds until the next call or the end of the [`Guard`]; the app remembers the user's answer. Nothing before [`init`].
///
/// ```
/// # let config = unjank::Config::new("http://127.0.0.1:1", "demo").app("com.example.shop", "4.12.0");
/// let _guard = unjank::init(config.start_disabled(true));
/// let agreed = false; // what the user said
/// unjank::set_enabled(agreed);
/// assert!(!unjank::span("checkout").is_recorded());
/// ```
pub fn set_enabled(enabled: bool) {
    let Some(shared) = client::installed() else {
        return;
    };
    client::switch(enabled);
    if !enabled {
        // Here, not by the background thread: what comes after consent is given again is not to be forgotten.
        shared.forget_queued();
    }
    shared.wishes.change(|wanted| {
        wanted.hurry = true;
        // Consent that is given again soon does not bring back what was collected before.
        wanted.forget |= !enabled;
    });
}

/// Sends everything that was collected so far. Answers whether the attempt was made within the time; what the server did not take
/// stays on the device. Also `false` when some of what waits on the disk cannot be read now: it stays there and is tried again. It waits, so it is not for the thread that draws: for the moment before the system stops the app. At once
/// `false` before [`init`] and while collection is switched off.
///
/// ```
/// use std::time::Duration;
///
/// let attempted = unjank::flush(Duration::from_millis(500));
/// assert!(!attempted); // nothing runs here
/// ```
pub fn flush(timeout: Duration) -> bool {
    client::current().is_some_and(|shared| shared.wishes.flush(timeout))
}

/// Names the user of what follows, hashed by the app: at most 1 KiB, the rest is cut. `None` for nobody, as at the start. It holds
/// also when it is said while collection is switched off; before [`init`] it does nothing.
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

/// Names the screen that is shown: events carry it, and windows of frames, redraws and monitors end with it. At most 1 KiB, the rest
/// is cut; at most 4,096 different names of screens and threads a process, later ones are empty, so no ids belong into them. It
/// holds also when it is said while collection is switched off; before [`init`] it does nothing.
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

/// Says which network the device is on: events carry it, uploads may wait for Wi-Fi. [`Network::Unknown`] until it is said, also
/// while collection is switched off; before [`init`] it does nothing.
///
/// ```
/// unjank::set_network(unjank::Network::Wifi); // the system's callback said so
/// ```
pub fn set_network(network: Network) {
    if let Some(shared) = client::installed() {
        shared.set_network(network);
        shared.set_scene();
    }
}

/// Says whether the app is visible: stalls carry it. Visible until it is said, also while collection is switched off; before
/// [`init`] it does nothing.
///
/// ```
/// unjank::set_foreground(false); // the user went elsewhere
/// ```
pub fn set_foreground(foreground: bool) {
    if let Some(shared) = client::installed() {
        shared.foreground.store(foreground, Ordering::Relaxed);
        shared.set_scene();
    }
}

/// A toggle of the team's own from the remote configuration: any JSON value. Nothing when there is none of this name, before the
/// first configuration arrived, and before [`init`]. With a [`Config::data_dir`] the last configuration is there from the start. It
/// is a look into memory and a copy of the value.
///
/// ```
/// let new_cart = unjank::toggle("new_cart").is_some_and(|value| value == true);
/// assert!(!new_cart); // nothing runs here
/// ```
#[must_use]
pub fn toggle(name: &str) -> Option<serde_json::Value> {
    let shared = client::installed()?;
    shared.settings.load().document.toggles.get(name).cloned()
}
