//! Demangles symbols: Rust (legacy and v0), Itanium C++ and Kotlin/Native.
//!
//! Symbols come from devices and are untrusted: the length of both symbol and result is bounded.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use unjank_symbols::kotlin_native;

/// Longer symbols are not demangled. The wire format limits strings to 1 KiB.
const MAX_SYMBOL_BYTES: usize = 2048;
/// Symbols with a longer result are not demangled: substitutions can expand a few bytes to gigabytes.
const MAX_NAME_BYTES: usize = 4096;

/// Returns the readable name of a function: demangled if it is mangled, otherwise unchanged. Without the hash of a Rust symbol, which
/// differs between builds, and without parameters.
#[must_use]
pub fn readable_function(function: &str) -> Cow<'_, str> {
    if let Some((class, function)) = kotlin_native(function) {
        return match class {
            "" => Cow::Borrowed(function),
            class => Cow::Owned(format!("{class}.{function}")),
        };
    }
    demangle(function).map_or(Cow::Borrowed(function), Cow::Owned)
}

/// Returns the readable name of a mangled symbol, or `None` if the symbol is not mangled.
fn demangle(symbol: &str) -> Option<String> {
    // Apple's linker prepends another underscore to every name.
    let bare = symbol.strip_prefix('_')?;
    let looks_mangled = ["Z", "R", "_Z", "_R"]
        .iter()
        .any(|start| bare.starts_with(start));
    if !looks_mangled || symbol.len() > MAX_SYMBOL_BYTES {
        return None;
    }
    rust(symbol).or_else(|| cpp(symbol)).or_else(|| cpp(bare))
}

fn rust(symbol: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    let mut out = Bounded::default();
    // The alternate form omits the hash, which differs between builds.
    write!(out, "{name:#}").ok()?;
    Some(out.0)
}

fn cpp(symbol: &str) -> Option<String> {
    let parsed = cpp_demangle::Symbol::new(symbol).ok()?;
    // Omits parameters: a changed signature is still the same culprit.
    let options = cpp_demangle::DemangleOptions::new()
        .no_params()
        .no_return_type()
        .hide_expression_literal_types();
    let mut out = Bounded::default();
    parsed.structured_demangle(&mut out, &options).ok()?;
    Some(out.0)
}

/// A string limited to [`MAX_NAME_BYTES`].
#[derive(Default)]
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_NAME_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_and_cpp_symbols_are_demangled() {
        let readable = [
            ("_ZN4shop4cart3pay17h0123456789abcdefE", "shop::cart::pay"),
            ("_RNvNtC4shop4cart3pay", "shop::cart::pay"),
            ("__RNvNtC4shop4cart3pay", "shop::cart::pay"),
            ("_ZN4shop4Cart3payEi", "shop::Cart::pay"),
            (
                "__ZNK4shop4Cart5totalERKSt6vectorIiSaIiEE",
                "shop::Cart::total",
            ),
        ];
        for (symbol, name) in readable {
            assert_eq!(demangle(symbol).as_deref(), Some(name), "{symbol}");
        }
    }

    #[test]
    fn symbols_of_kotlin_native_have_class_and_function() {
        let readable = [
            (
                "kfun:com.example.Cart#pay(kotlin.Int){}kotlin.Boolean",
                "com.example.Cart.pay",
            ),
            ("kfun:com.example#main(){}", "com.example.main"),
            ("kfun:#main(){}", "main"),
        ];
        for (symbol, name) in readable {
            assert_eq!(readable_function(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn names_that_are_not_mangled_are_unchanged() {
        for name in [
            "",
            "_",
            "main",
            "_receiveSignal",
            "_ZoomController",
            "_Request",
            "_start",
            "__epoll_pwait",
        ] {
            assert_eq!(demangle(name), None, "{name}");
        }
    }

    #[test]
    fn a_symbol_that_expands_exponentially_is_not_demangled() {
        // Each S<n>_ repeats everything before it, so the name doubles with every pair.
        let mut bomb = String::from("_Z1fSt4pairI");
        bomb.push_str(&"SaIS_IS0_S0_ES1_S1_E".repeat(60));
        assert!(demangle(&bomb).is_none_or(|name| name.len() <= MAX_NAME_BYTES));
    }
}
