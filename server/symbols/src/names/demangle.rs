//! Demangles symbols of Rust (legacy and v0) and of C++ on all systems but Windows.
//!
//! Devices send such symbols, too, so the work is limited. Longer symbols than the caller's limit do not come here.

use std::fmt::{self, Write as _};

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

use super::MAX_NAME_BYTES;

/// How deep the types in a symbol of C++ may nest while it is read, and while its name is written. The stack of a thread suffices for
/// them, also in a debug build.
const DEEPEST_SYMBOL: u32 = 96;
const DEEPEST_NAME: u32 = 128;

pub(super) fn rust(symbol: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    let mut out = Bounded::default();
    // The alternate form omits the hash, which differs between builds.
    write!(out, "{name:#}").ok()?;
    Some(out.0)
}

pub(super) fn cpp(symbol: &str) -> Option<String> {
    // The demangler also reads a bare `a`, as `signed char`.
    let bare = symbol.trim_start_matches('_');
    if bare.len() == symbol.len() || !bare.starts_with('Z') {
        return None;
    }
    let parsing = ParseOptions::default().recursion_limit(DEEPEST_SYMBOL);
    let parsed = Symbol::new_with_options(symbol, &parsing).ok()?;
    // Omits parameters: a changed signature is still the same culprit.
    let options = DemangleOptions::new()
        .no_params()
        .no_return_type()
        .recursion_limit(DEEPEST_NAME);
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
    fn names_are_bounded() {
        let mut name = Bounded::default();
        name.write_str(&"a".repeat(MAX_NAME_BYTES)).unwrap();
        assert!(name.write_str("a").is_err());
        assert_eq!(name.0.len(), MAX_NAME_BYTES);
    }
}
