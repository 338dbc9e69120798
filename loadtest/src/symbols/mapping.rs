//! Made-up R8 mappings, and obfuscated stacks of the apps that they belong to.

use std::fmt::Write;

use anyhow::Result;
use serde_json::{Value, json};

/// Frames of each stack.
pub(super) const FRAMES: usize = 30;
/// Classes whose functions occur in stacks. Any mapping of a megabyte has them.
const CLASSES: usize = 500;
const FUNCTIONS: usize = 30;
const LINES: usize = 12;

/// One build of an app.
pub(super) struct Mapping {
    id: String,
}

impl Mapping {
    pub(super) fn new(number: u32) -> Self {
        Self {
            id: format!("{:064x}", 0xfeed_0000_u64 + u64::from(number)),
        }
    }

    /// Writes a mapping of at least `bytes`. Each class has 30 functions with 12 lines each, of which two are inlined.
    pub(super) fn text(&self, bytes: usize) -> Result<String> {
        let mut text = format!("# compiler: R8\n# pg_map_id: {}\n", self.id);
        for class in 0.. {
            if text.len() >= bytes {
                break;
            }
            writeln!(
                text,
                "com.example.shop.package{}.Class{class} -> a.b{class}:",
                class % 300
            )?;
            writeln!(
                text,
                "# {{\"id\":\"sourceFile\",\"fileName\":\"Class{class}.kt\"}}"
            )?;
            for function in 0..FUNCTIONS {
                write_function(&mut text, function)?;
            }
        }
        Ok(text)
    }

    /// Returns an obfuscated stack, another one for each number.
    pub(super) fn stack(&self, number: usize) -> Value {
        let file = format!("r8-map-id-{}", self.id);
        let frame = |place: usize| {
            let (class, function, line) = frame(number, place);
            json!({"class": format!("a.b{class}"), "function": format!("f{function}"), "file": file, "line": line})
        };
        (0..FRAMES).map(frame).collect()
    }

    /// Returns the same stack as an app sends it that is not obfuscated.
    pub(super) fn readable_stack(&self, number: usize) -> Value {
        let frame = |place: usize| {
            let (class, function, line) = frame(number, place);
            json!({
                "class": format!("com.example.shop.Class{class}"), "function": format!("function{function}"),
                "file": format!("Class{class}.kt"), "line": line, "module": self.id,
            })
        };
        (0..FRAMES).map(frame).collect()
    }
}

fn write_function(text: &mut String, function: usize) -> Result<()> {
    let signature = format!("void function{function}(int,java.lang.String)");
    for line in 1..=LINES - 2 {
        let original = 100 + line;
        writeln!(
            text,
            "    {line}:{line}:{signature}:{original}:{original} -> f{function}"
        )?;
    }
    writeln!(
        text,
        "    11:12:int com.example.shop.Price.round(int):40:41 -> f{function}"
    )?;
    writeln!(text, "    11:12:{signature}:120 -> f{function}")?;
    Ok(())
}

/// Class, function and line of a frame. The first frames spell the number of the stack, so that stacks differ.
fn frame(number: usize, place: usize) -> (usize, usize, usize) {
    let digit = number / CLASSES.pow(u32::try_from(place.min(3)).unwrap_or_default());
    let class = if place < 4 {
        digit % CLASSES
    } else {
        (number * 31 + place * 7) % CLASSES
    };
    (class, (number + place) % FUNCTIONS, 1 + place % LINES)
}
