//! Writes recorded events to disk before the process ends, or deletes them if consent was withdrawn. Works for every end that still runs code.

#[cfg(unix)]
use std::sync::Once;
use std::time::Duration;

#[cfg(unix)]
use unjank_stack_sampler::forks;

use crate::config::Config;
use crate::measure::client;

/// The end of the process waits for this long at most.
#[cfg(unix)]
const LONGEST: Duration = Duration::from_millis(500);

/// Writes what is recorded to the data directory, without sending it, and blocks for at most `timeout`. Returns whether that worked:
/// `false` without a [`crate::Config::data_dir`], if time ran out, before [`crate::init`], and while collection is switched off.
///
/// The SDK calls it when the process ends by `exit` or by a return from `main`. Call it in your own handler of `SIGTERM`, or let the SDK
/// handle that signal with [`crate::Config::keep_on_sigterm`].
///
/// ```
/// use std::time::Duration;
///
/// let kept = unjank::keep(Duration::from_millis(500));
/// assert!(!kept); // the SDK is not running here
/// ```
pub fn keep(timeout: Duration) -> bool {
    client::current()
        .is_some_and(|shared| shared.config.data_dir.is_some() && shared.requests.keep(timeout))
}

/// Lets the end of this process call [`keep`]: when it exits, and if the app wants that, when it gets `SIGTERM`.
#[cfg(unix)]
pub(crate) fn prepare(config: &Config) {
    static EXIT: Once = Once::new();
    static TERMINATION: Once = Once::new();
    if config.data_dir.is_some() {
        EXIT.call_once(register);
        if config.keep_on_sigterm {
            TERMINATION.call_once(watch_sigterm);
        }
    }
}

#[cfg(not(unix))]
pub(crate) fn prepare(_: &Config) {}

/// Waits until everything is on disk or, if consent was withdrawn, deleted.
#[cfg(unix)]
fn settle() {
    let _kept = keep(LONGEST);
    if let Some(shared) = client::installed() {
        shared.requests.wait_until_forgotten(LONGEST);
    }
}

#[cfg(unix)]
#[expect(unsafe_code, reason = "no safe way to register a function")]
fn register() {
    extern "C" fn at_exit() {
        settle();
    }
    // SAFETY: `at_exit` is a function of this program, which is not unloaded before the process ends. It does not unwind: `settle`
    // does not panic, and a panic in an `extern "C"` function aborts.
    let _full = unsafe { libc::atexit(at_exit) } != 0;
}

/// Starts a thread that calls [`keep`] when the process is asked to end. The signal then ends the process, as it does without this thread.
#[cfg(unix)]
#[expect(unsafe_code, reason = "registers an action of a signal")]
fn watch_sigterm() {
    use signal_hook::consts::SIGTERM;
    let own = forks();
    let end_child = move || {
        // A child created by `fork` has the handler and not the thread.
        if forks() != own {
            let _failed = signal_hook::low_level::emulate_default_handler(SIGTERM).is_err();
        }
    };
    // SAFETY: the action reads an atomic and calls a function that is made for signal handlers.
    let registered = unsafe { signal_hook::low_level::register(SIGTERM, end_child) };
    let signals = signal_hook::iterator::Signals::new([SIGTERM]);
    let (Ok(_), Ok(mut signals)) = (registered, signals) else {
        return;
    };
    let watch = move || {
        for signal in signals.forever() {
            settle();
            let _failed = signal_hook::low_level::emulate_default_handler(signal).is_err();
        }
    };
    let thread = std::thread::Builder::new().name("unjank-sigterm".to_owned());
    let _failed = thread.spawn(watch).is_err();
}
