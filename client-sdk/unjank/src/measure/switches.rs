//! Switches of monitors that the app changes at run time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use unjank_protocol::Signal;
use unjank_protocol::config::Monitor as Interval;

use super::client::{self, Shared};
use super::sampling::Settings;

/// What [`set_monitor`] switches.
///
/// ```
/// use unjank::Monitor;
///
/// unjank::set_monitor(Monitor::Frames, false); // a game draws its own frames
/// unjank::set_monitor(Monitor::Named("battery"), true);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Monitor<'m> {
    /// Spans of every kind.
    Spans,
    /// Dropped frames.
    Frames,
    /// Stalls of main loops.
    Stalls,
    /// Page loads.
    PageLoads,
    /// Bytes of requests.
    Traffic,
    /// Starts of the app.
    AppStarts,
    /// Redraws of UI functions.
    Recompositions,
    /// All metrics: those of monitors, and of [`crate::metric()`].
    Metrics,
    /// A monitor by its name in the remote configuration: `fps`, `cpu`, `memory`, or one of the app.
    Named(&'m str),
}

/// Switches a monitor off or on, until the next call. Does nothing before [`crate::init`]; an app that starts with a monitor switched off
/// calls it right after. At most 64 names are remembered.
///
/// From the strongest to the weakest:
/// 1. consent ([`crate::set_enabled`]), and `enabled` and the sampled sessions of the settings in force: while nothing is collected, no
///    switch changes that;
/// 2. this switch;
/// 3. the settings in force: those of the server, or of the app with [`crate::Config::local_wins`], and the presets of the
///    [`crate::Mode`].
///
/// `false` always wins over settings. `true` undoes it: the settings then say how much is kept. A [`Monitor::Named`] that the settings do
/// not name is sampled at the default interval while its switch is `true`.
///
/// ```
/// use unjank::Monitor;
///
/// unjank::set_monitor(Monitor::Spans, false); // the user saves power
/// // …
/// unjank::set_monitor(Monitor::Spans, true);
/// ```
pub fn set_monitor(monitor: Monitor<'_>, on: bool) {
    let Some(shared) = client::installed() else {
        return;
    };
    if shared.switches.set(monitor, on) {
        shared.switches.apply(&shared);
        // The background thread samples monitors.
        shared.hurry();
    }
}

/// Maximum number of names.
const MOST: usize = 64;

/// The state of all switches.
#[derive(Debug)]
pub(crate) struct Switches(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    off: Off,
    named: BTreeMap<String, bool>,
    /// The monitors of the settings, without switches.
    monitors: BTreeMap<String, Interval>,
}

/// Signals that are switched off, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Off(u32);

impl Off {
    #[inline]
    pub(crate) fn has(self, signal: Signal) -> bool {
        self.0 != 0 && self.0 & bit(signal) != 0
    }
}

fn bit(signal: Signal) -> u32 {
    let place = Signal::ALL.iter().position(|one| *one == signal);
    place.map_or(0, |place| 1_u32 << (place & 31))
}

impl Switches {
    /// Creates the state without any switch. `monitors` are those of the settings.
    pub(crate) fn new(monitors: &BTreeMap<String, Interval>) -> Self {
        Self(Mutex::new(State {
            monitors: monitors.clone(),
            ..State::default()
        }))
    }

    /// Sets a switch. Returns whether it changed.
    fn set(&self, monitor: Monitor<'_>, on: bool) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let signal = match monitor {
            Monitor::Spans => Signal::Spans,
            Monitor::Frames => Signal::FrameWindows,
            Monitor::Stalls => Signal::Janks,
            Monitor::PageLoads => Signal::PageLoads,
            Monitor::Traffic => Signal::Traffic,
            Monitor::AppStarts => Signal::AppStarts,
            Monitor::Recompositions => Signal::Recompositions,
            Monitor::Metrics => Signal::Metrics,
            Monitor::Named(name) => {
                let has_room = state.named.len() < MOST || state.named.contains_key(name);
                return has_room && state.named.insert(name.to_owned(), on) != Some(on);
            }
        };
        let before = state.off;
        state.off.0 = match on {
            true => before.0 & !bit(signal),
            false => before.0 | bit(signal),
        };
        state.off != before
    }

    /// Returns the switch of a monitor, if the app has set it.
    pub(crate) fn named(&self, name: &str) -> Option<bool> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.named.get(name).copied()
    }

    /// Remembers the monitors of new settings, and applies the settings together with the switches.
    pub(crate) fn renew(&self, settings: Settings, shared: &Shared) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.monitors.clone_from(&settings.document.monitors);
        // While the lock is held, so that no switch is lost.
        shared.put_settings(applied(&state, settings));
    }

    /// Applies the switches to the settings in force.
    fn apply(&self, shared: &Shared) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let settings = Settings::clone(&shared.settings.load());
        shared.put_settings(applied(&state, settings));
    }
}

fn applied(state: &State, mut settings: Settings) -> Settings {
    settings.off = state.off;
    settings.document.monitors.clone_from(&state.monitors);
    for (name, on) in &state.named {
        let monitors = &mut settings.document.monitors;
        match on {
            true => {
                monitors.entry(name.clone()).or_default();
            }
            false => {
                monitors.remove(name);
            }
        }
    }
    settings
}
