//! Whether a name that stands near a function is the name of that function.
//!
//! The reader of scopes goes outwards from a function until it finds a name. It passes calls, lists and fields of classes on the way, so the
//! name may be that of a variable to which a call assigns its result, or that of a class.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use js_source_scopes::{NameComponent, ScopeName, Scopes};

/// A function with a longer name counts as one without a name. Many functions can share a part of their names.
pub(super) const MAX_NAME_BYTES: usize = 4 << 10;
/// Comments between a function and its name are not longer than this.
const MAX_DISTANCE_BYTES: usize = 16 << 10;
const STATIC: &str = "static";
/// Stands for `static` in front of a block, and makes a method of it.
const METHOD: &str = "_uj_()";

/// What names a function.
pub(super) enum Naming {
    /// The whole name that was found.
    Whole,
    /// The name that was found is that of the class. The function is its field with the name at this place of the text.
    Field(Range<usize>),
    /// Nothing.
    Nothing,
}

/// The classes of a text.
pub(super) struct Classes<'t> {
    text: &'t str,
    /// The classes by the end of their name: where each starts, in order, and the largest end of those up to it.
    by_name: HashMap<u32, Vec<(u32, u32)>>,
    /// The starts of the names behind the word `class`.
    own_names: HashSet<u32>,
}

impl<'t> Classes<'t> {
    pub(super) fn of(text: &'t str, scopes: &Scopes) -> Self {
        let mut by_name: HashMap<u32, Vec<(u32, u32)>> = HashMap::new();
        let mut own_names = HashSet::new();
        for (range, scope) in scopes {
            let is_class = |scope: &&ScopeName| {
                scope
                    .components()
                    .next()
                    .is_some_and(|one| one.text() == "new ")
            };
            let name = scope.as_ref().filter(is_class).and_then(last_range);
            let Some(name) = name else {
                continue;
            };
            let classes = by_name.entry(name.end).or_default();
            classes.push((range.start, range.end));
            if name.start >= range.start {
                own_names.insert(name.start);
            }
        }
        for classes in by_name.values_mut() {
            classes.sort_unstable();
            let mut largest = 0;
            for (_, end) in classes {
                largest = largest.max(*end);
                *end = largest;
            }
        }
        Self {
            text,
            by_name,
            own_names,
        }
    }

    pub(super) fn naming(&self, function: &Range<u32>, scope: &ScopeName) -> Naming {
        if scope.components().any(is_computed) {
            return Naming::Nothing;
        }
        let (start, end) = (function.start as usize, function.end as usize);
        let (Some(before), Some(after)) = (self.text.get(..start), self.text.get(end..)) else {
            return Naming::Nothing;
        };
        let code = self.text.get(start..end).unwrap_or_default();
        if is_static_block(code) {
            return Naming::Nothing;
        }
        let last = scope.components().last();
        let Some(last) = last.map(|last| (last.text(), last.range())) else {
            return Naming::Nothing;
        };
        if let (_, Some(name)) = &last
            && name.start >= function.start
        {
            return Naming::Whole;
        }
        // The name of a method that is no identifier.
        if last.1.is_none() && last.0.starts_with('<') {
            return Naming::Whole;
        }
        let Some(target) = target(before).filter(|target| !target.is_called(code, after)) else {
            return Naming::Nothing;
        };
        let is_target = match last {
            (_, Some(name)) => target.text.len() == name.end as usize,
            (text, None) => text.ends_with(']') && target.text.ends_with(']'),
        };
        match is_target {
            true => Naming::Whole,
            false => self.field(function, scope, target.text),
        }
    }

    /// Whether the function is a field of the class whose name was found.
    fn field(&self, function: &Range<u32>, scope: &ScopeName, target: &str) -> Naming {
        let classes = last_range(scope).and_then(|name| self.by_name.get(&name.end));
        let is_within = classes.is_some_and(|classes| {
            let before = classes.partition_point(|(start, _)| *start < function.start);
            let last = before.checked_sub(1).and_then(|last| classes.get(last));
            last.is_some_and(|(_, end)| function.end <= *end)
        });
        if !is_within {
            return Naming::Nothing;
        }
        let before = target.trim_end_matches(is_letter);
        if before.len() == target.len() || before.ends_with('.') {
            return Naming::Nothing;
        }
        Naming::Field(before.len() - usize::from(before.ends_with('#'))..target.len())
    }

    /// The name of a function as it is written in the text.
    pub(super) fn written_name(&self, scope: &ScopeName, naming: &Naming) -> Option<String> {
        let name = || self.joined(scope, |_| None);
        match naming {
            Naming::Whole => name(),
            Naming::Field(field) => Some(format!("{}.{}", name()?, self.text.get(field.clone())?)),
            Naming::Nothing => None,
        }
    }

    /// Puts the parts of a name together, with the original name of each that has one. `None` if the name is too long.
    pub(super) fn joined<'n>(
        &self,
        scope: &'n ScopeName,
        original: impl Fn(&NameComponent) -> Option<&'n str>,
    ) -> Option<String> {
        let mut parts: Vec<&str> = Vec::new();
        for component in scope.components() {
            let mut part = original(component).unwrap_or(component.text());
            // `#` is a part of its own, and in some maps also a part of the name.
            if parts.last() == Some(&"#") {
                part = part.strip_prefix('#').unwrap_or(part);
            }
            // The reader leaves out the dot between `shop.cart` and `pay` in `shop.cart = { pay() {} }`.
            let is_name = component.range().is_some() || part.starts_with(['<', '#']);
            if is_name && parts.last().is_some_and(|last| is_whole(last)) {
                parts.push(".");
            }
            // `Cart = class Cart`, or `Cart = class _Cart` as esbuild writes it, is one class.
            if let [.., variable, "."] = parts.as_slice()
                && self.is_own_name(component)
                && [Some(part), part.strip_prefix('_')].contains(&Some(*variable))
            {
                parts.pop();
                continue;
            }
            parts.push(part);
        }
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        (bytes <= MAX_NAME_BYTES).then(|| parts.concat())
    }

    /// Whether a part of a name is the one behind the word `class`.
    fn is_own_name(&self, part: &NameComponent) -> bool {
        let range = part.range();
        range.is_some_and(|range| self.own_names.contains(&range.start))
    }
}

/// Whether a part of a name stands for one that only the running program knows: `["pay" + "Now"]() {}`.
fn is_computed(part: &NameComponent) -> bool {
    part.range().is_none() && part.text().contains("<computed>")
}

/// Whether the part before is a name, and not what is in front of one, such as `new `.
fn is_whole(part: &str) -> bool {
    !part.ends_with(['.', ' ', '#', '['])
}

/// The place of the last part of a name that is in the text.
fn last_range(scope: &ScopeName) -> Option<Range<u32>> {
    scope.components().filter_map(NameComponent::range).last()
}

/// What a function is assigned to.
struct Target<'t> {
    /// The text up to the end of the target.
    text: &'t str,
    /// How many brackets are around the function.
    brackets: usize,
}

/// Reads backwards from a function: `const pay = (`. `None` if the function is a part of another expression.
fn target(before: &str) -> Option<Target<'_>> {
    let from = before.len().saturating_sub(MAX_DISTANCE_BYTES);
    let (mut rest, mut brackets) = (without_comments(before, from), 0);
    while let Some(outer) = rest.strip_suffix('(') {
        rest = without_comments(outer, from);
        brackets += 1;
    }
    let rest = rest.strip_suffix('=').or_else(|| rest.strip_suffix(':'))?;
    let rest = ["||", "&&", "??"]
        .iter()
        .find_map(|operator| rest.strip_suffix(*operator))
        .unwrap_or(rest);
    Some(Target {
        text: without_comments(rest, from),
        brackets,
    })
}

/// Returns the text without blanks and comments at its end. Comments that begin before the byte `from` stay: what looks like the end of a
/// comment may be that of a regular expression.
fn without_comments(text: &str, from: usize) -> &str {
    let mut text = text.trim_end();
    while let Some(comment) = text.strip_suffix("*/") {
        let near = comment.as_bytes().get(from..).unwrap_or_default();
        let start = near.windows(2).rposition(|start| start == b"/*");
        let Some(start) = start else {
            return text;
        };
        text = text.get(..from + start).unwrap_or_default().trim_end();
    }
    text
}

impl Target<'_> {
    /// Whether the result of a call, or something else that is not the function itself, is assigned: `= (function () {})()`.
    fn is_called(&self, code: &str, after: &str) -> bool {
        // Nobody can call an arrow function without brackets.
        if self.brackets == 0
            && !["function", "async"]
                .iter()
                .any(|word| code.starts_with(*word))
        {
            return false;
        }
        let mut after = after.trim_start();
        for _ in 0..self.brackets {
            let Some(rest) = after.strip_prefix(')') else {
                return true;
            };
            after = rest.trim_start();
        }
        after.starts_with(['(', '.', '[', '`', '?', '|', '&'])
    }
}

pub(super) fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '$')
}

fn is_static_block(code: &str) -> bool {
    let block = code.strip_prefix(STATIC);
    block.is_some_and(|block| block.trim_start().starts_with('{'))
}

/// Makes methods of the static blocks of classes. Nothing moves. The reader of scopes knows no blocks, so it would take their code for that
/// of the constructor.
pub(super) fn with_methods_for_blocks(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices(STATIC) {
        let (before, code) = text.split_at(at);
        let is_part =
            before.ends_with(|letter: char| is_letter(letter) || matches!(letter, '.' | '#'));
        if is_part || !is_static_block(code) {
            continue;
        }
        out.push_str(text.get(copied..at).unwrap_or_default());
        out.push_str(METHOD);
        copied = at + STATIC.len();
    }
    match copied {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(out + text.get(copied..).unwrap_or_default()),
    }
}
