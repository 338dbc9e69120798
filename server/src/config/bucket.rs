//! The variables of the environment that set up buckets, for symbol files and for backups.

use std::ffi::OsString;

/// The start of the names of all variables.
const VARIABLES: &str = "AWS_";

/// Returns the variables of the environment that set up a bucket.
pub fn bucket_options() -> Vec<(String, String)> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os()
        .filter_map(text)
        .filter(|(name, value)| name.starts_with(VARIABLES) && !value.is_empty())
        .collect()
}
