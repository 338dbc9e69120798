//! What the app tells of itself: its start, its redraws, its log.

use unjank_monitors::Uptime;
use unjank_protocol::{AppStartKind, Signal};

use crate::client;
use crate::clock::wall_clock;
use crate::event::Event;
use crate::frames::Times;

/// A start of the app, timed in milliseconds. Dropped before [`AppStart::finish`] it is not reported.
///
/// ```
/// use unjank::AppStartKind;
///
/// let start = unjank::app_start(AppStartKind::Cold);
/// let answer = start.phase("di", || 42); // builds what the app is made of
/// assert_eq!(answer, 42);
/// start.finish(); // the first screen is drawn
/// ```
#[derive(Debug)]
#[must_use = "a start that is dropped is not reported"]
pub struct AppStart(bool);

/// Begins to time a start: as early as possible, after [`crate::init`]. One at a time: a second one takes the place of the first.
/// While nothing is collected it is not timed, and its phases only run.
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
    /// Times a part of it, and answers what that answers. At most 64 are kept; those beyond run, too, and are counted as lost. The
    /// name is cut at 1 KiB.
    pub fn phase<R>(&self, name: &str, run: impl FnOnce() -> R) -> R {
        client::with(|shared| shared.meters.start().phase_begin(name, Uptime::now()));
        let result = run();
        client::with(|shared| shared.meters.start().phase_end(name, Uptime::now()));
        result
    }

    /// The first screen is drawn: the start is over, and reported when it took at most five minutes.
    pub fn finish(mut self) {
        self.0 = false;
        client::with(|shared| {
            let scene = shared.scene();
            let start = shared.meters.start().finish(Uptime::now(), &scene);
            if let Some(start) = start {
                shared.record(Signal::AppStarts, |_| Event::AppStart(start));
            }
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

/// A function of the UI was redrawn because `cause` changed; empty when that is not known. Counted over ten seconds of one screen, for
/// 256 pairs of both at most; names are cut at 1 KiB. Nothing while nothing is collected.
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

/// Notes a line for the run log: the last 56, of at most 1 KiB each, are sent with a stall. Nothing about people belongs here, and
/// nothing is kept while nothing is collected.
///
/// ```
/// unjank::breadcrumb("cart opened");
/// ```
pub fn breadcrumb(line: &str) {
    client::with(|shared| shared.meters.log().line(wall_clock(), line));
}
