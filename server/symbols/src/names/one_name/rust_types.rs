//! The type in front of a method of Rust, written in one way whatever the compiler wrote.

use super::{Syntax, closing, name_within, split_at_word};

/// Returns the start of a method's name: `shop::Cart`, `<[_]>` or `<shop::Cart as shop::Pay>`. `depth` is that of the types around.
pub(super) fn method_of(of: &str, implemented: Option<&str>, depth: usize) -> String {
    let of = type_of(of.trim(), depth);
    match implemented {
        Some(implemented) => {
            let implemented = name_within(implemented.trim(), Syntax::Rust, depth + 1);
            format!("<{of} as {implemented}>")
        }
        // Types of the language itself, such as `<str>`, have no path: without the brackets, they would look like modules.
        None if of.contains("::") && !of.starts_with("dyn ") => of,
        None => format!("<{of}>"),
    }
}

/// Writes a type without the types in it: a symbol has either those of an instance or those of its declaration.
pub(super) fn type_of(text: &str, depth: usize) -> String {
    for pointer in ["&mut ", "&", "*const ", "*mut "] {
        if text.starts_with(pointer) {
            return format!("{pointer}_");
        }
    }
    if let Some(inner) = in_brackets(text, '[', ']') {
        let is_array = split_at_word(inner, ";").is_some();
        return if is_array { "[_; _]" } else { "[_]" }.to_owned();
    }
    if let Some(inner) = in_brackets(text, '(', ')') {
        return tuple_of(inner);
    }
    // `unsafe extern "C" fn(u8)`, but not `Option<fn(u8)>`.
    let has_fn = || split_at_word(text, " fn(").is_some();
    if text.starts_with("fn(") || !text.starts_with("dyn ") && has_fn() {
        return "fn(_)".to_owned();
    }
    if let Some(bounds) = text.strip_prefix("dyn ") {
        let bounds = bounds
            .rsplit_once("> ")
            .filter(|_| bounds.starts_with("for<"));
        let bounds = bounds.map_or(text.get(4..).unwrap_or_default(), |(_, bounds)| bounds);
        let first = split_at_word(bounds, "+").map_or(bounds, |(first, _)| first);
        return format!("dyn {}", name_within(first.trim(), Syntax::Rust, depth + 1));
    }
    name_within(text, Syntax::Rust, depth + 1)
}

/// Returns what is in the brackets that the whole text is in.
fn in_brackets(text: &str, open: char, close: char) -> Option<&str> {
    let is_whole = text.starts_with(open) && closing(text, open, close) == Some(text.len());
    is_whole.then(|| text.get(1..text.len() - 1)).flatten()
}

fn tuple_of(mut inner: &str) -> String {
    let mut parts = Vec::new();
    while !inner.trim().is_empty() {
        parts.push("_");
        inner = split_at_word(inner, ",").map_or("", |(_, others)| others);
    }
    match parts.as_slice() {
        [_] => "(_,)".to_owned(),
        parts => format!("({})", parts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_without_the_types_in_them() {
        let cases = [
            ("shop::Cart<T>", "shop::Cart"),
            ("u32", "u32"),
            ("T", "T"),
            ("&str", "&_"),
            ("&mut F", "&mut _"),
            ("*const u8", "*const _"),
            ("[u8]", "[_]"),
            ("[u8; 3]", "[_; _]"),
            ("()", "()"),
            ("(u8,)", "(_,)"),
            ("(u8,u16)", "(_, _)"),
            ("(u8, (u16, u32), [u8; 3])", "(_, _, _)"),
            ("fn(u8) -> u8", "fn(_)"),
            ("unsafe extern \"C\" fn(u8)", "fn(_)"),
            ("for<'a> fn(&'a u8) -> u8", "fn(_)"),
            ("shop::Bus<u32, fn(u8) -> u8>", "shop::Bus"),
            ("shop::One<unsafe extern \"C\" fn(u8)>", "shop::One"),
            ("shop::One<for<'a> fn(&'a u8) -> &'a u8>", "shop::One"),
            ("shop::Wrap<(u8, fn(u8) -> u16), 2>", "shop::Wrap"),
            ("shop::Flag<true, '>', -3>", "shop::Flag"),
            ("dyn shop::Shape + core::marker::Send", "dyn shop::Shape"),
            ("dyn shop::Shape+core::marker::Send", "dyn shop::Shape"),
            ("dyn core::ops::Fn<(u8,), Output = u8>", "dyn core::ops::Fn"),
        ];
        for (written, expected) in cases {
            assert_eq!(type_of(written, 0), expected, "{written}");
        }
    }
}
