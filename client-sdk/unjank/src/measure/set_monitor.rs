//! Switches monitors at run time, for the app.

use super::client;
use super::switches::Monitor;

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
        shared
            .switches
            .apply(&shared.settings, |settings| shared.put_settings(settings));
        // The background thread samples monitors.
        shared.hurry();
    }
}
