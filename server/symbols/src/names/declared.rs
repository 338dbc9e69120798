//! Names of functions whose symbols are declarations in plain text: `void shop::pay(int)` is `shop::pay`. Breakpad's tools write such symbols.

use super::one_name::{DROP, Syntax, closing, one_name, split_at_word};

pub(super) fn declared_name(declared: &str) -> String {
    if is_rust(declared) {
        return one_name(declared, Syntax::Rust);
    }
    if !declared.contains('(') {
        return one_name(declared, Syntax::Cpp);
    }
    without_type(&one_name(declarator(declared), Syntax::Cpp)).to_owned()
}

/// Whether a declaration begins with the type of a method or has type arguments, both as in Rust, or has another part that only Rust has.
fn is_rust(declared: &str) -> bool {
    // What has no name in C++ is in angle brackets, too.
    let is_cpp = ["<lambda", "<unnamed", "<anonymous"];
    let is_cpp = is_cpp.iter().any(|name| declared.contains(*name));
    let is_method = declared.starts_with('<') && declared.contains(">::");
    let parts = ["::<", "<impl ", "{closure", "{shim:", "{K#"];
    let has_part = parts.iter().any(|part| declared.contains(*part));
    !is_cpp && (is_method || has_part || declared.starts_with(DROP))
}

/// Returns the part in brackets of `int (*shop::pay<int>(int))(int)`, a function that returns a pointer to a function. Returns any other
/// declaration unchanged.
fn declarator(mut declared: &str) -> &str {
    while let Some(inner) = returned_by(declared) {
        declared = inner;
    }
    declared
}

fn returned_by(declared: &str) -> Option<&str> {
    let start = if declared.starts_with('(') {
        0
    } else {
        split_at_word(declared, " (")?.0.len() + 1
    };
    let brackets = declared.get(start..)?;
    let length = closing(brackets, '(', ')')?;
    // The parameters of the pointer, or the length of the array.
    let after = brackets.get(length..)?.trim_start();
    if !after.starts_with(['(', '[']) {
        return None;
    }
    let inner = brackets.get(1..length - 1)?;
    let pointed = match inner.split_once("::*") {
        Some((class, pointed)) if !class.contains([' ', '(']) => pointed,
        _ => inner.strip_prefix(['*', '&'])?,
    };
    let pointed = pointed.trim_start_matches(['*', '&', ' ']);
    pointed.contains('(').then_some(pointed)
}

/// Removes the type in front of a name.
fn without_type(function: &str) -> &str {
    // `virtual thunk to shop::Cart::pay`
    let joins = |word: &str| matches!(word, "to" | "for" | "in" | "of");
    if function.split(' ').any(joins) {
        return function;
    }
    let mut start = 0;
    let mut depth = 0_usize;
    let mut last = ' ';
    // `operator new` and `operator unsigned int` have blanks of their own.
    let before_operator = operator(function).and_then(|at| function.get(..at));
    for (at, letter) in before_operator.unwrap_or(function).char_indices() {
        match letter {
            ' ' if depth == 0 => start = at + 1,
            '<' | '(' | '[' | '{' | '`' => depth += 1,
            '>' if last == '-' => {}
            '>' | ')' | ']' | '}' | '\'' => depth = depth.saturating_sub(1),
            _ => {}
        }
        last = letter;
    }
    let is_name = |name: &&str| {
        name.starts_with(|letter: char| letter.is_alphabetic() || "_~$`<{".contains(letter))
            || name.starts_with("(anonymous")
    };
    let name = function.get(start..).filter(is_name);
    name.unwrap_or(function)
}

/// Returns where the word `operator` begins.
fn operator(function: &str) -> Option<usize> {
    const WORD: &str = "operator";
    let of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_word = |at: &usize| {
        let before = function.get(..*at).unwrap_or_default();
        let after = function.get(at + WORD.len()..).unwrap_or_default();
        !before.ends_with(of_name) && !after.starts_with(of_name)
    };
    let mut places = function.match_indices(WORD).map(|(at, _)| at);
    places.find(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_of_cpp_have_the_name_of_the_function() {
        let cases = [
            ("shop::Cart::deep(int (*)(int)) const &", "shop::Cart::deep"),
            ("shop::Cart::deep(int) volatile &&", "shop::Cart::deep"),
            (
                "shop::Cart::deep(int) const &::{lambda(int)#1}::operator()(int) const",
                "shop::Cart::deep::{lambda#1}::operator()",
            ),
            ("int (*shop::returns<int>(int))(int)", "shop::returns"),
            ("int (*(*shop::twice(int))(char))(int)", "shop::twice"),
            ("int (&shop::Cart::sums(int) const) [3]", "shop::Cart::sums"),
            (
                "int (shop::Cart::*shop::member<int>(int))(int)",
                "shop::member",
            ),
            (
                "shop::operator\"\" _eur(long double)",
                "shop::operator\"\"_eur",
            ),
            (
                "unsigned long long shop::wide<unsigned char>(unsigned char)",
                "shop::wide",
            ),
            ("decltype (auto) shop::deduced<int>(int)", "shop::deduced"),
            (
                "std::enable_if<(sizeof (int))>(1), int>::type shop::chosen<int>(int)",
                "shop::chosen",
            ),
            ("static void shop::Cart::pay(int)", "shop::Cart::pay"),
            ("shop::pay(shop::Cart (&) [3])", "shop::pay"),
            (
                "void (anonymous namespace)::pay(int)",
                "(anonymous namespace)::pay",
            ),
            (
                "void `anonymous namespace'::pay(int)",
                "`anonymous namespace'::pay",
            ),
            (
                "void* shop::Cart::operator new(unsigned long)",
                "shop::Cart::operator new",
            ),
            (
                "shop::Cart::operator std::string[abi:cxx11]() const",
                "shop::Cart::operator std::string",
            ),
            (
                "bool shop::operator==<int>(shop::Box<int> const&, shop::Box<int> const&)",
                "shop::operator==",
            ),
            ("void shop::operators::find(int)", "shop::operators::find"),
            (
                "shop::pay(int)::<lambda(int)>::operator()(int) const",
                "shop::pay::<lambda>::operator()",
            ),
            (
                "non-virtual thunk to shop::Cart::pay(int)",
                "non-virtual thunk to shop::Cart::pay",
            ),
            ("shop::Cart::~Cart()", "shop::Cart::~Cart"),
            ("Shop.Cart.pay() -> ()", "Shop.Cart.pay -> ()"),
        ];
        for (declared, expected) in cases {
            assert_eq!(declared_name(declared), expected);
        }
    }

    #[test]
    fn declarations_of_rust_have_the_name_of_the_function() {
        let cases = [
            (
                "<&mut F as core::ops::FnOnce<(u32,)>>::call_once",
                "<&mut _ as core::ops::FnOnce>::call_once",
            ),
            ("<[u32]>::sort_by::<fn(u32) -> u32>", "<[_]>::sort_by"),
            ("alloc::slice::<impl [T]>::sort_by", "<[_]>::sort_by"),
            ("<shop::Cart<u32>>::add::<u8>", "shop::Cart::add"),
            ("shop::Cart<T>::add", "shop::Cart::add"),
            ("shop::main::{closure#1}", "shop::main::{{closure}}"),
            ("shop::main::{K#0}", "shop::main::{{constant}}"),
            (
                "core::ops::FnOnce::call_once{shim:vtable#0}",
                "core::ops::FnOnce::call_once{{vtable.shim}}",
            ),
            (
                "core::ptr::drop_in_place<alloc::vec::Vec<u8>>",
                "core::ptr::drop_in_place<alloc::vec::Vec>",
            ),
        ];
        for (declared, expected) in cases {
            assert_eq!(declared_name(declared), expected);
        }
    }
}
