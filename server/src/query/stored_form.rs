//! Converts filter values to the form in which rows store them.

use unjank_foundation::ids::canonical_id;

/// Dimensions with ids.
const IDS: [&str; 2] = ["install_id", "session_id"];
/// Dimensions that are stored in lower case.
const LOWER_CASE: [&str; 8] = [
    "os_name",
    "device_class",
    "mode",
    "kind",
    "network",
    "status",
    "ended",
    "outcome",
];

/// Converts a filter value to the stored form: ids are UUIDs with hyphens, and they and the [`LOWER_CASE`] dimensions are in lower case.
pub(super) fn stored_form(dimension: &str, value: &str) -> String {
    match dimension {
        _ if IDS.contains(&dimension) => canonical_id(value),
        _ if LOWER_CASE.contains(&dimension) => value.to_lowercase(),
        _ => value.to_owned(),
    }
}

/// Converts the text of a `contains` filter to the stored form, as [`stored_form`] does.
pub(super) fn stored_part(dimension: &str, part: &str) -> String {
    if IDS.contains(&dimension) || LOWER_CASE.contains(&dimension) {
        part.to_lowercase()
    } else {
        part.to_owned()
    }
}
