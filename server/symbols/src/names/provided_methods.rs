//! Methods that a trait provides for all types.

use super::one_name::{closing, split_at_word};

/// Whether a symbol is that of a method that a trait provides for all types.
///
/// Newer symbols name the type of the instance. Older ones do not, so the name cannot have it.
pub(super) fn is_provided_method(symbol: &str) -> bool {
    let Some(start) = symbol.find("_R").filter(|start| *start <= 1) else {
        return false;
    };
    let mut path = symbol.get(start + 2..).unwrap_or_default();
    // A path begins with the path that it is in: `N`, the kind, the path, the name. `I`, the path, the types.
    loop {
        let mut letters = path.chars();
        match letters.next() {
            Some('N') => drop(letters.next()),
            Some('I') => {}
            first => return first == Some('Y'),
        }
        path = letters.as_str();
    }
}

/// `<shop::Cart as shop::Pay>::pay` → `shop::Pay::pay`
pub(super) fn without_type(name: &str) -> Option<String> {
    let length = closing(name, '<', '>')?;
    let (_, implemented) = split_at_word(name.get(1..length - 1)?, " as ")?;
    Some(format!("{implemented}{}", name.get(length..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provided_methods_are_told_from_others() {
        for symbol in [
            "_RNvYNtNtC1a3dep3BagNtB4_5Shape5twiceB6_",
            "__RNvYmNtNtC1a3dep5Shape5twiceB7_",
            "_RNCNvYmNtNtC1a3dep5Shape5twice0B7_",
            "_RINvYmNtNtC1a3dep5Shape5twiceyEB7_",
            "_RNSNvYNCNvC1a4main0INtNtNtC4core3ops8function6FnOnceThEE9call_once6vtableB8_",
        ] {
            assert!(is_provided_method(symbol), "{symbol}");
        }
        for symbol in [
            "_RNvXNtC1a6shapesNtNtB4_3dep3BagNtBt_5Shape4area",
            "_RNvC1a4main",
            "_RINvC1a4callNCNvYmNtB2_5Shape5twice0E",
            "_ZN1a3dep5Shape5twice17h05ceed26cadc244bE",
            "main",
            "_R",
            "",
        ] {
            assert!(!is_provided_method(symbol), "{symbol}");
        }
    }
}
