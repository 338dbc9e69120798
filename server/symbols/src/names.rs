//! Readable names of native functions: Rust, C++, Swift, Objective-C and Kotlin/Native.

mod one_name;
mod rust_module;
mod rust_types;

use std::borrow::Cow;

use symbolic::common::{Language, Name};
use symbolic::demangle::{Demangle, DemangleOptions};

use self::one_name::{Syntax, one_name, without_clones};
use self::rust_module::module_of;

/// Longer symbols are not demangled.
const MAX_SYMBOL_BYTES: usize = 4096;
/// Longer names are cut: substitutions can expand a few bytes to gigabytes.
const MAX_NAME_BYTES: usize = 4096;

pub(crate) struct Readable {
    pub(crate) class: String,
    pub(crate) function: String,
}

/// Demangles a name. Omits parameters, because a changed signature is still the same function, and type arguments, because instances
/// are the same function too.
pub(crate) fn readable(name: &Name<'_>) -> Readable {
    let symbol = without_clones(name.as_str());
    if let Some((class, function)) = kotlin_native(symbol) {
        return Readable {
            class: class.to_owned(),
            function: function.to_owned(),
        };
    }
    let name = Name::new(symbol, name.mangling(), name.language());
    let mut function = if symbol.len() > MAX_SYMBOL_BYTES {
        symbol.to_owned()
    } else {
        function_of(&name)
    };
    function.truncate(function.floor_char_boundary(MAX_NAME_BYTES));
    Readable {
        class: String::new(),
        function,
    }
}

/// Returns the class and the function of a symbol of Kotlin/Native, or `None` if it is of another language.
#[must_use]
pub fn kotlin_native(symbol: &str) -> Option<(&str, &str)> {
    // `kfun:com.example.Cart#pay(kotlin.Int){}kotlin.Boolean` → `com.example.Cart` and `pay`: the compiler writes `kfun:`, the package and
    // classes, `#`, the function, its parameters, its type parameters in `{}`, and the type.
    let signature = symbol
        .strip_prefix("kfun:")
        .or_else(|| symbol.strip_prefix("_kfun:"))?;
    // Functions that other modules cannot call end with this.
    let signature = signature.strip_suffix("#internal").unwrap_or(signature);
    let end = signature.find(['(', '{']).unwrap_or(signature.len());
    let name = signature.get(..end)?;
    // `pay#suspend` is a function that can wait, `pay__at__kotlin.String` an extension of a type.
    let waiting = name.strip_suffix("#suspend");
    let name = waiting.filter(|name| name.contains('#')).unwrap_or(name);
    let name = name.split_once("__at__").map_or(name, |(name, _)| name);
    let (class, function) = (name.rsplit_once('#'))
        .or_else(|| name.rsplit_once('.'))
        .unwrap_or(("", name));
    // `<bridge-UNN>pay` calls `pay` with other types.
    let bridged = function
        .strip_prefix("<bridge-")
        .and_then(|rest| rest.split_once('>'));
    let function = bridged.map_or(function, |(_, bridged)| bridged);
    Some((class.trim_end_matches('.'), function))
}

/// Completes the name of a Rust function with the module that its source file tells, if the name has no path.
pub(crate) fn with_module(function: String, language: Language, file: &str) -> String {
    if language != Language::Rust || function.contains("::") || function.starts_with('<') {
        return function;
    }
    match module_of(file) {
        Some(module) => format!("{module}::{function}"),
        None => function,
    }
}

fn function_of(name: &Name<'_>) -> String {
    let symbol = name.as_str();
    let is_objective_c = symbol.starts_with(['-', '+']);
    let demangled = name.try_demangle(DemangleOptions::name_only());
    let mut demangled = match demangled {
        // Longer names would take long to rewrite.
        Cow::Owned(long) if long.len() > MAX_NAME_BYTES => return long,
        demangled => demangled,
    };
    if is_objective_c {
        return demangled.into_owned();
    }
    match name.detect_language() {
        Language::Rust => {
            let function = one_name(&demangled, Syntax::Rust);
            let provided = rust_types::is_provided_method(symbol);
            let by_trait = provided.then(|| rust_types::without_type(&function));
            by_trait.flatten().unwrap_or(function)
        }
        Language::Swift => {
            if let Some(function) = demangled.strip_prefix("specialized ") {
                demangled = Cow::Owned(function.to_owned());
            }
            // Type arguments are written as in C++.
            one_name(&demangled, Syntax::Cpp)
        }
        _ if demangled.contains("::") || demangled.contains(['<', '(']) => {
            if let Some((kind, function)) = thunk(&demangled) {
                return format!("{kind} thunk to {}", one_name(function, Syntax::Cpp));
            }
            if let Some(function) = literal_operator(&demangled) {
                return one_name(&function, Syntax::Cpp);
            }
            let function = one_name(&demangled, Syntax::Cpp);
            match demangled {
                Cow::Borrowed(declared) if declared.contains('(') => without_type(&function),
                _ => function,
            }
        }
        _ => demangled.into_owned(),
    }
}

/// Returns the kind and the function of `{virtual override thunk({virtual offset(0, -24)}, shop::Cart::pay)}`: code that corrects `this`
/// and then runs the function.
fn thunk(demangled: &str) -> Option<(&'static str, &str)> {
    let mut rest = demangled
        .strip_prefix("{virtual override thunk(")?
        .strip_suffix(")}")?;
    let is_virtual = rest.starts_with("{virtual offset(");
    let mut offsets = 0;
    while let Some((_, after)) = rest
        .strip_prefix('{')
        .and_then(|offset| offset.split_once("}, "))
    {
        offsets += 1;
        rest = after;
    }
    let kind = match (offsets, is_virtual) {
        (2, _) => "covariant return",
        (_, true) => "virtual",
        (_, false) => "non-virtual",
    };
    Some((kind, rest))
}

/// The demangler writes `shop::operator_eur::operator ""` for `shop::operator""_eur`.
fn literal_operator(demangled: &str) -> Option<String> {
    let (before, after) = demangled.split_once("::operator \"\"")?;
    let start = before.rfind([':', ' ']).map_or(0, |at| at + 1);
    let (scope, name) = before.split_at_checked(start)?;
    let suffix = name.strip_prefix("operator")?;
    Some(format!("{scope}operator\"\"{suffix}{after}"))
}

/// Some tools write the type of a function in front of its name: `void shop::pay(int)`.
fn without_type(function: &str) -> String {
    let is_name =
        |word: &str| matches!(word, "to" | "for" | "in" | "of" | "operator" | "namespace)");
    match function.rsplit_once(' ') {
        Some((before, name))
            if !before.split([' ', ':']).any(is_name) && !function.contains("namespace)") =>
        {
            name.to_owned()
        }
        _ => function.to_owned(),
    }
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
            (
                "_ZN4shop4cart3pay17h0123456789abcdefE.llvm.123",
                "shop::cart::pay",
            ),
            (
                "_ZN4shop4cart3pay28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
                "shop::cart::pay::{{closure}}",
            ),
            ("_RNvNtC4shop4cart3pay", "shop::cart::pay"),
            ("_RINvNtC4shop4cart3paymE", "shop::cart::pay"),
            ("_RNCNvNtC4shop4cart3pay0", "shop::cart::pay::{{closure}}"),
            ("_ZN4shop4Cart3payEi", "shop::Cart::pay"),
            ("_ZN4shop4Cart3payIiEEvT_.isra.0", "shop::Cart::pay"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector::push_back",
            ),
            (
                "_ZZN4shop4Cart3payEiENKUlvE_clEv",
                "shop::Cart::pay::{lambda#1}::operator()",
            ),
            (
                "_ZTv0_n24_N4shop4Cart3payEv",
                "virtual thunk to shop::Cart::pay",
            ),
            (
                "_ZThn8_N4shop4Cart3payEv",
                "non-virtual thunk to shop::Cart::pay",
            ),
            (
                "_ZTchn8_h8_N4shop4Cart5cloneEv",
                "covariant return thunk to shop::Cart::clone",
            ),
            ("_ZN4shopli4_eurEe", "shop::operator\"\"_eur"),
            ("?pay@Cart@shop@@QEAAXH@Z", "shop::Cart::pay"),
            ("?pay@?$Cart@H@shop@@QEAAXH@Z", "shop::Cart::pay"),
            ("$s4Shop4CartC3payyyF", "Cart.pay"),
            ("$s4Shop4CartC3addyyxlFSi_Tg5", "Cart.add"),
            ("$s4Shop4CartC3payyyFyycfU_", "closure #1 in Cart.pay"),
            ("-[Cart pay:]", "-[Cart pay:]"),
            ("+[Cart(Shop) shared]", "+[Cart(Shop) shared]"),
            (
                "google_breakpad::Handler::Dump(int) const",
                "google_breakpad::Handler::Dump",
            ),
            ("void shop::Cart<int>::add<int>(int&&)", "shop::Cart::add"),
            (
                "(anonymous namespace)::add(int)",
                "(anonymous namespace)::add",
            ),
            ("shop::operator new(unsigned long)", "shop::operator new"),
            ("LogAppend<short unsigned int>", "LogAppend"),
            ("main", "main"),
            ("main.cold", "main"),
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
                "com.example.Cart",
                "$lambda$0",
            ),
            (
                "kfun:com.example.Cart#<get-total>(){}kotlin.Int",
                "com.example.Cart",
                "<get-total>",
            ),
            (
                "kfun:com.example.Cart#pay(){}#internal",
                "com.example.Cart",
                "pay",
            ),
            (
                "kfun:com.example.Cart#pay#suspend(kotlin.Int;kotlin.coroutines.Continuation<kotlin.Unit>){}kotlin.Any?",
                "com.example.Cart",
                "pay",
            ),
            (
                "kfun:kotlin.collections#getOrNull__at__kotlin.collections.List<0:0>(kotlin.Int){0\u{a7}<kotlin.Any?>}0:0?",
                "kotlin.collections",
                "getOrNull",
            ),
            (
                "kfun:com.example#load__at__kotlin.String#suspend(){}kotlin.Any?",
                "com.example",
                "load",
            ),
            (
                "kfun:com.example.Cart#suspend(){}",
                "com.example.Cart",
                "suspend",
            ),
            (
                "kfun:com.example.Cart#<bridge-UNN>pay(kotlin.Any?){}kotlin.Any?",
                "com.example.Cart",
                "pay",
            ),
        ];
        for (symbol, class, function) in cases {
            assert_eq!(names(symbol), (class.to_owned(), function.to_owned()));
        }
    }
}
