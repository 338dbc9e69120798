//! `unjank classify`: shows the class of a stack, and which frame and rule decided it.
//!
//! The command reads a stack and prints the result. It needs no server and no database, so rules can be tried before they are
//! deployed.

use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;
use unjank_protocol::Frame;
use unjank_stacks::{Explanation, Rules, parse_text, stack_hash};

/// Enough for any pasted text, and for the largest batch that the server accepts.
const MAX_INPUT_BYTES: u64 = 64 * 1024 * 1024;

/// Show the class of a stack, and which frame and rule decided it
///
/// Reads standard input: a stack as text (JVM, Android tombstone, gdb, lldb, Rust, iOS crash report, Dart, JavaScript),
/// or JSON: a list of frames, {"frames": [...]} or {"stack": [...]}, a list of those, or a whole ingest batch, whose
/// janks are classified one by one.
///
/// The frames are checked from the innermost outwards. For each frame, the first matching rule decides what it means: `in_app`
/// (your own code: the first such frame is the culprit), `category` (a kind of work), `ignore`, or `not_a_cause` (an idle loop).
#[derive(Args, Debug, Default)]
#[command(after_long_help = "\
Examples:
  adb logcat -d | unjank classify                   classify with the built-in rules
  unjank classify --rules rules.toml < stack.txt    try your own rules
  unjank classify --json < batch.json | jq '.[].class.title'
  unjank classify --print-rules > rules.toml        start from the built-in rules, which explain the format")]
pub(super) struct ClassifyArgs {
    /// The rule file to use in place of the built-in rules
    ///
    /// With `built_in = true` in the file, the built-in rules follow your own.
    #[arg(long, env = "UNJANK_RULES", value_name = "FILE")]
    rules: Option<PathBuf>,

    /// Print JSON: a list with one entry per stack
    #[arg(long)]
    json: bool,

    /// Print the built-in rules, with comments on the format, and exit
    #[arg(long)]
    print_rules: bool,
}

/// Runs the command.
///
/// # Errors
/// Returns an error if the rules or the input cannot be read, or the output cannot be written.
pub(super) fn run(
    args: &ClassifyArgs,
    input: impl Read,
    mut out: impl Write,
) -> anyhow::Result<()> {
    match out.write_all(answer(args, input)?.as_bytes()) {
        // The reader, such as `head`, needs no more output.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

fn answer(args: &ClassifyArgs, input: impl Read) -> anyhow::Result<String> {
    if args.print_rules {
        return Ok(Rules::built_in_toml().to_owned());
    }
    let rules = read_rules(args)?;
    let mut text = String::new();
    let read = input.take(MAX_INPUT_BYTES + 1).read_to_string(&mut text);
    if read.context("the input is not UTF-8 text")? as u64 > MAX_INPUT_BYTES {
        bail!("the input is larger than {MAX_INPUT_BYTES} bytes: pass a smaller part of it");
    }
    let value = json(&text)?;
    let stacks = match &value {
        Some(value) => stacks_of(value)?,
        None => vec![Stack {
            name: String::new(),
            frames: parse_text(&text)?,
        }],
    };
    let entries = stacks.iter().map(|stack| Entry {
        stack: &stack.name,
        stack_hash: stack_hash(&stack.frames).to_string(),
        explanation: rules.explain(&stack.frames),
    });
    let entries: Vec<Entry<'_>> = entries.collect();
    if args.json {
        return Ok(serde_json::to_string_pretty(&entries)? + "\n");
    }
    Ok(tables(&rules, &entries))
}

fn read_rules(args: &ClassifyArgs) -> anyhow::Result<Rules> {
    let Some(path) = &args.rules else {
        return Ok(Rules::built_in());
    };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the rules at {}", path.display()))?;
    Rules::parse(&text).with_context(|| format!("invalid rules in {}", path.display()))
}

/// A stack from the input.
struct Stack<'v> {
    name: String,
    frames: Vec<Frame<'v>>,
}

/// One entry of `--json`.
#[derive(Serialize)]
struct Entry<'s> {
    stack: &'s str,
    /// A text, because JSON parsers may lose the last digits of a number this large.
    stack_hash: String,
    #[serde(flatten)]
    explanation: Explanation,
}

fn tables(rules: &Rules, entries: &[Entry<'_>]) -> String {
    let mut parts: Vec<String> = rules
        .warnings()
        .iter()
        .map(|warning| format!("warning: {warning}\n"))
        .collect();
    for entry in entries {
        let heading = if entry.stack.is_empty() {
            String::new()
        } else {
            format!("== {}\n", entry.stack)
        };
        parts.push(format!("{heading}{}", entry.explanation));
    }
    parts.join("\n")
}

/// Parses the input as JSON; `None` if it is text.
fn json(text: &str) -> anyhow::Result<Option<Value>> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with(['{', '[']) {
        match serde_json::from_str(text) {
            Ok(value) => return Ok(Some(value)),
            // Log lines may also begin with a bracket.
            Err(_) if parse_text(text).is_ok() => {}
            Err(error) => {
                return Err(error).context("the input begins like JSON but is not valid JSON");
            }
        }
    }
    Ok(None)
}

fn stacks_of(value: &Value) -> anyhow::Result<Vec<Stack<'_>>> {
    let mut stacks = Vec::new();
    collect(value, "", &mut stacks)?;
    if stacks.is_empty() {
        bail!(
            "the JSON holds no stack: pass a batch with `janks`, or a list of frames or of objects with `frames` or `stack`"
        );
    }
    Ok(stacks)
}

/// Descends at most as deep as an ingest batch is nested: list → batch → janks → samples.
fn collect<'v>(value: &'v Value, name: &str, stacks: &mut Vec<Stack<'v>>) -> anyhow::Result<()> {
    match value {
        Value::Array(items) if items.iter().all(is_frame) => {
            let frames = items
                .iter()
                .map(Frame::deserialize)
                .collect::<Result<_, _>>();
            let frames =
                frames.with_context(|| format!("a frame of {} is not valid", or_input(name)))?;
            stacks.push(Stack {
                name: name.to_owned(),
                frames,
            });
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &format!("{name}[{index}]"), stacks)?;
            }
        }
        Value::Object(object) => {
            let own = object.get("name").and_then(Value::as_str);
            let name = own.map_or_else(
                || name.to_owned(),
                |own| format!("{name} {own}").trim().to_owned(),
            );
            for key in ["frames", "stack"] {
                if let Some(frames) = object.get(key) {
                    collect(frames, &name, stacks)?;
                }
            }
            for key in ["janks", "samples"] {
                if let Some(Value::Array(items)) = object
                    .get(key)
                    .filter(|items| **items != Value::Array(Vec::new()))
                {
                    collect_all(items, format!("{name} {key}").trim(), stacks)?;
                }
            }
        }
        _ => bail!(
            "{} is neither a frame nor an object with frames",
            or_input(name)
        ),
    }
    Ok(())
}

fn collect_all<'v>(
    items: &'v [Value],
    name: &str,
    stacks: &mut Vec<Stack<'v>>,
) -> anyhow::Result<()> {
    items
        .iter()
        .enumerate()
        .try_for_each(|(index, item)| collect(item, &format!("{name}[{index}]"), stacks))
}

fn or_input(name: &str) -> &str {
    if name.is_empty() { "the input" } else { name }
}

/// Whether an item is a frame rather than an object with frames.
fn is_frame(item: &Value) -> bool {
    let holders = ["frames", "stack", "janks", "samples", "resource"];
    item.as_object()
        .is_some_and(|object| !holders.iter().any(|key| object.contains_key(*key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: &str = r#"[{"class": "com.google.gson.Gson", "function": "toJson"}, {"class": "com.example.Cart", "function": "pay"}]"#;

    fn output(args: &ClassifyArgs, input: &str) -> anyhow::Result<String> {
        let mut out = Vec::new();
        run(args, input.as_bytes(), &mut out)?;
        Ok(String::from_utf8(out)?)
    }

    fn titles(input: &str) -> Vec<(String, String)> {
        let args = ClassifyArgs {
            json: true,
            ..ClassifyArgs::default()
        };
        let entries: Value = serde_json::from_str(&output(&args, input).unwrap()).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        entries
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| (text(&entry["stack"]), text(&entry["class"]["title"])))
            .collect()
    }

    #[test]
    fn every_form_of_input_is_accepted() {
        let title = || "JSON on main thread in Cart.pay".to_owned();
        let named = |name: &str| (name.to_owned(), title());
        assert_eq!(
            titles(
                "at com.google.gson.Gson.toJson(Gson.java:1)\nat com.example.Cart.pay(Cart.kt:2)"
            ),
            [named("")]
        );
        assert_eq!(titles(FRAMES), [named("")]);
        assert_eq!(titles(&format!(r#"{{"frames": {FRAMES}}}"#)), [named("")]);
        assert_eq!(
            titles(&format!(r#"[{{"name": "pay", "stack": {FRAMES}}}]"#)),
            [named("[0] pay")]
        );
        let jank = format!(
            r#"{{"kind": "jank", "stack": {FRAMES}, "samples": [{{"offset_ms": 1, "stack": {FRAMES}}}]}}"#
        );
        assert_eq!(
            titles(&format!(r#"{{"resource": {{}}, "janks": [{jank}]}}"#)),
            [named("janks[0]"), named("janks[0] samples[0]")]
        );
    }

    #[test]
    fn the_table_shows_the_deciding_frame_and_rule() {
        let text = output(&ClassifyArgs::default(), FRAMES).unwrap();
        assert!(text.starts_with("JSON on main thread in Cart.pay\n  category  JSON on main thread\n  culprit   com.example.Cart.pay\n"));
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[6].contains("CATEGORY") && lines[6].contains("match \"com.google.gson.\""),
            "{text}"
        );
        assert!(
            lines[7].contains("CULPRIT") && lines[7].contains("no rule marks in-app code"),
            "{text}"
        );
    }

    #[test]
    fn a_rule_file_is_used_and_its_errors_are_reported() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let args = ClassifyArgs {
            rules: Some(file.path().to_owned()),
            ..ClassifyArgs::default()
        };
        std::fs::write(file.path(), "[[rule]]\nmatch = \"com.\"\nmeans = \"in_app\"\nowner = \"team-shop\"\n[[rule]]\nmatch = \"com.google.\"\nmeans = \"ignore\"\n").unwrap();
        let text = output(&args, FRAMES).unwrap();
        assert!(
            text.starts_with("warning: rule 2 (line 5): \"com.google.\" never matches"),
            "{text}"
        );
        assert!(
            text.contains("culprit   com.google.gson.Gson.toJson")
                && text.contains("owner team-shop"),
            "{text}"
        );
        std::fs::write(file.path(), "[[rule]]\nmatch = \"com.\"\n").unwrap();
        let error = format!("{:#}", output(&args, FRAMES).unwrap_err());
        assert!(error.contains("rule 1 (line 1)"), "{error}");
    }

    #[test]
    fn input_without_a_stack_is_rejected() {
        for (input, reason) in [
            ("hello", "no line of the input is a stack frame"),
            ("{\"resource\": {}}", "holds no stack"),
            ("[1, 2]", "[0] is neither"),
            ("{", "begins like JSON"),
        ] {
            let error = format!("{:#}", output(&ClassifyArgs::default(), input).unwrap_err());
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn the_printed_rules_are_a_valid_rule_file() {
        let printed = output(
            &ClassifyArgs {
                print_rules: true,
                ..ClassifyArgs::default()
            },
            "",
        )
        .unwrap();
        assert!(
            Rules::parse(&printed).unwrap().warnings().is_empty(),
            "{:#?}",
            Rules::parse(&printed).unwrap().warnings()
        );
    }
}
