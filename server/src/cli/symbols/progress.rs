//! The progress of an upload: a bar on a terminal, otherwise only the lines about files.

use std::fmt::Display;
use std::io::{Write, stdout};

use indicatif::ProgressBar;

use crate::cli::byte_bar::byte_bar;

pub(super) struct Progress {
    /// Counts the bytes to send.
    bar: ProgressBar,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { bar: byte_bar() }
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
