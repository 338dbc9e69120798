//! Stacks of exceptions: text of a platform, or JSON of `MetricKit`. ANRs and hangs have their frames, attributes and log entries a text.

use unjank_protocol::{Frame, Text};
use unjank_stacks::parse_text;

use super::metric_kit::call_stack;

/// The name of the attribute.
pub(super) const STACK: &str = "exception.stacktrace";
/// The most bytes of a text from which frames are read.
const TEXT_BYTES: usize = 64 << 10;
/// The most bytes of the stacks of all threads as JSON, which cannot be read without its end.
const JSON_BYTES: usize = 1 << 20;
/// Marks a stack that has more frames.
const MORE: &str = "…";
/// The line above the frames of a root cause, and the most bytes of it.
const CAUSE: &str = "Caused by: ";
const CAUSE_BYTES: usize = 256;
/// How Python begins a stack. All other platforms write the innermost frame first.
const INNERMOST_LAST: &str = "Traceback (most recent call last)";

/// Cuts a stack to what is read of it.
pub(super) fn cut(stack: &mut Text<'_>) {
    let is_json = stack.starts_with('{');
    stack.truncate(if is_json { JSON_BYTES } else { TEXT_BYTES });
}

/// The frames of a stack, the innermost first. They are copies, because the stack may be one.
pub(super) fn frames(stack: &str, most: usize) -> Vec<Frame<'static>> {
    let is_short = stack.len() <= JSON_BYTES;
    if let Some(frames) = is_short.then(|| call_stack(stack, most)).flatten() {
        return frames;
    }
    // Text that only begins like JSON may be longer.
    let start = stack.get(..stack.floor_char_boundary(TEXT_BYTES));
    let frames = parse_text(start.unwrap_or_default()).unwrap_or_default();
    frames.into_iter().take(most).map(owned).collect()
}

/// A stack as a text of so many bytes: as it was sent if it fits, else its innermost frames, of a chain of exceptions those of the root cause.
pub(super) fn shortened(stack: Text<'_>, most_bytes: usize) -> Text<'_> {
    if stack.len() <= most_bytes {
        return stack;
    }
    let short = if stack.starts_with('{') {
        Some(of_json(&stack, most_bytes))
    } else if stack.starts_with(INNERMOST_LAST) {
        Some(last_lines(&stack, most_bytes))
    } else {
        root_cause(&stack, most_bytes)
    };
    let mut short = short.map_or(stack, Text::from);
    short.truncate(most_bytes);
    short
}

/// A part of JSON could not be read.
fn of_json(stack: &str, most_bytes: usize) -> String {
    let frames = frames(stack, most_bytes);
    if frames.is_empty() {
        let bytes = stack.len();
        return format!("left out: {bytes} bytes of JSON that unjank does not read");
    }
    first_lines(frames.iter().map(line_of), most_bytes)
}

fn last_lines(stack: &str, most_bytes: usize) -> String {
    let room = most_bytes.saturating_sub(MORE.len() + 1);
    let start = stack.ceil_char_boundary(stack.len().saturating_sub(room));
    let end = stack.get(start..).unwrap_or_default();
    let lines = end.split_once('\n').map_or(end, |(_, lines)| lines);
    format!("{MORE}\n{lines}")
}

/// `None` if the stack is no chain of exceptions.
fn root_cause(stack: &str, most_bytes: usize) -> Option<String> {
    let cause = stack.lines().rfind(|line| line.starts_with(CAUSE))?;
    let mut cause = Text::from(cause);
    cause.truncate(CAUSE_BYTES);
    let frames = frames(stack, most_bytes);
    let lines = std::iter::once(cause.to_string()).chain(frames.iter().map(line_of));
    (!frames.is_empty()).then(|| first_lines(lines, most_bytes))
}

/// As many whole lines as fit with [`MORE`] behind them.
fn first_lines(lines: impl Iterator<Item = String>, most_bytes: usize) -> String {
    let mut text = String::new();
    for line in lines {
        if text.len() + line.len() + 1 + MORE.len() > most_bytes {
            text.push_str(MORE);
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}

/// `at com.example.Cart.pay(Cart.kt:42)`, or `Shop + 165304 (70b89f27-1634-3580-a695-57cdb41d7743)` of code whose function has no name.
fn line_of(frame: &Frame<'_>) -> String {
    let Frame {
        class,
        module,
        function,
        file,
        build_id,
        line,
        ..
    } = frame;
    if function.is_empty() {
        let offset = frame.offset.unwrap_or_default();
        return format!("{module} + {offset} ({build_id})");
    }
    let dot = if class.is_empty() { "" } else { "." };
    let place = match file.as_str() {
        "" if frame.native => "Native Method".to_owned(),
        "" => "Unknown Source".to_owned(),
        file if *line > 0 => format!("{file}:{line}"),
        file => file.to_owned(),
    };
    format!("at {class}{dot}{function}({place})")
}

fn owned(frame: Frame<'_>) -> Frame<'static> {
    let own = |text: Text<'_>| Text::from(text.into_cow().into_owned());
    Frame {
        class: own(frame.class),
        module: own(frame.module),
        function: own(frame.function),
        file: own(frame.file),
        build_id: own(frame.build_id),
        line: frame.line,
        native: frame.native,
        column: frame.column,
        offset: frame.offset,
        module_index: frame.module_index,
        address: frame.address,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BYTES: usize = 1024;

    fn short(stack: &str) -> String {
        let short = shortened(Text::from(stack), BYTES);
        assert!(short.len() <= BYTES, "{short}");
        short.to_string()
    }

    #[test]
    fn a_long_chain_of_exceptions_keeps_its_root_cause_and_whole_lines() {
        let outer = "\tat com.example.Main.run(Main.kt:7)\n".repeat(100);
        let inner = "\tat com.example.Cart.pay(Cart.kt:42)\n".repeat(100);
        let stack = format!(
            "java.lang.RuntimeException: cannot pay\n{outer}Caused by: java.io.IOException: disk\n\
             \tat com.example.Disk.write(Native Method)\n{inner}"
        );
        let short = short(&stack);
        let lines: Vec<_> = short.lines().collect();
        let cause = "Caused by: java.io.IOException: disk";
        assert_eq!(
            lines[..2],
            [cause, "at com.example.Disk.write(Native Method)"]
        );
        let (last, calls) = lines[2..].split_last().unwrap();
        assert_eq!(*last, "…");
        assert!(calls.len() > 20, "{short}");
        let is_call = |line: &&str| *line == "at com.example.Cart.pay(Cart.kt:42)";
        assert!(calls.iter().all(is_call), "{short}");
    }

    #[test]
    fn the_innermost_frames_are_kept() {
        let outer = "  File \"shop.py\", line 7, in run\n    pay()\n".repeat(100);
        let stack = format!(
            "Traceback (most recent call last):\n{outer}  File \"cart.py\", line 42, in pay\nValueError: no money\n"
        );
        let kept = short(&stack);
        assert!(kept.starts_with("…\n  "), "{kept}");
        assert!(kept.ends_with("in pay\nValueError: no money\n"), "{kept}");
        // Columns of minified scripts are needed to read them.
        let stack = "    at pay (https://shop.example.com/main.js:1:2345)\n".repeat(100);
        let kept = short(&stack);
        assert!(stack.starts_with(kept.trim_end_matches('…')), "{kept}");
    }

    #[test]
    fn json_is_never_cut_in_the_middle() {
        let frame = json!({"binaryName": "Shop", "binaryUUID": "70b89f27-1634-3580-a695-57cdb41d7743", "offsetAddress": 165_304});
        let stacks =
            json!({"callStacks": [{"threadAttributed": true, "callStackFrames": vec![frame; 40]}]});
        let kept = short(&stacks.to_string());
        let first = "Shop + 165304 (70b89f27-1634-3580-a695-57cdb41d7743)";
        assert_eq!(kept.lines().next(), Some(first));
        let tree = json!({"callStackTree": "x".repeat(2_000)}).to_string();
        let expected = format!(
            "left out: {} bytes of JSON that unjank does not read",
            tree.len()
        );
        assert_eq!(short(&tree), expected);
    }

    #[test]
    fn a_stack_that_fits_or_has_no_frames_is_text() {
        assert_eq!(short("at a.B.c(B.kt:4)\nmore"), "at a.B.c(B.kt:4)\nmore");
        let cut = short(&"no stack\n".repeat(200));
        assert!(cut.starts_with("no stack\nno stack") && cut.ends_with('…'));
    }
}
