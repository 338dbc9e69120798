//! Converts filter values to the form in which rows store them.

use unjank_remote_config::canonical_id;

/// Dimensions with UUIDs.
const IDS: [&str; 2] = ["install_id", "session_id"];

/// Converts a filter value to the stored form: UUIDs have hyphens, and UUIDs and OS names are lowercase.
pub(super) fn stored_form(dimension: &str, value: &str) -> String {
    match dimension {
        _ if IDS.contains(&dimension) => canonical_id(value),
        "os_name" => value.to_lowercase(),
        _ => value.to_owned(),
    }
}

/// Converts the text of a `contains` filter to the stored form: ids and OS names are lowercase.
pub(super) fn stored_part(dimension: &str, part: &str) -> String {
    if IDS.contains(&dimension) || dimension == "os_name" {
        part.to_lowercase()
    } else {
        part.to_owned()
    }
}
