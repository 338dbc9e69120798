//! Strips names of parts that compilers, optimizers or a single run of the program add.
//!
//! A group must survive releases, but a release renumbers lambdas, anonymous classes and closures. Removed are: the
//! numbers of anonymous classes and lambdas (`$1`, `lambda$pay$0`), synthetic classes (`$$ExternalSyntheticLambda0`,
//! `-$$Lambda$Cart$x9Yz`), hashes (`$r8$lambda$x9Yz`, `::h0123456789abcdef`), closures (`{{closure}}`, `closure #1
//! in`), clones (`.cold`, `.llvm.123`), addresses and offsets (`0x7f…`, ` + 44`).

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use unjank_symbols::without_certain_clones;

/// Prefixes that Swift's optimizer adds to names, and offsets into a function at the end.
static AROUND: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x)
        ^ (?: specialized\x20 | merged\x20 | @objc\x20 | implicit\x20 | partial\x20apply\x20(?:forwarder\x20)?for\x20 )+
        | (?: \x20\+\x20(?:0x[0-9a-fA-F]+|[0-9]+) | \+0x[0-9a-fA-F]+ ) $",
    )
});

/// Classes generated for lambdas: `-$$Lambda$Cart$x9Yz` (D8), `Cart$$ExternalSyntheticLambda0` (R8) and
/// `Cart$$Lambda$14/0x0800` (the JVM).
static LAMBDA_CLASSES: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"-\$\$Lambda\$([0-9A-Za-z_]+)\$[-0-9A-Za-z_$]*|\$\$(?:ExternalSynthetic|Lambda)[-0-9A-Za-z_$/]*|(\$r8\$lambda)\$[-0-9A-Za-z_]+",
    )
});

/// Anonymous classes and numbered members: `Cart$1`, `lambda$pay$0`, and `Cart$1Row`, a class inside a method.
static NUMBERED: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:\$[0-9]+)+([A-Za-z_])?"));

/// All other counters. Text in a capture group is kept.
static COUNTERS: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x)
          (_block_invoke)[_.][0-9]+
        | (lambda-)[0-9]+ | ('lambda)[0-9]+ | (\$_)[0-9]+
        | (\$Proxy)[0-9]+ | (Generated[A-Za-z]*Accessor)[0-9]+
        | (0x)[0-9a-fA-F]+
        | \x20?\#[0-9]+ | @[0-9]+
        | ::h[0-9a-f]{16}$
        | ::\{+closure[^}]*\}+",
    )
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the tests compile every pattern of this file")
}

/// Returns a class without counters and generated parts.
pub(super) fn stable_class(class: &str) -> Cow<'_, str> {
    if is_plain(class) {
        return Cow::Borrowed(class);
    }
    stable(class)
}

/// Returns a function, or the whole path of one, without counters and generated parts.
pub(super) fn stable_function(function: &str) -> Cow<'_, str> {
    // Applies to functions only: `part` and `cold` are valid names for the last part of a class.
    let original = without_certain_clones(function);
    if is_plain(original) {
        return Cow::Borrowed(original);
    }
    stable(original)
}

/// Whether a name certainly contains nothing to remove. This is true of most names and avoids the regexes.
fn is_plain(name: &str) -> bool {
    let suspicious = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'{' | b' ');
    !name.bytes().any(suspicious) && !name.contains("$$") && !name.contains("$r8$")
}

fn stable(name: &str) -> Cow<'_, str> {
    let shorter = AROUND.replace_all(name, "");
    let shorter = map_cow(shorter, |text| LAMBDA_CLASSES.replace_all(text, "$1$2"));
    let shorter = map_cow(shorter, |text| {
        NUMBERED.replace_all(text, |found: &Captures<'_>| {
            found
                .get(1)
                .map_or(String::new(), |next| format!("${}", next.as_str()))
        })
    });
    let shorter = map_cow(shorter, |text| COUNTERS.replace_all(text, "$1$2$3$4$5$6$7"));
    // A name that consists only of counters is kept.
    if shorter.is_empty() {
        Cow::Borrowed(name)
    } else {
        shorter
    }
}

fn map_cow<'a>(text: Cow<'a, str>, step: impl Fn(&str) -> Cow<'_, str>) -> Cow<'a, str> {
    match step(&text) {
        Cow::Borrowed(same) if same.len() == text.len() => text,
        changed => Cow::Owned(changed.into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_removed_from_classes() {
        let expected = [
            ("com.example.Cart", "com.example.Cart"),
            ("com.example.Cart$Row", "com.example.Cart$Row"),
            ("com.example.Base64", "com.example.Base64"),
            ("com.example.Cart$1", "com.example.Cart"),
            ("com.example.Cart$pay$2$1", "com.example.Cart$pay"),
            ("com.example.Cart$3Row", "com.example.Cart$Row"),
            (
                "com.example.Cart$$ExternalSyntheticLambda12",
                "com.example.Cart",
            ),
            ("com.example.-$$Lambda$Cart$x9-Yz_0", "com.example.Cart"),
            (
                "com.example.Cart$$Lambda$14/0x000000080009f840",
                "com.example.Cart",
            ),
            (
                "com.example.Cart$$Lambda/0x000000080009f840",
                "com.example.Cart",
            ),
            (
                "com.example.Cart$$serializer",
                "com.example.Cart$$serializer",
            ),
            (
                "com.example.ComposableSingletons$CartKt$lambda-3$1",
                "com.example.ComposableSingletons$CartKt$lambda-",
            ),
            ("jdk.proxy2.$Proxy14", "jdk.proxy2.$Proxy"),
            ("com.example.part", "com.example.part"),
            ("$1", "$1"),
        ];
        for (class, stable) in expected {
            assert_eq!(stable_class(class), stable, "{class}");
        }
    }

    #[test]
    fn counters_are_removed_from_functions() {
        let expected = [
            ("pay", "pay"),
            ("<init>", "<init>"),
            ("md5", "md5"),
            ("lambda$pay$0", "lambda$pay"),
            ("access$000", "access"),
            ("$r8$lambda$x9Yz-_q", "$r8$lambda"),
            ("batchedUpdates$1", "batchedUpdates"),
            ("shop::cart::pay::h0123456789abcdef", "shop::cart::pay"),
            ("shop::cart::pay::{{closure}}", "shop::cart::pay"),
            (
                "shop::cart::pay::{closure#0}::{closure#1}",
                "shop::cart::pay",
            ),
            ("<shop::cart::Cart>::pay", "<shop::cart::Cart>::pay"),
            ("shop::Cart::pay.cold", "shop::Cart::pay"),
            ("shop::pay.llvm.1234567", "shop::pay"),
            ("pay.cfi", "pay"),
            ("pay.cfi.llvm.12345", "pay"),
            ("pay.simdclone.0", "pay"),
            ("Cart.clone", "Cart.clone"),
            ("shop::pay [clone .isra.0] [clone .cold]", "shop::pay"),
            (
                "shop::pay()::{lambda(int)#1}::operator()",
                "shop::pay()::{lambda(int)}::operator()",
            ),
            ("shop::pay()::'lambda0'(int)", "shop::pay()::'lambda'(int)"),
            (
                "shop::pay()::$_3::operator()",
                "shop::pay()::$_::operator()",
            ),
            (
                "closure #1 in closure #2 in Cart.pay()",
                "closure in closure in Cart.pay()",
            ),
            ("specialized Cart.pay(_:)", "Cart.pay(_:)"),
            (
                "partial apply for closure #1 in Cart.pay()",
                "closure in Cart.pay()",
            ),
            (
                "__11-[Cart pay]_block_invoke_2",
                "__11-[Cart pay]_block_invoke",
            ),
            ("-[Cart pay] + 44", "-[Cart pay]"),
            ("_CartState@123456789.pay", "_CartState.pay"),
            ("sub_0x1f3a", "sub_0x"),
        ];
        for (function, stable) in expected {
            assert_eq!(stable_function(function), stable, "{function}");
        }
    }
}
