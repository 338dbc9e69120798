//! What the app reports about itself: its start, its redraws and its log.

use unjank_monitors::Uptime;
use unjank_protocol::{AppStartKind, Signal};

use super::client;
use super::main_loop::logged_now;
use crate::clock::Times;
use crate::event::Event;

/// A start of the app, timed in milliseconds. If it is dropped before [`AppStart::finish`], it is not reported.
///
/// ```
/// use unjank::AppStartKind;
///
/// let start = unjank::app_start(AppStartKind::Cold);
/// let answer = start.phase("di", || 42); // builds the app's components
/// assert_eq!(answer, 42);
/// start.finish(); // the first screen is drawn
/// ```
#[derive(Debug)]
#[must_use = "a start that is dropped is not reported"]
pub struct AppStart(bool);

/// Begins to time a start. Call it as early as possible after [`crate::init`]. There is one at a time: a second one replaces the
/// first. While nothing is collected the start is not timed, and its phases only run.
///
/// ```
/// let start = unjank::app_start(unjank::AppStartKind::Warm);
/// // … make the screen …
/// start.finish();
/// ```
pub fn app_start(kind: AppStartKind) -> AppStart {
    let begun = client::with(|shared| shared.meters.start().begin(kind, Uptime::now()));
    AppStart(begun.is_some())
}

impl AppStart {
    /// Times a phase of the start, and returns the result of the closure. A start keeps at most 64 phases; further ones run as
    /// well, and are counted as lost. The name is cut at 1 KiB.
    pub fn phase<R>(&self, name: &str, run: impl FnOnce() -> R) -> R {
        client::with(|shared| shared.meters.start().phase_begin(name, Uptime::now()));
        let result = run();
        client::with(|shared| shared.meters.start().phase_end(name, Uptime::now()));
        result
    }

    /// Ends the start, when the first screen is drawn. A start that took more than five minutes is not reported.
    pub fn finish(mut self) {
        self.0 = false;
        client::with(|shared| {
            let scene = shared.scene();
            let start = shared.meters.start().finish(Uptime::now(), &scene);
            let start = start.filter(|start| shared.ran_for(start.duration_ms, Signal::AppStarts));
            let Some(mut start) = start else { return };
            // The configuration may arrive during the start. Starts of all sessions are timed, so the rate of the end decides.
            shared.record(Signal::AppStarts, |sample_rate| {
                start.sample_rate = sample_rate;
                Event::AppStart(start)
            });
        });
    }
}

impl Drop for AppStart {
    fn drop(&mut self) {
        if self.0 {
            client::with(|shared| shared.meters.start().cancel());
        }
    }
}

/// Counts a redraw of a UI function that `cause` triggered; pass an empty `cause` if it is not known. Redraws are counted in
/// windows of ten seconds on one screen, for at most 256 pairs of function and cause. Names are cut at 1 KiB. Does nothing while
/// nothing is collected.
///
/// ```
/// unjank::redrawn("CartList", "CartState.items");
/// ```
pub fn redrawn(function: &str, cause: &str) {
    client::with(|shared| {
        let ended = shared
            .meters
            .redraws()
            .redrawn(function, cause, Uptime::now());
        shared.record_redraws(ended);
    });
}

/// Adds a line to the run log. The last 56 lines before a stall, of at most 1 KiB each, are sent with it. If many lines are logged during
/// the stall, the last 28 before it are. Do not log personal data. Does nothing while nothing is collected.
///
/// ```
/// unjank::breadcrumb("cart opened");
/// ```
pub fn breadcrumb(line: &str) {
    client::with(|shared| shared.meters.log().line(logged_now(), line));
}
