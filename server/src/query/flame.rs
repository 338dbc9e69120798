//! Merges stacks into one tree, outermost frame first, for the flame graph and for the formats of other viewers.

use std::collections::HashMap;

use serde::Serialize;

use crate::store::reads::StoredFrame;

/// Deeper frames are cut off: they are not readable, and a runaway recursion would make the tree equally deep.
const DEEPEST: usize = 256;

/// Frames with the same path from the outermost frame.
#[derive(Debug, Default, PartialEq, Serialize, utoipa::ToSchema)]
pub struct FlameNode {
    pub name: String,
    /// The weight of all stacks that contain this path.
    pub value: f64,
    /// The same weight in the base of a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<f64>,
    /// Missing if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion, required = false)]
    pub children: Vec<Self>,
}

/// A stack and its weight.
#[derive(Clone, Copy, Debug)]
pub struct WeighedStack<'s> {
    /// Innermost first.
    pub frames: &'s [StoredFrame],
    pub value: f64,
    pub base: Option<f64>,
}

/// Builds the tree of all stacks. Children are sorted by name so that two trees can be compared.
#[must_use]
pub fn flame<'s>(stacks: impl IntoIterator<Item = WeighedStack<'s>>) -> FlameNode {
    let mut root = FlameNode {
        name: "all".to_owned(),
        ..FlameNode::default()
    };
    for stack in stacks {
        root.add(stack);
        let mut node = &mut root;
        for frame in stack.frames.iter().rev().take(DEEPEST) {
            node = node.child(frame.label());
            node.add(stack);
        }
    }
    root.sort();
    root
}

impl FlameNode {
    fn add(&mut self, stack: WeighedStack<'_>) {
        self.value += stack.value;
        if let Some(base) = stack.base {
            *self.base.get_or_insert(0.0) += base;
        }
    }

    fn child(&mut self, name: String) -> &mut Self {
        let place = match self.children.iter().position(|child| child.name == name) {
            Some(place) => place,
            None => {
                self.children.push(Self {
                    name,
                    ..Self::default()
                });
                self.children.len() - 1
            }
        };
        &mut self.children[place]
    }

    fn sort(&mut self) {
        self.children
            .sort_by(|one, other| one.name.cmp(&other.name));
        for child in &mut self.children {
            child.sort();
        }
    }
}

/// Returns the folded format: one line `outermost;…;innermost weight` per stack.
#[must_use]
pub fn folded<'s>(stacks: impl IntoIterator<Item = WeighedStack<'s>>) -> String {
    let mut text = String::new();
    for stack in stacks {
        let labels: Vec<_> = stack
            .frames
            .iter()
            .rev()
            .map(|frame| frame.label().replace(ends_a_frame, " "))
            .collect();
        text.push_str(&format!("{} {}\n", labels.join(";"), stack.value.round()));
    }
    text
}

/// Viewers end a line at `\r` too, and those in JavaScript at the line separators of Unicode.
fn ends_a_frame(char: char) -> bool {
    char.is_control() || matches!(char, ';' | '\u{2028}' | '\u{2029}')
}

/// Returns a speedscope file: one sampled profile with weights in milliseconds.
#[must_use]
pub fn speedscope<'s>(
    name: &str,
    stacks: impl IntoIterator<Item = WeighedStack<'s>>,
) -> serde_json::Value {
    let mut known: HashMap<&StoredFrame, usize> = HashMap::new();
    let mut frames = Vec::new();
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    let mut total = 0.0;
    for stack in stacks {
        let places: Vec<usize> = stack
            .frames
            .iter()
            .rev()
            .map(|frame| {
                *known.entry(frame).or_insert_with(|| {
                    frames.push(shown(frame));
                    frames.len() - 1
                })
            })
            .collect();
        samples.push(places);
        weights.push(stack.value);
        total += stack.value;
    }
    serde_json::json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "unjank",
        "name": name,
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": [{
            "type": "sampled", "name": name, "unit": "milliseconds",
            "startValue": 0, "endValue": total, "samples": samples, "weights": weights
        }]
    })
}

fn shown(frame: &StoredFrame) -> serde_json::Value {
    let mut shown = serde_json::json!({"name": frame.label()});
    if !frame.file.is_empty() {
        shown["file"] = frame.file.clone().into();
        shown["line"] = frame.line.into();
    }
    shown
}
