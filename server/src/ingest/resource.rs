//! Normalizes the resource of a batch: its app, device and user.

use unjank_protocol::{Resource, Text};

use super::event_checks::Checks;

/// Truncates the texts of the resource, and writes those that are names in lower case: clients write `iOS`, and names of enumerations in
/// capitals. Never causes a rejection.
pub(super) fn normalize(resource: &mut Resource<'_>, checks: &Checks<'_>) {
    for text in [
        &mut resource.app_id,
        &mut resource.app_version,
        &mut resource.channel,
        &mut resource.mode,
        &mut resource.os_name,
        &mut resource.os_version,
        &mut resource.device_model,
        &mut resource.device_manufacturer,
        &mut resource.device_class,
        &mut resource.locale,
        &mut resource.user_id,
        &mut resource.sdk_name,
        &mut resource.sdk_version,
    ] {
        checks.text(text);
    }
    checks.take_truncated();
    for name in [
        &mut resource.os_name,
        &mut resource.device_class,
        &mut resource.mode,
    ] {
        if name.chars().any(char::is_uppercase) {
            *name = Text::from(name.to_lowercase());
        }
    }
}
