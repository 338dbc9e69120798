//! Names of Rust and C++ that devices have demangled themselves, in the forms of their demanglers.

use std::borrow::Cow;

use super::clones::without_certain_clones;
use super::declared::declared_name;
use super::one_name::{Syntax, one_name};

/// Longer names are kept, and so are names with more brackets: a bracket without an end costs a search through the name.
const MAX_BYTES: usize = 2048;
const MAX_BRACKETS: usize = 64;

/// Returns the name that a symbol file would give a function: `shop::Cart::add` for `<shop::Cart<u32>>::add::<u8>`, `shop::pay` for
/// `shop::pay::h0123456789abcdef` and for `void shop::pay(int)`. Returns `None` if that is the name already, and for names without a path as in
/// Rust and C++: in other languages, brackets have other meanings.
#[must_use]
pub fn demangled_name(name: &str) -> Option<String> {
    // `-[Cart pay::]` is a method of Objective-C.
    let is_path = name.contains("::") && !name.contains("-[") && !name.contains("+[");
    let is_bracket = |byte: &u8| matches!(byte, b'<' | b'(' | b'[' | b'{');
    let brackets = name.bytes().filter(is_bracket).count();
    if !is_path || name.len() > MAX_BYTES || brackets > MAX_BRACKETS {
        return None;
    }
    let original = without_certain_clones(name);
    let hashless = without_hash(original);
    let path = without_crate_ids(hashless);
    let is_rust = path.len() < original.len();
    let reduced = match (brackets, is_rust) {
        (0, _) => path.into_owned(),
        (_, true) => one_name(&path, Syntax::Rust),
        (_, false) => declared_name(&path),
    };
    (reduced != name && !reduced.is_empty()).then_some(reduced)
}

/// Removes the hash at the end of a name, which tells the instances of a function apart.
fn without_hash(name: &str) -> &str {
    const DIGITS: usize = 16;
    let hash = name.rsplit_once("::h");
    let hash = hash.filter(|(_, digits)| digits.len() == DIGITS && is_hexadecimal(digits));
    hash.map_or(name, |(path, _)| path)
}

/// Removes the ids of crates: `shop[1a2b3c4d5e6f7081]::pay` → `shop::pay`
fn without_crate_ids(name: &str) -> Cow<'_, str> {
    let (mut out, mut rest) = (String::new(), name);
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(before);
        let is_name = before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        let id = after.split_once("]::");
        rest = match id.filter(|(id, _)| is_name && is_hexadecimal(id)) {
            Some((_, path)) => {
                out.push_str("::");
                path
            }
            None => {
                out.push('[');
                after
            }
        };
    }
    out.push_str(rest);
    match out.len() < name.len() {
        true => Cow::Owned(out),
        false => Cow::Borrowed(name),
    }
}

fn is_hexadecimal(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    !text.is_empty() && text.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::super::readable_symbol;
    use super::*;

    #[test]
    fn a_function_has_one_name_mangled_or_not() {
        let cases = [
            (
                "_ZN4shop4cart3pay17h0123456789abcdefE",
                "shop::cart::pay::h0123456789abcdef",
            ),
            ("_RNvNtC4shop4cart3pay", "shop[1a2b3c4d]::cart::pay"),
            (
                "_ZN4shop4cart3pay28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
                "shop::cart::pay::{{closure}}::h0123456789abcdef",
            ),
            ("_RNCNvNtC4shop4cart3pay0", "shop::cart::pay::{closure#0}"),
            ("_RINvMC1aINtB3_4CartmE3addhE", "<a::Cart<u32>>::add::<u8>"),
            (
                "_ZN1a13Cart$LT$T$GT$3add17h05ceed26cadc244bE",
                "a::Cart<T>::add::h05ceed26cadc244b",
            ),
            (
                "_ZN5alloc3str21_$LT$impl$u20$str$GT$12to_lowercase17h0123456789abcdefE",
                "alloc::str::<impl str>::to_lowercase",
            ),
            ("_ZNKO4shop4Cart4deepEv", "shop::Cart::deep() const &&"),
            (
                "_ZN4shop4Cart3payIiEEvT_.isra.0",
                "void shop::Cart::pay<int>(int) [clone .isra.0]",
            ),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
            ),
            (
                "_ZZN4shop4Cart3payEiENKUlvE_clEv",
                "shop::Cart::pay(int)::{lambda()#1}::operator()() const",
            ),
        ];
        for (mangled, demangled) in cases {
            let name = demangled_name(demangled);
            assert!(name.is_some(), "{demangled}");
            assert_eq!(name, readable_symbol(mangled), "{mangled}");
        }
    }

    #[test]
    fn types_lose_the_ids_of_their_crates() {
        let name = demangled_name("<shop[1a2b]::Cart<u32> as core[3c4d]::ops::Drop>::drop");
        assert_eq!(
            name.as_deref(),
            Some("<shop::Cart as core::ops::Drop>::drop")
        );
    }

    #[test]
    fn readable_names_and_names_of_other_languages_are_kept() {
        for name in [
            "",
            "::",
            "pay",
            "shop::cart::pay",
            "shop::cart::pay::{{closure}}",
            "shop::pay::{{constant}}::inside",
            "shop::pay::ha",
            "<str>::to_lowercase",
            "<[_] as core::cmp::PartialEq>::eq",
            "<(_, _) as core::cmp::PartialEq>::eq",
            "<&mut _ as core::ops::FnOnce>::call_once",
            "<std::Once::call::{{closure}} as core::ops::FnOnce>::call_once::{{vtable.shim}}",
            "core::ptr::drop_in_place<shop::Cart>",
            "shop::Cart::pay::{lambda#1}::operator()",
            "virtual thunk to shop::Cart::pay",
            "shop::operator\"\"_eur",
            "shop::operator<<",
            "std::operator<=>",
            "shop::Cart::operator new",
            "(anonymous namespace)::add",
            "`shop::pay'::`1'::<lambda_1>::operator()",
            "-[Cart pay::]",
            "__11-[Cart pay::]_block_invoke",
            "add<T>",
            "Shop::Cart.clone",
            "Shop::Cart.part",
            "Shop::Cart.warm",
            "pays (twice)",
            "closure #1 in Cart.pay",
            "Object.<anonymous>",
        ] {
            assert_eq!(demangled_name(name), None, "{name}");
        }
        let long = format!("shop::{}", "<".repeat(1_000));
        assert_eq!(demangled_name(&long), None);
    }
}
