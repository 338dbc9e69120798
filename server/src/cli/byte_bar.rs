//! A progress bar that counts bytes, for the commands that send or copy data.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressStyle};

/// Returns a bar on standard error. It is hidden unless standard error is a terminal.
pub(super) fn byte_bar() -> ProgressBar {
    let bar = match stderr().is_terminal() {
        true => ProgressBar::new(0),
        false => ProgressBar::hidden(),
    };
    let template = "{elapsed_precise} [{bar:32}] {bytes}/{total_bytes} {bytes_per_sec} {msg}";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
