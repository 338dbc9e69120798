//! Switches of monitors that the app changes at run time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use arc_swap::ArcSwap;
use unjank_protocol::Signal;
use unjank_protocol::config::Monitor as Interval;

use super::sampling::Settings;
use super::switched_off::Off;

/// What [`crate::set_monitor`] switches.
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

impl Switches {
    /// Creates the state without any switch. `monitors` are those of the settings.
    pub(crate) fn new(monitors: &BTreeMap<String, Interval>) -> Self {
        Self(Mutex::new(State {
            monitors: monitors.clone(),
            ..State::default()
        }))
    }

    /// Sets a switch. Returns whether it changed.
    pub(super) fn set(&self, monitor: Monitor<'_>, on: bool) -> bool {
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
        state.off.set(signal, on);
        state.off != before
    }

    /// Returns the switch of a monitor, if the app has set it.
    pub(crate) fn named(&self, name: &str) -> Option<bool> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.named.get(name).copied()
    }

    /// Remembers the monitors of new settings. `put` applies the settings together with the switches.
    pub(crate) fn renew(&self, settings: Settings, put: impl FnOnce(Settings)) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.monitors.clone_from(&settings.document.monitors);
        // While the lock is held, so that no switch is lost.
        put(applied(&state, settings));
    }

    /// `put` applies the settings in force together with the switches.
    pub(super) fn apply(&self, in_force: &ArcSwap<Settings>, put: impl FnOnce(Settings)) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let settings = Settings::clone(&in_force.load());
        put(applied(&state, settings));
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
