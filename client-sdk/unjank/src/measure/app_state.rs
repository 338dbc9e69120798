//! Changes of the app between foreground and background: how long each state lasted, and how long the change took.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use unjank_monitors::Uptime;

use super::client::{self, Shared};
use super::metric::record_with;
use super::next_frame::milliseconds;
use crate::clock::Times as _;

/// Sets whether the app is visible, which stalls report. The initial value is `true`. Also takes effect while collection is
/// switched off; does nothing before [`crate::init`]. Call it first thing in the system's callback, on the thread of the main loop.
///
/// Each change records metrics:
///
/// | metric | from | to |
/// |---|---|---|
/// | `app_foreground_ms` | the call with `true`, or [`crate::init`] | the call with `false` |
/// | `app_background_ms` | the call with `false` | the call with `true` |
/// | `app_to_foreground_ms` | the call with `true` | the first frame that is delivered after it ([`crate::frame`] and the like), within five seconds |
/// | `app_to_background_ms` | the call with `false` | the end of the message of the [`crate::MainLoop`] that made the call |
///
/// So the time that the system needs before its callback is not included. On Linux, Android and Apple's systems, the first two include the
/// time in which the device sleeps. Without frames, or without a `MainLoop` on the calling thread, the last two are
/// not recorded. A call that changes nothing records nothing.
///
/// ```
/// unjank::set_foreground(false); // the user left the app
/// ```
pub fn set_foreground(foreground: bool) {
    let Some(shared) = client::installed() else {
        return;
    };
    shared.foreground.store(foreground, Ordering::Relaxed);
    if let Some(lasted_us) = shared.app_state.change(foreground) {
        changed(&shared, foreground, lasted_us);
    }
    shared.set_scene();
}

/// Records how long the state lasted that ended, and measures how long the change takes.
fn changed(shared: &Shared, foreground: bool, lasted_us: u64) {
    let now = Uptime::now();
    let is_on = client::is_on();
    let appears = (is_on && foreground).then_some(now);
    shared.meters.next_frame.await_foreground(appears);
    let in_message = |hiding: &Cell<Hiding>| {
        if hiding.get() != Hiding::NoMessage {
            hiding.set(match is_on && !foreground {
                true => Hiding::Since(now),
                false => Hiding::No,
            });
        }
    };
    // A thread that is ending handles no message.
    let _ending = HIDING.try_with(in_message).is_err();
    if is_on {
        let name = match foreground {
            true => "app_background_ms",
            false => "app_foreground_ms",
        };
        record_with(shared, name.into(), milliseconds(lasted_us), &[]);
    }
}

/// Whether the message that this thread handles hides the app.
#[derive(Clone, Copy, PartialEq)]
enum Hiding {
    /// The thread handles no message of a main loop.
    NoMessage,
    No,
    Since(Uptime),
}

thread_local! {
    static HIDING: Cell<Hiding> = const { Cell::new(Hiding::NoMessage) };
}

/// Begins a message of the main loop of this thread.
#[inline]
pub(crate) fn message_begins() {
    // Fails only on a thread that is ending, which can no longer hide the app.
    let _ending = HIDING.try_with(|hiding| hiding.set(Hiding::No)).is_err();
}

/// Ends a message. If the app was hidden during it, the change to the background is complete.
#[inline]
pub(crate) fn message_ends(now: Uptime) {
    let hiding = HIDING.try_with(|hiding| hiding.replace(Hiding::NoMessage));
    if let Ok(Hiding::Since(since)) = hiding {
        client::with(|shared: &std::sync::Arc<Shared>| {
            let took = milliseconds(now.micros_since(since));
            record_with(shared, "app_to_background_ms".into(), took, &[]);
        });
    }
}
