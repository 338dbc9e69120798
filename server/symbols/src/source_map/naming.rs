//! Whether a name that stands near a function is the name of that function.
//!
//! The reader of scopes goes outwards from a function until it finds a name. It passes calls, lists and fields of classes on the way, so the
//! name may be that of a variable to which a call assigns its result, or that of a class.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use js_source_scopes::{NameComponent, ScopeName, Scopes};

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
    /// The end of the name, and the classes with this name.
    by_name: HashMap<u32, Vec<Range<u32>>>,
}

impl<'t> Classes<'t> {
    pub(super) fn of(text: &'t str, scopes: &Scopes) -> Self {
        let mut by_name: HashMap<u32, Vec<Range<u32>>> = HashMap::new();
        for (range, scope) in scopes {
            let is_class = |scope: &&ScopeName| {
                scope
                    .components()
                    .next()
                    .is_some_and(|one| one.text() == "new ")
            };
            let name = scope.as_ref().filter(is_class).and_then(last_range);
            if let Some(name) = name {
                by_name.entry(name.end).or_default().push(range.clone());
            }
        }
        Self { text, by_name }
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
        let is_around = |class: &Range<u32>| {
            class != function && class.start <= function.start && function.end <= class.end
        };
        if !classes.is_some_and(|classes| classes.iter().any(is_around)) {
            return Naming::Nothing;
        }
        let before = target.trim_end_matches(is_letter);
        if before.len() == target.len() || before.ends_with('.') {
            return Naming::Nothing;
        }
        Naming::Field(before.len() - usize::from(before.ends_with('#'))..target.len())
    }
}

/// Whether a part of a name stands for one that only the running program knows: `["pay" + "Now"]() {}`.
fn is_computed(part: &NameComponent) -> bool {
    part.range().is_none() && part.text().contains("<computed>")
}

/// The name of a function as it is written in the text.
pub(super) fn written_name(text: &str, scope: &ScopeName, naming: &Naming) -> Option<String> {
    let name = || joined(text, scope, |_| None);
    match naming {
        Naming::Whole => Some(name()),
        Naming::Field(field) => Some(format!("{}.{}", name(), text.get(field.clone())?)),
        Naming::Nothing => None,
    }
}

/// Puts the parts of a name together, with the original name of each that has one.
pub(super) fn joined<'t>(
    text: &str,
    scope: &'t ScopeName,
    original: impl Fn(&NameComponent) -> Option<&'t str>,
) -> String {
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
            && is_class(text, component)
            && [Some(part), part.strip_prefix('_')].contains(&Some(*variable))
        {
            parts.pop();
            continue;
        }
        parts.push(part);
    }
    parts.concat()
}

/// Whether the part before is a name, and not what is in front of one, such as `new `.
fn is_whole(part: &str) -> bool {
    !part.ends_with(['.', ' ', '#', '['])
}

/// Whether a part of a name is the one behind the word `class`.
fn is_class(text: &str, part: &NameComponent) -> bool {
    let before = part
        .range()
        .and_then(|range| text.get(..range.start as usize));
    before.is_some_and(|before| without_comments(before).ends_with("class"))
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
    let (mut rest, mut brackets) = (without_comments(before), 0);
    while let Some(outer) = rest.strip_suffix('(') {
        rest = without_comments(outer);
        brackets += 1;
    }
    let rest = rest.strip_suffix('=').or_else(|| rest.strip_suffix(':'))?;
    let rest = ["||", "&&", "??"]
        .iter()
        .find_map(|operator| rest.strip_suffix(*operator))
        .unwrap_or(rest);
    Some(Target {
        text: without_comments(rest),
        brackets,
    })
}

/// Returns the text without blanks and comments at its end.
fn without_comments(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some(comment) = text.strip_suffix("*/") {
        let Some(start) = comment.rfind("/*") else {
            return text;
        };
        text = text.get(..start).unwrap_or_default().trim_end();
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

fn is_letter(letter: char) -> bool {
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
