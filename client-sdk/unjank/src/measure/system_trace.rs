//! Forwards spans to the trace of the system, as sections in the text format of `atrace` that ftrace and Perfetto read:
//!
//! | line | meaning |
//! |---|---|
//! | `B\|pid\|name` | a section begins on this thread |
//! | `E\|pid` | the section of this thread that began last ends |
//! | `S\|pid\|name\|cookie`, `F\|pid\|name\|cookie` | an operation that is not bound to a thread begins and ends |

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::span_record::SpanRecord;
use crate::config::Config;

impl Config {
    /// Writes each recorded span also to the trace of the system, so that a system-wide profile shows what the app did: into this file, the
    /// marker of ftrace, which is `/sys/kernel/tracing/trace_marker` on Linux and Android. The default is not to write any.
    ///
    /// A span that is bound to a thread becomes a section of the thread (`B` and `E`). One that was detached, as every span of a future, is
    /// an asynchronous section from then on (`S` and `F`). Names are cut at 200 bytes. Spans that sampling leaves out are not written.
    ///
    /// Each span then costs two writes to the kernel on the thread of the app, of about a microsecond each, so use this for development. The file
    /// must exist and be writable; otherwise nothing is forwarded, and [`crate::Mode::Development`] prints why. On Linux, mount `tracefs` and
    /// give the user write access to the file. To record: `perfetto --app com.example.shop ftrace/print`, or read
    /// `/sys/kernel/tracing/trace`.
    ///
    /// ```
    /// let config = unjank::Config::new("http://127.0.0.1:8080", "demo")
    ///     .system_trace("/sys/kernel/tracing/trace_marker");
    /// ```
    #[must_use]
    pub fn system_trace(mut self, marker: impl Into<PathBuf>) -> Self {
        self.system_trace = Some(marker.into());
        self
    }
}

/// The file that sections are written to.
#[derive(Debug)]
pub(crate) struct SystemTrace {
    marker: File,
    pid: u32,
}

/// The longest name. The kernel cuts a marker at 1 KiB or more.
const LONGEST_NAME: usize = 200;

impl SystemTrace {
    pub(crate) fn open(marker: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true);
        // A reader that is slow loses sections; it does not stop the app.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
        Ok(Self {
            marker: options.open(marker)?,
            pid: std::process::id(),
        })
    }

    /// Writes the beginning of a span on this thread.
    pub(crate) fn begin(&self, name: &str) {
        self.write(|line, pid| write!(line, "B|{pid}|{}", Clean(name)));
    }

    /// Writes the end of the innermost section of this thread.
    pub(crate) fn end(&self) {
        self.write(|line, pid| write!(line, "E|{pid}"));
    }

    /// Writes the beginning of a section for a span that continues without its thread.
    pub(crate) fn detach(&self, record: &SpanRecord) {
        let (name, cookie) = (Clean(record.name()), cookie(record));
        self.write(|line, pid| write!(line, "S|{pid}|{name}|{cookie}"));
    }

    /// Writes the end of a span that has no thread.
    pub(crate) fn end_detached(&self, record: &SpanRecord) {
        let (name, cookie) = (Clean(record.name()), cookie(record));
        self.write(|line, pid| write!(line, "F|{pid}|{name}|{cookie}"));
    }

    /// Writes a marker with a single call, because each call is one marker.
    fn write(&self, fill: impl FnOnce(&mut Line<'_>, u32) -> io::Result<()>) {
        let mut buffer = [0; 256];
        let mut line = Line::new(buffer.as_mut_slice());
        let written = fill(&mut line, self.pid)
            .and_then(|()| line.write_all(b"\n"))
            .and_then(|()| {
                let length = usize::try_from(line.position()).unwrap_or_default();
                let line = line.get_ref().get(..length).unwrap_or_default();
                (&self.marker).write_all(line)
            });
        // The kernel refuses markers while tracing is off.
        written.unwrap_or_default();
    }
}

/// A line on the stack. The longest one is a name of 200 bytes with two numbers.
type Line<'l> = io::Cursor<&'l mut [u8]>;

/// Identifies an asynchronous section: a positive number of 32 bits.
fn cookie(record: &SpanRecord) -> u64 {
    record.span_id & 0x7fff_ffff
}

/// A name without the characters that the format gives a meaning.
struct Clean<'n>(&'n str);

impl std::fmt::Display for Clean<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write as _;
        let mut length = 0_usize;
        for letter in self.0.chars() {
            length = length.saturating_add(letter.len_utf8());
            if length > LONGEST_NAME {
                break;
            }
            let has_meaning = letter == '|' || letter.is_control();
            f.write_char(if has_meaning { '_' } else { letter })?;
        }
        Ok(())
    }
}
