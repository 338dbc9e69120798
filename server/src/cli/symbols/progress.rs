//! The progress of an upload: a bar on a terminal, otherwise only the lines about files.

use std::fmt::Display;
use std::io::{IsTerminal, Write, stderr, stdout};

use indicatif::{ProgressBar, ProgressStyle};

pub(super) struct Progress {
    /// Counts the bytes to send.
    bar: ProgressBar,
}

impl Progress {
    pub(super) fn new() -> Self {
        let bar = match stderr().is_terminal() {
            true => ProgressBar::new(0),
            false => ProgressBar::hidden(),
        };
        let template = "{elapsed_precise} [{bar:32}] {bytes}/{total_bytes} {bytes_per_sec} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// Shows the file whose bytes are being sent.
    pub(super) fn expect(&self, name: &str, bytes: u64) {
        self.bar.set_message(name.to_owned());
        self.bar.inc_length(bytes);
    }

    pub(super) fn sent(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// Writes a line about a file, above the bar.
    pub(super) fn say(&self, line: impl Display) -> std::io::Result<()> {
        self.bar.suspend(|| writeln!(stdout().lock(), "{line}"))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
