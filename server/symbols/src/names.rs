//! Readable names of native functions: Rust, C++, Swift, Objective-C and Kotlin/Native.

use symbolic::common::Name;
use symbolic::demangle::{Demangle, DemangleOptions};

/// Longer symbols are not demangled.
const MAX_SYMBOL_BYTES: usize = 4096;
/// Longer names are cut: substitutions can expand a few bytes to gigabytes.
const MAX_NAME_BYTES: usize = 4096;

pub(crate) struct Readable {
    pub(crate) class: String,
    pub(crate) function: String,
}

/// Demangles a name. Omits parameters, because a changed signature is still the same function.
pub(crate) fn readable(name: &Name<'_>) -> Readable {
    let symbol = name.as_str();
    if let Some(kotlin) = kotlin_native(symbol) {
        return kotlin;
    }
    let function = if symbol.len() > MAX_SYMBOL_BYTES {
        symbol.into()
    } else {
        name.try_demangle(DemangleOptions::name_only())
    };
    let mut function = function.into_owned();
    function.truncate(function.floor_char_boundary(MAX_NAME_BYTES));
    Readable {
        class: String::new(),
        function,
    }
}

/// `kfun:com.example.Cart#pay(kotlin.Int){}kotlin.Boolean` → `com.example.Cart` and `pay`.
///
/// The compiler writes `kfun:`, the package and classes, `#`, the function, its parameters, its type parameters in `{}`, and the type.
fn kotlin_native(symbol: &str) -> Option<Readable> {
    let signature = symbol
        .strip_prefix("kfun:")
        .or_else(|| symbol.strip_prefix("_kfun:"))?;
    let end = signature.find(['(', '{']).unwrap_or(signature.len());
    let name = signature.get(..end)?;
    let (class, function) = name.rsplit_once('#').unwrap_or(("", name));
    // A lambda is called `$lambda$0`, an internal function ends with `#internal`.
    let function = function.strip_prefix('$').unwrap_or(function);
    Some(Readable {
        class: class.trim_end_matches('.').to_owned(),
        function: function.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use symbolic::common::{Language, NameMangling};

    use super::*;

    fn names(symbol: &str) -> (String, String) {
        let name = Name::new(symbol, NameMangling::Unknown, Language::Unknown);
        let Readable { class, function } = readable(&name);
        (class, function)
    }

    #[test]
    fn names_of_each_language_are_readable() {
        let cases = [
            ("_ZN4shop4cart3pay17h0123456789abcdefE", "shop::cart::pay"),
            ("_RNvNtC4shop4cart3pay", "shop::cart::pay"),
            ("_ZN4shop4Cart3payEi", "shop::Cart::pay"),
            ("?pay@Cart@shop@@QEAAXH@Z", "shop::Cart::pay"),
            ("$s4Shop4CartC3payyyF", "Cart.pay"),
            ("-[Cart pay:]", "-[Cart pay:]"),
            ("main", "main"),
        ];
        for (symbol, function) in cases {
            assert_eq!(names(symbol), (String::new(), function.to_owned()));
        }
    }

    #[test]
    fn kotlin_native_names_have_a_class() {
        let cases = [
            (
                "kfun:com.example.Cart#pay(kotlin.Int){}kotlin.Boolean",
                "com.example.Cart",
                "pay",
            ),
            ("kfun:#main(){}", "", "main"),
            (
                "kfun:com.example.Cart.$lambda$0#internal",
                "com.example.Cart.$lambda$0",
                "internal",
            ),
        ];
        for (symbol, class, function) in cases {
            assert_eq!(names(symbol), (class.to_owned(), function.to_owned()));
        }
    }
}
