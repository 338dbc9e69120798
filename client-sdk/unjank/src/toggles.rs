//! The team's own flags in the remote configuration.

use crate::measure::client;

/// Returns the value of one of the team's own toggles in the remote configuration: any JSON value.
///
/// Returns `None` if no toggle has this name, before a configuration has arrived, and before [`init`](crate::init). With a
/// [`Config::data_dir`](crate::Config::data_dir), `init` loads the last configuration. The call only reads memory and copies the value.
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
