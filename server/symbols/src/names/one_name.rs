//! One name for all instances of a function.
//!
//! The compiler makes an instance of a generic function for each type, clones functions to optimize them, and numbers closures. A stack is
//! known by its functions, so these differences would split what belongs together, within a build and between builds.

mod rust_types;

/// Signs that belong to the name of an operator of C++, longest first.
const OPERATORS: [&str; 40] = [
    "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "++", "--", "&&", "||",
    "==", "!=", "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "<", ">", "+", "-", "*", "/", "%",
    "^", "&", "|", "~", "!", "=", ",", "\"\"",
];

/// Functions of Rust that have a number instead of a name: what is in front of the number and behind it, and the name.
const NUMBERED: [(&str, &str, &str); 3] = [
    ("{closure#", "}", "{{closure}}"),
    // In a PDB.
    ("closure$", "", "{{closure}}"),
    // The code of `const { … }`, and of other constants without a name.
    ("{K#", "}", "{{constant}}"),
];

/// The function that drops a value of Rust.
pub(super) const DROP: &str = "core::ptr::drop_in_place";

/// What can follow the parameters of a method of C++.
const QUALIFIERS: [&str; 4] = [" const", " volatile", " &&", " &"];

/// How deep the types in a name of Rust may nest: each level takes room on the stack, and time. Deeper types are kept as they are.
const MAX_DEPTH: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Rust,
    Cpp,
}

/// Removes type arguments and numbers of closures; in C++, parameters as well.
///
/// `<shop::Cart<u32>>::add::<u8>` → `shop::Cart::add`
pub(super) fn one_name(name: &str, syntax: Syntax) -> String {
    name_within(name, syntax, 0)
}

/// Returns the [`one_name`] of a name that is inside the types of others, `depth` of them.
pub(super) fn name_within(name: &str, syntax: Syntax, depth: usize) -> String {
    if depth > MAX_DEPTH {
        return name.to_owned();
    }
    // Older symbols of Rust write the arrow of `fn(u8) -> u8` so.
    let arrows = match syntax {
        Syntax::Rust => name.replace(".>", "->"),
        Syntax::Cpp => name.to_owned(),
    };
    let name = arrows.as_str();
    let mut rewriter = Rewriter {
        syntax,
        depth,
        out: String::with_capacity(name.len()),
    };
    rewriter.rewrite(name);
    let mut name = rewriter.out;
    while syntax == Syntax::Cpp
        && let Some(length) =
            (QUALIFIERS.iter()).find_map(|end| name.strip_suffix(*end).map(str::len))
    {
        name.truncate(length);
    }
    name
}

struct Rewriter {
    syntax: Syntax,
    /// How many types the name is inside of.
    depth: usize,
    out: String,
}

impl Rewriter {
    fn rewrite(&mut self, name: &str) {
        let mut rest = name;
        while let Some(letter) = rest.chars().next() {
            let taken = match letter {
                '<' => self.angle(rest),
                '(' if self.syntax == Syntax::Cpp => self.parameters(rest),
                '[' if self.syntax == Syntax::Cpp && rest.starts_with("[abi:") => {
                    closing(rest, '[', ']')
                }
                '{' if self.syntax == Syntax::Rust => self.closure(rest),
                'c' if self.syntax == Syntax::Rust && self.is_at_start() => self.closure(rest),
                'o' if self.syntax == Syntax::Cpp && self.is_at_start() => self.operator(rest),
                _ => None,
            };
            let taken = taken.unwrap_or_else(|| {
                self.out.push(letter);
                letter.len_utf8()
            });
            rest = rest.get(taken..).unwrap_or_default();
        }
    }

    /// Whether a path begins here, or a part of one.
    fn is_at_start(&self) -> bool {
        !self
            .out
            .ends_with(|letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$'))
    }

    /// Reads type arguments, or the `<Type as Trait>` of a path in Rust. Returns its length.
    fn angle(&mut self, text: &str) -> Option<usize> {
        let length = closing(text, '<', '>')?;
        let inner = text.get(1..length - 1)?;
        if self.syntax == Syntax::Cpp {
            // Lambdas of MSVC are called `<lambda_1>`.
            if self.is_at_start() && !self.out.ends_with(['\'', '}', '>', ')', ']']) {
                return None;
            }
            return Some(length);
        }
        // What is dropped says whose work it is.
        if self.out.trim_end_matches("::") == DROP {
            self.out = format!("{DROP}<{}>", rust_types::type_of(inner, self.depth));
            return Some(length);
        }
        if self.out.ends_with("::") {
            match inner.strip_prefix("impl ") {
                // The module of the `impl` is not part of the name, as in newer symbols.
                Some(inner) => {
                    let (implemented, of) = split_at_word(inner, " for ")
                        .map_or((None, inner), |(implemented, of)| (Some(implemented), of));
                    self.out = rust_types::method_of(of, implemented, self.depth);
                }
                None => self.out.truncate(self.out.len() - 2),
            }
            return Some(length);
        }
        if !self.is_at_start() || self.out.ends_with('}') {
            return Some(length);
        }
        let method = match split_at_word(inner, " as ") {
            Some((of, implemented)) => rust_types::method_of(of, Some(implemented), self.depth),
            None => rust_types::method_of(inner, None, self.depth),
        };
        self.out.push_str(&method);
        Some(length)
    }

    /// Reads the parameters of a function of C++. Returns their length.
    fn parameters(&self, text: &str) -> Option<usize> {
        // `(anonymous namespace)` is a name.
        if self.is_at_start() && !self.out.ends_with(['>', ']', ')']) {
            return None;
        }
        let length = closing(text, '(', ')')?;
        let mut rest = text.get(length..)?;
        while let Some(after) = QUALIFIERS
            .iter()
            .find_map(|start| rest.strip_prefix(*start))
        {
            rest = after;
        }
        // The function is one inside of this one.
        let is_around = rest.starts_with("::");
        Some(if is_around {
            text.len() - rest.len()
        } else {
            length
        })
    }

    /// Reads `{closure#2}`, `closure$2` as in a PDB, `{K#0}`, or `{shim:vtable#0}`. Returns its length.
    fn closure(&mut self, text: &str) -> Option<usize> {
        if let Some(shim) = text.strip_prefix("{shim:") {
            let (shim, _) = shim.split_once('}')?;
            let (kind, _number) = shim.split_once('#')?;
            self.out.push_str(&format!("{{{{{kind}.shim}}}}"));
            return Some("{shim:}".len() + shim.len());
        }
        let form = NUMBERED.iter().find(|(start, ..)| text.starts_with(start));
        let (start, end, name) = form?;
        let rest = text.strip_prefix(start)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest.get(digits..)?.strip_prefix(end)?;
        self.out.push_str(name);
        Some(start.len() + digits + end.len())
    }

    /// Reads `operator<<`, with its type arguments and parameters. Returns their length.
    fn operator(&mut self, text: &str) -> Option<usize> {
        let signs = text.strip_prefix("operator")?;
        let sign = OPERATORS.iter().find(|sign| signs.starts_with(**sign))?;
        self.out.push_str("operator");
        self.out.push_str(sign);
        let mut rest = signs.get(sign.len()..)?;
        if *sign == "\"\"" {
            // Some tools write `operator"" _eur`.
            rest = rest.trim_start_matches(' ');
        }
        for (open, close) in [('<', '>'), ('(', ')')] {
            let brackets = rest.trim_start_matches(' ');
            let length = brackets
                .starts_with(open)
                .then(|| closing(brackets, open, close));
            rest = match length.flatten() {
                Some(length) => brackets.get(length..)?,
                None => rest,
            };
        }
        Some(text.len() - rest.len())
    }
}

/// Returns the length of the text from an opening bracket to the one that closes it.
pub(super) fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0_usize;
    let mut last = ' ';
    let mut quoted_until = 0;
    for (at, letter) in text.char_indices() {
        if at < quoted_until {
            continue;
        }
        // `->` is an arrow.
        if letter == close && last != '-' {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at + letter.len_utf8());
            }
        } else if letter == open {
            depth += 1;
        } else if let Some(length) = quoted(text, at) {
            quoted_until = at + length;
        }
        last = letter;
    }
    None
}

/// Returns the length of the quoted character at a place, such as `'<'` or `'\u{301}'`. `None` for a lifetime such as `'a`.
fn quoted(text: &str, at: usize) -> Option<usize> {
    /// The letters between the backslash and the mark.
    const LONGEST: usize = "u{10ffff}".len();
    let inner = text.get(at..)?.strip_prefix('\'')?;
    let end = match inner.strip_prefix('\\') {
        Some(escaped) => {
            let mut letters = escaped.char_indices().take(LONGEST + 1).skip(1);
            1 + letters.find(|(_, letter)| *letter == '\'')?.0
        }
        None => inner.chars().next()?.len_utf8(),
    };
    (inner.get(end..)?.starts_with('\'')).then_some(end + "''".len())
}

/// Splits at a word such as ` as `, outside of brackets.
pub(super) fn split_at_word<'t>(text: &'t str, word: &str) -> Option<(&'t str, &'t str)> {
    let mut depth = 0_usize;
    let mut last = ' ';
    let mut quoted_until = 0;
    for (at, letter) in text.char_indices() {
        if at < quoted_until {
            continue;
        }
        if let Some(length) = quoted(text, at) {
            quoted_until = at + length;
        }
        if depth == 0
            && let Some(after) = text.get(at..).and_then(|rest| rest.strip_prefix(word))
        {
            return Some((text.get(..at)?, after));
        }
        match letter {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if last == '-' => {}
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        last = letter;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Syntax, one_name};

    #[test]
    fn instances_of_a_function_of_rust_have_one_name() {
        let cases = [
            ("<shop::Cart<u32>>::add::<u8>", "shop::Cart::add"),
            ("shop::Cart<T>::add", "shop::Cart::add"),
            ("shop::call::<shop::main::{closure#1}>", "shop::call"),
            ("shop::arr::<3>", "shop::arr"),
            ("shop::ch::<'<'>", "shop::ch"),
            ("shop::ch::<'>'>", "shop::ch"),
            ("shop::ch::<'\\''>", "shop::ch"),
            ("shop::ch::<'\\u{301}', '>'>", "shop::ch"),
            ("<shop::Flag<'a', '>'>>::set", "shop::Flag::set"),
            ("<shop::One<'_>>::get::<'a'>", "shop::One::get"),
            ("<shop::Bus<u32, fn(u8) -> u8>>::emit", "shop::Bus::emit"),
            (
                "<alloc::BTreeMap<u8, fn(u8) -> u8> as shop::Pay>::pay",
                "<alloc::BTreeMap as shop::Pay>::pay",
            ),
            (
                "<shop::Cart<_> as shop::Pay<u32>>::pay",
                "<shop::Cart as shop::Pay>::pay",
            ),
            (
                "<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop",
                "<alloc::vec::Vec as core::ops::drop::Drop>::drop",
            ),
            (
                "core::ptr::drop_in_place<shop::Cart<u32>>",
                "core::ptr::drop_in_place<shop::Cart>",
            ),
            (
                "core::ptr::drop_in_place::<[shop::Cart]>",
                "core::ptr::drop_in_place<[_]>",
            ),
            ("alloc::slice::<impl [T]>::sort_by", "<[_]>::sort_by"),
            ("<[u32]>::sort_by::<fn(u32) -> u32>", "<[_]>::sort_by"),
            (
                "<&mut F as core::ops::FnOnce<(u32,)>>::call_once",
                "<&mut _ as core::ops::FnOnce>::call_once",
            ),
            (
                "shop::pay::{closure#0}::{closure#2}",
                "shop::pay::{{closure}}::{{closure}}",
            ),
            ("shop::pay::{{closure}}", "shop::pay::{{closure}}"),
            (
                "shop::pay::{K#0}::inside::<u8>",
                "shop::pay::{{constant}}::inside",
            ),
            (
                "shop::TL::{K#2}::{closure#0}",
                "shop::TL::{{constant}}::{{closure}}",
            ),
            (
                "shop::pay::{{constant}}::inside",
                "shop::pay::{{constant}}::inside",
            ),
            (
                "<std::Once>::call_once::<std::cleanup::{closure#0}>::{closure#0}",
                "std::Once::call_once::{{closure}}",
            ),
            (
                "<<std::Once>::call<std::f::{closure#0}>::{closure#0} as core::ops::FnOnce<()>>::call_once::{shim:vtable#0}",
                "<std::Once::call::{{closure}} as core::ops::FnOnce>::call_once::{{vtable.shim}}",
            ),
            ("shop::main::closure$1", "shop::main::{{closure}}"),
            ("shop::impl$0::pay<u32,str$>", "shop::impl$0::pay"),
            ("closure::main", "closure::main"),
            ("main", "main"),
            ("broken<", "broken<"),
            ("a>b::<", "a>b::<"),
        ];
        for (name, expected) in cases {
            assert_eq!(one_name(name, Syntax::Rust), expected);
        }
    }

    #[test]
    fn types_that_nest_very_deeply_are_kept() {
        let nested = |depth: usize| format!("<{}a{}>::b", "<".repeat(depth), ">::c".repeat(depth));
        assert!(!one_name(&nested(10), Syntax::Rust).contains("<<"));
        let kept = one_name(&nested(10_000), Syntax::Rust);
        assert!(kept.contains("<<<<") && kept.ends_with("::b"));
    }

    #[test]
    fn instances_of_a_function_of_cpp_have_one_name() {
        let cases = [
            (
                "std::vector<int, std::allocator<int> >::push_back",
                "std::vector::push_back",
            ),
            ("shop::Cart::pay<int>", "shop::Cart::pay"),
            (
                "shop::Cart::pay(int)::{lambda(int)#1}::operator() const",
                "shop::Cart::pay::{lambda#1}::operator()",
            ),
            (
                "shop::Cart::total() const::{lambda()#1}::operator()",
                "shop::Cart::total::{lambda#1}::operator()",
            ),
            ("shop::operator<<", "shop::operator<<"),
            (
                "shop::operator<< <int>(shop::Cart<int>&)",
                "shop::operator<<",
            ),
            ("shop::Cart::operator->", "shop::Cart::operator->"),
            ("bool std::operator<=><int>", "bool std::operator<=>"),
            (
                "(anonymous namespace)::help(int)",
                "(anonymous namespace)::help",
            ),
            ("foo::bar[abi:cxx11]", "foo::bar"),
            (
                "`shop::pay'::`1'::<lambda_1>::operator()",
                "`shop::pay'::`1'::<lambda_1>::operator()",
            ),
            (
                "google::Handler::Dump(int, char const*) const",
                "google::Handler::Dump",
            ),
            ("shop::Cart::deep &", "shop::Cart::deep"),
            (
                "shop::Cart::deep(int) const volatile &&",
                "shop::Cart::deep",
            ),
            ("shop::Cart::operator&", "shop::Cart::operator&"),
            ("shop::operator\"\" _eur", "shop::operator\"\"_eur"),
            ("operators::find(x)", "operators::find"),
        ];
        for (name, expected) in cases {
            assert_eq!(one_name(name, Syntax::Cpp), expected);
        }
    }
}
