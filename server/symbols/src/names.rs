//! Readable names of native functions: Rust, C++, Swift, Objective-C and Kotlin/Native.

mod clones;
mod declared;
mod demangle;
mod demangled;
mod one_name;
mod provided_methods;
mod rust_module;

use std::borrow::Cow;

use symbolic::common::{Language, Name, NameMangling};
use symbolic::demangle::{Demangle, DemangleOptions};

pub use self::clones::without_certain_clones;
use self::clones::without_clones;
use self::declared::declared_name;
pub use self::demangled::demangled_name;
use self::one_name::{Syntax, one_name};
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

/// Returns the readable name of a mangled symbol of Rust or C++ that a device sends: the name that a symbol file gives the function. Returns
/// `None` if the symbol is not mangled.
#[must_use]
pub fn readable_symbol(symbol: &str) -> Option<String> {
    let looks_mangled = symbol.starts_with('_')
        && symbol.trim_start_matches('_').starts_with(['R', 'Z'])
        && symbol.len() <= MAX_SYMBOL_BYTES;
    looks_mangled
        .then(|| name_of_mangled(without_clones(symbol)))
        .flatten()
}

/// Returns the one name of a mangled symbol of Rust, or of C++ on all systems but Windows.
fn name_of_mangled(symbol: &str) -> Option<String> {
    if let Some(name) = demangle::rust(symbol) {
        let function = one_name(&name, Syntax::Rust);
        let provided = provided_methods::is_provided_method(symbol);
        let by_trait = provided.then(|| provided_methods::without_type(&function));
        return Some(by_trait.flatten().unwrap_or(function));
    }
    demangle::cpp(symbol).map(|name| name_of_cpp(&name))
}

/// Returns the class and the function of a symbol of Kotlin/Native, or `None` if it is of another language.
#[must_use]
pub fn kotlin_native(symbol: &str) -> Option<(&str, &str)> {
    // `kfun:com.example.Cart#pay(kotlin.Int){}kotlin.Boolean` → `com.example.Cart` and `pay`: the compiler writes `kfun:`, the package and
    // classes, `#`, the function, its parameters, its type parameters in `{}`, and the type.
    let symbol = symbol.strip_prefix('_').unwrap_or(symbol);
    // What Objective-C and Swift call to reach the function has another prefix in front.
    let signature = ["objc2kotlin_virtual_", "objc2kotlin_", ""]
        .into_iter()
        .find_map(|bridge| symbol.strip_prefix(bridge)?.strip_prefix("kfun:"))?;
    // Functions that other modules cannot call end with this.
    let signature = signature.strip_suffix("#internal").unwrap_or(signature);
    let end = signature.find(['(', '{']).unwrap_or(signature.len());
    let mut name = signature.get(..end)?;
    // `pay#suspend` is a function that can wait, `values#static` one without an object, `pay__at__kotlin.String` an extension of a type.
    while let Some(shorter) = ["#suspend", "#static"]
        .into_iter()
        .find_map(|mark| name.strip_suffix(mark))
        .filter(|shorter| shorter.contains('#'))
    {
        name = shorter;
    }
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
    if is_objective_c {
        return symbol.to_owned();
    }
    if name.mangling() != NameMangling::Unmangled
        && let Some(function) = name_of_mangled(symbol)
    {
        return function;
    }
    let demangled = match name.try_demangle(DemangleOptions::name_only()) {
        // Longer names would take long to rewrite.
        Cow::Owned(long) if long.len() > MAX_NAME_BYTES => return long,
        demangled => demangled,
    };
    match name.detect_language() {
        Language::Rust => one_name(&demangled, Syntax::Rust),
        Language::Swift => {
            let function = demangled.strip_prefix("specialized ");
            // Type arguments are written as in C++.
            one_name(function.unwrap_or(&demangled), Syntax::Cpp)
        }
        _ => match demangled {
            Cow::Owned(demangled) => name_of_cpp(&demangled),
            Cow::Borrowed(declared) => declared_name(declared),
        },
    }
}

/// Returns the one name of a demangled function of C++.
fn name_of_cpp(demangled: &str) -> String {
    if let Some((kind, function)) = thunk(demangled) {
        return format!("{kind} thunk to {}", one_name(function, Syntax::Cpp));
    }
    let literal = literal_operator(demangled);
    one_name(literal.as_deref().unwrap_or(demangled), Syntax::Cpp)
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

#[cfg(test)]
mod tests {
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
            (
                "_ZN5alloc3str21_$LT$impl$u20$str$GT$12to_lowercase17h0123456789abcdefE",
                "<str>::to_lowercase",
            ),
            ("_ZNKO4shop4Cart4deepEv", "shop::Cart::deep"),
            ("_ZNR4shop4Cart4deepEv", "shop::Cart::deep"),
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
            ("shop::Cart::pay(int) [clone .isra.0]", "shop::Cart::pay"),
            ("shop::Cart::pay(int) const (.cold)", "shop::Cart::pay"),
            ("pay.cfi.llvm.12345", "pay"),
            ("main", "main"),
            ("main.cold", "main"),
        ];
        for (symbol, function) in cases {
            assert_eq!(names(symbol), (String::new(), function.to_owned()));
            let of_device = symbol.starts_with('_').then(|| function.to_owned());
            assert_eq!(readable_symbol(symbol), of_device, "{symbol}");
        }
    }

    #[test]
    fn symbols_of_devices_have_one_name_for_all_instances() {
        let cases = [
            (
                "_RNvYNtNtC1a3dep3BagNtB4_5Shape5twiceB6_",
                "a::dep::Shape::twice",
            ),
            (
                "_ZN1a3dep5Shape5twice17h05ceed26cadc244bE",
                "a::dep::Shape::twice",
            ),
            ("_RINvMC1aINtB3_4CartmE3addhE", "a::Cart::add"),
            ("_RINvMC1aINtB3_4CarthE3addtE", "a::Cart::add"),
            (
                "_ZN1a13Cart$LT$T$GT$3add17h05ceed26cadc244bE",
                "a::Cart::add",
            ),
            ("_ZN4shop4CartIiE3addIcEEvT_", "shop::Cart::add"),
            ("_ZN4shop4CartIsE3addIcEEvT_", "shop::Cart::add"),
            (
                "__ZNK4shop4Cart5totalERKSt6vectorIiSaIiEE",
                "shop::Cart::total",
            ),
            ("__RNvNtC4shop4cart3pay", "shop::cart::pay"),
        ];
        for (symbol, function) in cases {
            assert_eq!(
                readable_symbol(symbol).as_deref(),
                Some(function),
                "{symbol}"
            );
            assert_eq!(names(symbol).1, function);
        }
    }

    #[test]
    fn names_that_are_not_mangled_are_not_demangled() {
        let names = [
            "",
            "_",
            "main",
            "_receiveSignal",
            "_ZoomController",
            "_Request",
            "_start",
            "__epoll_pwait",
        ];
        for name in names {
            assert_eq!(readable_symbol(name), None, "{name}");
        }
        let long = format!("_ZN{}3payEv", "4shop".repeat(1_000));
        assert_eq!(readable_symbol(&long), None);
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
                "kfun:com.example.Color#values#static(){}kotlin.Array<com.example.Color>",
                "com.example.Color",
                "values",
            ),
            (
                "kfun:com.example.Cart#static(){}",
                "com.example.Cart",
                "static",
            ),
            (
                "objc2kotlin_kfun:com.example.Cart#pay(kotlin.Int){}kotlin.Boolean",
                "com.example.Cart",
                "pay",
            ),
            (
                "_objc2kotlin_virtual_kfun:com.example.Cart#pay(){}",
                "com.example.Cart",
                "pay",
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
