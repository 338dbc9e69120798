//! What compilers add to the symbols of copies of a function: `pay.isra.0.cold` is `pay`.

/// Additions of GCC and LLVM that a number follows.
const NUMBERED: [&str; 14] = [
    "__part",
    "__uniq",
    "_omp_fn",
    "clone",
    "constprop",
    "isra",
    "llvm",
    "lto_priv",
    "memprof",
    "omp_outlined",
    "part",
    "simdclone",
    "specialized",
    "warm",
];

/// Additions of GCC and LLVM that no number need follow.
const ALONE: [&str; 7] = [
    "argelim",
    "argprom",
    "cfi",
    "cfi_jt",
    "cold",
    "localalias",
    "retelim",
];

/// Extensions of processors, besides those that begin with one of [`FAMILIES`].
const EXTENSIONS: [&str; 18] = [
    "adx",
    "aes",
    "clflushopt",
    "cx16",
    "f16c",
    "fma",
    "fma4",
    "gfni",
    "lzcnt",
    "mmx",
    "movbe",
    "pclmul",
    "popcnt",
    "sha",
    "tbm",
    "vaes",
    "xop",
    "xsave",
];
const FAMILIES: [&str; 4] = ["avx", "bmi", "sse", "ssse"];

/// Removes the additions from a symbol of native code.
pub(super) fn without_clones(symbol: &str) -> &str {
    let mut rest = without_notes(symbol);
    while let Some((before, last)) = rest.rsplit_once('.') {
        // A linker that optimizes the whole program numbers functions that have one name.
        let is_copy = is_number(last) || is_addition(last) || is_for_processor(last);
        if before.is_empty() || !(is_copy || matches!(last, "ifunc" | "resolver")) {
            break;
        }
        rest = before;
    }
    rest
}

/// Removes the additions from a function of any language. In some languages, `Cart.clone` is a method, so words that a number follows in
/// native code are kept without one.
#[must_use]
pub fn without_certain_clones(function: &str) -> &str {
    let mut rest = without_notes(function);
    while let Some((before, last)) = rest.rsplit_once('.') {
        let shorter = match before.rsplit_once('.') {
            Some((shorter, word))
                if is_number(last) && (is_addition(word) || is_for_processor(word)) =>
            {
                shorter
            }
            _ if ALONE.contains(&last) => before,
            _ => break,
        };
        if shorter.is_empty() {
            break;
        }
        rest = without_notes(shorter);
    }
    rest
}

/// Removes what demanglers make of additions: `shop::pay(int) [clone .isra.0]` and `shop::pay(int) (.cold)` are `shop::pay(int)`.
fn without_notes(mut name: &str) -> &str {
    while let Some(shorter) = without_note(name) {
        name = shorter;
    }
    name
}

fn without_note(name: &str) -> Option<&str> {
    let (before, note) = match name.strip_suffix(']') {
        Some(name) => name.rsplit_once(" [clone .")?,
        None => name.strip_suffix(')')?.rsplit_once(" (.")?,
    };
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_');
    let is_note = !before.is_empty() && !note.starts_with('.') && note.bytes().all(is_letter);
    is_note.then_some(before)
}

fn is_addition(word: &str) -> bool {
    NUMBERED.contains(&word) || ALONE.contains(&word)
}

/// Whether a word names the processors for which a copy is: `avx2_fma`, `sse4_2`, `arch_haswell`, `_Msve2`, and `default` for the others.
fn is_for_processor(word: &str) -> bool {
    let is_extension = |part: &str| {
        EXTENSIONS.contains(&part) || FAMILIES.iter().any(|family| part.starts_with(family))
    };
    let (first, rest) = word.split_once('_').unwrap_or((word, ""));
    let mut rest = rest.split('_');
    let is_known = is_extension(first)
        && rest.all(|part| part.is_empty() || is_number(part) || is_extension(part));
    let mut prefixes = ["arch_", "cpu_", "_M"].iter();
    is_known || word == "default" || prefixes.any(|prefix| word.starts_with(prefix))
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_have_the_name_of_the_function() {
        let cases = [
            ("pay.cold", "pay"),
            ("pay.isra.0.cold", "pay"),
            ("pay.part.0.constprop.1", "pay"),
            ("_ZN4shop3payEv.llvm.1234567890", "_ZN4shop3payEv"),
            ("pay.lto_priv.0", "pay"),
            ("pay.cold.1", "pay"),
            ("pay.cfi", "pay"),
            ("pay.cfi_jt", "pay"),
            ("pay.cfi.llvm.12345", "pay"),
            ("pay.simdclone.0", "pay"),
            ("pay.__uniq.12345.__part.1", "pay"),
            ("pay.specialized.1", "pay"),
            ("pay._omp_fn.0", "pay"),
            ("pay.omp_outlined.2", "pay"),
            ("pay.memprof.1.cold", "pay"),
            ("pay.argelim.argprom", "pay"),
            ("pay.avx2.0", "pay"),
            ("pay.avx512f.2", "pay"),
            ("pay.sse4_2.3", "pay"),
            ("pay.arch_haswell.0", "pay"),
            ("pay.default.1", "pay"),
            ("shop::pay(int) [clone .avx2]", "shop::pay(int)"),
            ("shop::pay(int) [clone .avx2_fma]", "shop::pay(int)"),
            ("shop::pay(int) [clone .default.1]", "shop::pay(int)"),
            ("shop::pay(int) [clone .resolver]", "shop::pay(int)"),
            ("shop::pay(int) [clone ._Msve2]", "shop::pay(int)"),
            ("shop::pay(int) [clone .isra.0]", "shop::pay(int)"),
            (
                "shop::pay(int) [clone .isra.0] [clone .cold]",
                "shop::pay(int)",
            ),
            ("shop::pay(int) const (.cold)", "shop::pay(int) const"),
            ("shop::pay(int) (.cold.1)", "shop::pay(int)"),
        ];
        for (symbol, expected) in cases {
            assert_eq!(without_clones(symbol), expected);
            assert_eq!(without_certain_clones(symbol), expected);
        }
    }

    #[test]
    fn numbers_are_additions_to_symbols_of_native_code_only() {
        let cases = [
            ("write_str.321", "write_str"),
            (
                "_RNvXsZ_NtC5alloc6string9write_str.139",
                "_RNvXsZ_NtC5alloc6string9write_str",
            ),
            ("pay.321.llvm.99", "pay"),
            ("pay.part", "pay"),
            ("pay.avx2", "pay"),
            ("_Z3payi.avx2_fma", "_Z3payi"),
            ("_Z3payi.arch_x86_64_v3", "_Z3payi"),
            ("pay.default", "pay"),
            ("pay.resolver", "pay"),
            ("pay.ifunc", "pay"),
            ("pay._MsimdMrng", "pay"),
        ];
        for (symbol, expected) in cases {
            assert_eq!(without_clones(symbol), expected);
        }
        for function in [
            "write_str.321",
            "Cart.clone",
            "Cart.part",
            "Cart.pay.3",
            "Cart.default",
            "Cart.resolver",
        ] {
            assert_eq!(without_certain_clones(function), function);
        }
    }

    #[test]
    fn names_without_additions_are_kept() {
        let names = [
            "",
            ".321",
            ".cold",
            "Cart.pays (twice)",
            "shop::print(char const*, ...)",
            "shop::print (...)",
            "shop::[clone]",
            "$s4Shop4CartC3payyyF",
            "shop.archive",
            "shop.sha_of",
            "shop.aes_key.3x",
        ];
        for name in names {
            assert_eq!(without_clones(name), name);
            assert_eq!(without_certain_clones(name), name);
        }
    }
}
