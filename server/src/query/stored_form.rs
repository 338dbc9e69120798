//! The values of filters as rows have them.

use unjank_remote_config::canonical_id;

/// Dimensions with UUIDs.
const IDS: [&str; 2] = ["install_id", "session_id"];

/// Returns a value as rows have it: UUIDs with hyphens and names of systems, both in lower case.
pub(super) fn stored_form(dimension: &str, value: &str) -> String {
    match dimension {
        _ if IDS.contains(&dimension) => canonical_id(value),
        "os_name" => value.to_lowercase(),
        _ => value.to_owned(),
    }
}

/// Returns a part of a value as rows have it.
pub(super) fn stored_part(dimension: &str, part: &str) -> String {
    if IDS.contains(&dimension) || dimension == "os_name" {
        part.to_lowercase()
    } else {
        part.to_owned()
    }
}
