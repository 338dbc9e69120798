//! Stacks as people paste them: text in the formats of virtual machines, debuggers and crash reporters.
//!
//! Devices send frames, not text; this is for people at a terminal. One stack comes out: that of the main thread, when
//! the text shows several, and of the root cause, when it is a chain of exceptions.

mod apple;
mod dart;
mod javascript;
mod jvm;
mod location;
mod native;
mod sections;

use unjank_protocol::Frame;

use self::sections::Sections;

/// No line of the text is a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no line of the input is a stack frame{}. Known are stacks of the JVM (`at com.example.Cart.pay(Cart.kt:42)`), \
     Android tombstones (`#00 pc 0004f9a8 /system/lib64/libc.so (read+8)`), gdb, lldb, Rust backtraces, iOS crash \
     reports, Dart (`#0 Cart.pay (package:shop/cart.dart:42:7)`) and JavaScript (V8, Hermes, JavaScriptCore)",
    .first.as_ref().map(|first| format!(" (of {lines}; the first is {first:?})")).unwrap_or_default()
)]
pub struct ParseError {
    /// How many lines there were.
    pub lines: usize,
    /// The first line that is not blank, shortened.
    pub first: Option<String>,
}

/// Reads one stack from text, innermost frame first. Names are left as they stand; rules demangle them.
///
/// Of several threads the main one is taken (named `main`, or the first of a crash report), else the first with frames.
/// Of a chain of exceptions the last `Caused by:` is taken, its `... 12 more` filled in from the trace around it: the
/// root cause is what ran innermost. Lines that are no frames are skipped.
///
/// # Errors
/// When no line is a frame.
pub fn parse_text(text: &str) -> Result<Vec<Frame<'_>>, ParseError> {
    let mut sections = Sections::default();
    for line in text.lines() {
        sections.take(line);
    }
    sections.main_stack().ok_or_else(|| ParseError {
        lines: text.lines().count(),
        first: text
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .map(|line| line.chars().take(80).collect()),
    })
}

/// A line as a frame, in whichever format it is.
fn frame(line: &str) -> Option<Frame<'_>> {
    if let Some(rest) = line.strip_prefix("at ") {
        let rest = rest.trim_start();
        return javascript::v8(rest)
            .or_else(|| jvm::frame(rest))
            .or_else(|| javascript::bare(rest));
    }
    if line.starts_with('#') {
        return native::tombstone(line)
            .or_else(|| dart::frame(line))
            .or_else(|| native::gdb(line));
    }
    native::lldb(line)
        .or_else(|| apple::frame(line))
        .or_else(|| native::rust(line))
        .or_else(|| javascript::jsc(line))
}
