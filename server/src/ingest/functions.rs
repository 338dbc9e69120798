//! Functions of obfuscated apps in spans, which automatic tracing of methods reports.
//!
//! Such a span is stored with the key of its function as `code_function`, and as name if the device named the span after the function. The
//! function itself is stored like a stack of one frame, so that symbols that arrive later name it, too.

use std::collections::HashSet;

use unjank_protocol::{Code, Frame, Span, Text};
use unjank_stacks::function_key;
use unjank_symbols::{SOURCE_FILE_PREFIX, map_id_of};

use super::text_filter::TextFilter;
use crate::recent::Dimension;

/// Replaces the name and the function of a span by the key of an obfuscated function.
pub(super) fn set_key<'a>(span: &mut Span<'a>, filter: &mut TextFilter<'_>) {
    // Few spans are of obfuscated functions.
    let Some(id) = map_id_of(&span.code.file) else {
        return;
    };
    let Some(key) = function_key(&frame(&span.code)) else {
        return;
    };
    // The id in one form, so that there is one stack for each key.
    span.code.file = Text::from(format!("{SOURCE_FILE_PREFIX}{}", id.as_str()));
    if !filter.admits(Dimension::Function, &key) {
        // Without the mapping's id, the function stays as it was reported.
        span.code.file = Text::default();
        return;
    }
    if is_named_after(span.name.as_str(), &span.code) {
        span.name = Text::from(key.clone());
    }
    span.code.function = Text::from(key);
}

/// The obfuscated functions of spans, each once, as stacks. Call it after [`set_key`].
pub(super) fn stacks<'a>(spans: &[Span<'a>]) -> Vec<[Frame<'a>; 1]> {
    let mut known = HashSet::new();
    let codes = spans.iter().map(|span| &span.code);
    let new = codes.filter(|code| code.function.contains('@') && known.insert(&*code.function));
    new.filter_map(stack).collect()
}

fn stack<'a>(code: &Code<'a>) -> Option<[Frame<'a>; 1]> {
    let (function, _) = code.function.rsplit_once('@')?;
    let function = function
        .strip_prefix(code.class.as_str())?
        .strip_prefix('.')?;
    let function = Frame {
        function: Text::from(function.to_owned()),
        ..frame(code)
    };
    let is_key = function_key(&function).is_some_and(|key| key == code.function.as_str());
    is_key.then_some([function])
}

fn frame<'a>(code: &Code<'a>) -> Frame<'a> {
    Frame {
        class: code.class.clone(),
        function: code.function.clone(),
        file: code.file.clone(),
        ..Frame::default()
    }
}

/// Whether a span has the name of its function: alone, or after its class with or without the package.
fn is_named_after(name: &str, code: &Code<'_>) -> bool {
    let Some(class) = name.strip_suffix(code.function.as_str()) else {
        return false;
    };
    let Some(class) = class.strip_suffix(['.', '#']) else {
        return class.is_empty();
    };
    let package = code.class.strip_suffix(class);
    package.is_some_and(|package| package.is_empty() || package.ends_with(['.', '$']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_can_have_the_name_of_its_function() {
        let code = Code {
            class: "a.b$c".into(),
            function: "d".into(),
            ..Code::default()
        };
        for (name, expected) in [
            ("d", true),
            ("a.b$c.d", true),
            ("a.b$c#d", true),
            ("b$c.d", true),
            ("c.d", true),
            ("$c.d", false),
            (".d", false),
            ("load", false),
            ("xd", false),
            ("x.d", false),
        ] {
            assert_eq!(is_named_after(name, &code), expected, "{name}");
        }
    }
}
