//! Console output: reports go to standard output, progress and warnings to standard error.

use std::io::{Write, stderr, stdout};

/// Prints a report.
pub(crate) fn print(text: &str) {
    // A closed pipe (`| head`) is not an error.
    writeln!(stdout().lock(), "{text}").unwrap_or_default();
}

/// Prints a line of progress or a warning.
pub(crate) fn say(text: &str) {
    writeln!(stderr().lock(), "{text}").unwrap_or_default();
}
