//! The readable name of a function, as devices send it: symbols of Rust, C++ and Kotlin/Native are demangled, and names that were demangled
//! elsewhere are reduced to the same name.

use std::borrow::Cow;

use unjank_symbols::{demangled_name, kotlin_native, readable_symbol};

/// Returns the readable name of a function: the name that a symbol file would give it, or the function unchanged if it is neither mangled nor
/// a path of Rust or C++.
#[must_use]
pub fn readable_function(function: &str) -> Cow<'_, str> {
    if let Some((class, function)) = kotlin_native(function) {
        return match class {
            "" => Cow::Borrowed(function),
            class => Cow::Owned(format!("{class}.{function}")),
        };
    }
    readable_symbol(function)
        .or_else(|| demangled_name(function))
        .map_or(Cow::Borrowed(function), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_have_class_and_function() {
        let readable = [
            (
                "kfun:com.example.Cart#pay(kotlin.Int){}kotlin.Boolean",
                "com.example.Cart.pay",
            ),
            ("kfun:com.example#main(){}", "com.example.main"),
            ("kfun:#main(){}", "main"),
            (
                "kfun:com.example.Color#values#static(){}",
                "com.example.Color.values",
            ),
            ("_RINvMC1aINtB3_4CartmE3addhE", "a::Cart::add"),
            ("_ZN4shop4CartIsE3addIcEEvT_.isra.0", "shop::Cart::add"),
            ("void shop::Cart<short>::add<char>(char)", "shop::Cart::add"),
            ("<shop::Cart<u32>>::add::<u8>", "shop::Cart::add"),
        ];
        for (symbol, name) in readable {
            assert_eq!(readable_function(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn names_that_are_not_symbols_are_unchanged() {
        for name in [
            "",
            "_",
            "_receiveSignal",
            "<init>",
            "pays (twice)",
            "add<T>",
        ] {
            assert_eq!(readable_function(name), name);
        }
    }
}
