//! Parses stacks that people paste: text in the formats of virtual machines, debuggers and crash reporters.
//!
//! Devices send frames, not text; this module serves people at a terminal. The result is a single stack: that of the
//! main thread if the text has several, and that of the root cause if the text is a chain of exceptions.

mod apple;
mod dart;
mod javascript;
mod jvm;
mod location;
mod native;
mod sections;

use unjank_protocol::Frame;

use self::sections::Sections;

/// The error for a text without frames.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no line of the input is a stack frame{}. Supported are stacks of the JVM (`at com.example.Cart.pay(Cart.kt:42)`), \
     Android tombstones (`#00 pc 0004f9a8 /system/lib64/libc.so (read+8)`), gdb, lldb, Rust backtraces, iOS crash \
     reports, Kotlin/Native, Dart (`#0 Cart.pay (package:shop/cart.dart:42:7)`) and JavaScript (V8, Hermes, JavaScriptCore)",
    .first.as_ref().map(|first| format!(" ({lines} lines; the first is {first:?})")).unwrap_or_default()
)]
pub struct ParseError {
    /// The number of lines of the text.
    pub lines: usize,
    /// The first non-blank line, truncated.
    pub first: Option<String>,
}

/// Parses one stack from text, innermost frame first. Names stay mangled; rules demangle them.
///
/// Of several threads, the main one is used (named `main`, or the first of a crash report), or else the first with
/// frames. Of a chain of exceptions, the last `Caused by:` is used, because the root cause ran innermost; its `... 12
/// more` is filled in from the enclosing trace. Lines that are not frames are skipped.
///
/// # Errors
/// If no line is a frame.
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

/// Parses a line as a frame, in any supported format.
fn frame(line: &str) -> Option<Frame<'_>> {
    if let Some(rest) = line.strip_prefix("at ") {
        let rest = rest.trim_start();
        return apple::frame(rest)
            .or_else(|| javascript::v8(rest))
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
        .or_else(|| jvm::element(line))
}
