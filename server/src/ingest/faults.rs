//! What is wrong with a value of a batch: which field it is, what it must be and what it is, in words of the protocol.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_path_to_error::{Path, Segment};

/// The most characters of a fault, because it quotes what was sent.
const LONGEST: usize = 200;

/// What was sent, in words of the parser and of the protocol.
const FOUND: [(&str, &str); 8] = [
    ("floating point ", "the number "),
    ("integer ", "the number "),
    ("boolean ", ""),
    ("string ", "the text "),
    ("character ", "the text "),
    ("sequence", "a list"),
    ("map", "an object"),
    ("unit value", "null"),
];

/// Reads a value. A fault begins with the path of the field, which begins with `root`.
pub(super) fn read<'de, V: Deserialize<'de>>(json: &'de str, root: &str) -> Result<V, String> {
    serde_json::from_str(json).map_err(|error| of::<V>(json, root, &error))
}

/// The fault of a value that could not be read. It is read once more, to watch where that fails.
pub(super) fn of<'de, V: Deserialize<'de>>(
    json: &'de str,
    root: &str,
    error: &serde_json::Error,
) -> String {
    let mut reader = serde_json::Deserializer::from_str(json);
    let Err(found) = serde_path_to_error::deserialize::<_, V>(&mut reader) else {
        return in_words(root, error);
    };
    let path = full_path(root, found.path());
    in_words(&path, found.inner())
}

/// The fault at a path.
pub(super) fn in_words(path: &str, error: &serde_json::Error) -> String {
    shortened(&sentence(path, &unplaced(error)))
}

/// The error of a text that is not JSON.
pub(super) fn plain(error: &serde_json::Error) -> String {
    shortened(&unplaced(error))
}

/// The error without its line and column, which mean nothing in a fragment.
fn unplaced(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if error.line() > 0
        && let Some(end) = text.rfind(" at line ")
    {
        text.truncate(end);
    }
    text
}

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

fn sentence(path: &str, text: &str) -> String {
    if let Some((item, fault)) = of_item(path, text) {
        return if fault.starts_with("missing field ") {
            sentence(&item, fault)
        } else {
            format!("`{item}` cannot be read: {fault}")
        };
    }
    let member = |name: &str| joined(path, name.trim_matches('`'));
    if let Some(name) = text.strip_prefix("missing field ") {
        return format!("{} is missing", named(&member(name)));
    }
    if let Some(name) = text.strip_prefix("duplicate field ") {
        return format!("{} occurs twice", named(&member(name)));
    }
    let field = named(path);
    if text.starts_with("UUID parsing failed") {
        return format!("{field} must be a UUID");
    }
    let kinds = ["invalid type: ", "invalid value: "];
    let wrong = kinds.iter().find_map(|kind| text.strip_prefix(kind));
    match wrong.and_then(|wrong| wrong.rsplit_once(", expected ")) {
        Some((found, expected)) => {
            format!("{field} must be {}, is {}", needed(expected), sent(found))
        }
        None if text.starts_with("invalid length ") => {
            format!("{field} must be an object, is a list")
        }
        None => format!("{field} cannot be read: {text}"),
    }
}

/// The path and the fault of an item of a list whose items are read after its end, so the path of the error is that of the list.
fn of_item<'t>(path: &str, text: &'t str) -> Option<(String, &'t str)> {
    let (index, fault) = text.strip_prefix("item ")?.split_once(": ")?;
    let index: usize = index.parse().ok()?;
    Some((format!("{path}[{index}]"), fault))
}

/// What a field must be, in words of the protocol.
fn needed(expected: &str) -> &str {
    match expected {
        "a formatted UUID string" => "a UUID",
        _ if expected.starts_with("struct ") => "an object",
        other => other,
    }
}

fn sent(found: &str) -> String {
    let mut words = FOUND.iter();
    let in_words =
        words.find_map(|(parser, plain)| Some(format!("{plain}{}", found.strip_prefix(parser)?)));
    in_words.unwrap_or_else(|| found.to_owned())
}

fn named(path: &str) -> String {
    match path {
        "" => "it".to_owned(),
        path => format!("`{path}`"),
    }
}

fn joined(path: &str, member: &str) -> String {
    let dot = if path.is_empty() { "" } else { "." };
    format!("{path}{dot}{member}")
}

fn full_path(root: &str, path: &Path) -> String {
    let mut full = root.to_owned();
    for part in path {
        match part {
            Segment::Seq { index } => {
                let _written = write!(full, "[{index}]").is_ok();
            }
            Segment::Map { key } | Segment::Enum { variant: key } => full = joined(&full, key),
            Segment::Unknown => {}
        }
    }
    full
}

#[cfg(test)]
mod tests {
    use unjank_protocol::{FrameWindow, Jank, Metric, Resource, Span};

    use super::*;

    #[track_caller]
    fn assert_fault<'de, V: Deserialize<'de>>(json: &'de str, fault: &str) {
        assert_eq!(read::<V>(json, "").err().as_deref(), Some(fault), "{json}");
    }

    #[test]
    fn a_fault_names_its_field_in_words_of_the_protocol() {
        const TIME: &str = "2026-11-20T12:00:00Z";
        assert_fault::<Metric<'_>>("7", "it must be an object, is the number `7`");
        assert_fault::<Metric<'_>>("{}", "`time` is missing");
        let metric = |value: &str| format!(r#"{{"name":"a","time":"{TIME}","value":{value}}}"#);
        assert_fault::<Metric<'_>>(
            &metric("\"half\""),
            "`value` must be a number, is the text \"half\"",
        );
        assert_fault::<Metric<'_>>(&metric("null"), "`value` must be a number, is null");
        assert_fault::<Metric<'_>>(
            &metric("1e999"),
            "`value` cannot be read: number out of range",
        );
        assert_fault::<Metric<'_>>(
            r#"{"name":"a","time":"soon, expected at line 3"}"#,
            "`time` must be an RFC 3339 time such as 2026-11-20T12:00:00.123Z, is the text \"soon, expected at line 3\"",
        );
        assert_fault::<Span<'_>>(
            r#"{"trace_id":"00000000000000000000000000000000"}"#,
            "`trace_id` must be 32 hex digits, not all zero, is the text \"00000000000000000000000000000000\"",
        );
        let jank = |rest: &str| format!(r#"{{"start":"{TIME}","duration_ms":1,{rest}}}"#);
        assert_fault::<Jank<'_>>(
            &jank(r#""run_log":[{"message":"a"}]"#),
            "`run_log[0].time` is missing",
        );
        assert_fault::<Jank<'_>>(
            &jank(&format!(
                r#""run_log":[{{"time":"{TIME}","message":"a"}},{{"time":"{TIME}","message":[]}}]"#
            )),
            "`run_log[1]` cannot be read: invalid type: sequence, expected a string, a number or a boolean",
        );
        assert_fault::<Jank<'_>>(
            &jank(r#""stack":[{},{"function":"pay","line":[]}]"#),
            "`stack[1].line` must be a whole number, is a list",
        );
        assert_fault::<Jank<'_>>(
            &jank(r#""stack":{"function":"pay"}"#),
            "`stack` must be a list, is an object",
        );
        assert_fault::<Jank<'_>>(
            &jank(r#""foreground":2"#),
            "`foreground` must be true or false, is the number `2`",
        );
        let window =
            |rest: &str| format!(r#"{{"start":"{TIME}","duration_ms":1,"frames_drawn":{rest}}}"#);
        assert_fault::<FrameWindow<'_>>(
            &window("5000000000"),
            "`frames_drawn` must be a whole number from 0 to 4294967295, is the number `5000000000`",
        );
        assert_fault::<FrameWindow<'_>>(
            &window(r#"1,"frame_time_hist":{"fast":2}"#),
            "`frame_time_hist.fast` cannot be read: `fast` is not a number of milliseconds",
        );
        assert_fault::<FrameWindow<'_>>(
            &window(r#"1,"frame_time_hist":{"16":"x"}"#),
            "`frame_time_hist.16` must be a whole number from 0 to 4294967295, is the text \"x\"",
        );
        assert_fault::<Resource<'_>>(
            r#"{"app_id":"a","install_id":"me"}"#,
            "`install_id` must be a UUID",
        );
        assert_fault::<Resource<'_>>(r#"{"app_id":"a","app_id":"b"}"#, "`app_id` occurs twice");
    }

    #[test]
    fn a_fault_is_short() {
        let json = format!(r#"{{"name":"a","time":"{}"}}"#, "x".repeat(10_000));
        let fault = read::<Metric<'_>>(&json, "").unwrap_err();
        assert_eq!(fault.chars().count(), LONGEST);
    }
}
