//! The names of a frame. Languages store them in different fields; rules and groups use the accessors here.

use std::borrow::Cow;

use unjank_protocol::Frame;

use super::demangle::readable_function;
use super::script_names::without_hash;

/// The name shown for a frame without one.
const NAMELESS: &str = "<unknown>";

/// The names of one frame, demangled.
pub(super) struct Names<'f> {
    pub(super) class: &'f str,
    pub(super) module: &'f str,
    pub(super) file: &'f str,
    function: Cow<'f, str>,
}

impl<'f> Names<'f> {
    pub(super) fn new(frame: &'f Frame<'_>) -> Self {
        Self {
            class: frame.class.as_str(),
            module: frame.module.as_str(),
            file: frame.file.as_str(),
            function: readable_function(frame.function.as_str()),
        }
    }

    /// Returns the function without its class, which Dart and Swift repeat, as in `Cart` / `Cart.pay`.
    pub(super) fn function(&self) -> &str {
        let function = self.function.as_ref();
        if self.class.is_empty() {
            return function;
        }
        let member = function.strip_prefix(self.class);
        member
            .and_then(|rest| rest.strip_prefix('.').or_else(|| rest.strip_prefix("::")))
            .filter(|rest| !rest.is_empty())
            .unwrap_or(function)
    }

    /// Returns the subject of class rules: the class or, if the language has none, the function with its path.
    pub(super) fn class_or_function(&self) -> &str {
        if self.class.is_empty() {
            objc_class_onwards(&self.function)
        } else {
            self.class
        }
    }

    /// Returns the file name of a module that is a path, so that a rule for `libhwui.so` matches in any folder.
    pub(super) fn module_file(&self) -> Option<&'f str> {
        if !self.module.starts_with('/') {
            return None;
        }
        self.module
            .rsplit(['/', '!'])
            .next()
            .filter(|name| !name.is_empty())
    }

    /// Returns all texts that patterns are matched against.
    pub(super) fn subjects(&self) -> impl Iterator<Item = &str> {
        let module = Some(self.module).filter(|module| !module.is_empty());
        [Some(self.class_or_function()), module, self.module_file()]
            .into_iter()
            .flatten()
    }

    /// Whether the frame has no name of any kind.
    pub(super) fn is_nameless(&self) -> bool {
        let is_unnamed = self.class.is_empty() && self.function.is_empty();
        is_unnamed && self.module.is_empty() && self.file.is_empty()
    }

    /// Returns the class to show. Empty if the function already contains it.
    pub(super) fn shown_class(&self) -> &'f str {
        if self.function.starts_with(['-', '+']) && self.function.ends_with(']') {
            ""
        } else {
            self.class
        }
    }

    /// Returns the name for a frame without class and function: its image, or else its script.
    pub(super) fn image(&self) -> String {
        match self.module_file() {
            Some(name) => name.to_owned(),
            None if self.module.is_empty() => top_level_code(self.file),
            None => self.module.to_owned(),
        }
    }
}

/// Returns the name for code outside any function of a file. It has no line and no hash of a bundler, because these change with each release. A
/// path without a file name, such as `/orders/12345` of a page, has no name.
#[must_use]
pub fn top_level_code(file: &str) -> String {
    let path = file.split(['?', '#']).next().unwrap_or(file);
    let mut parts = path.rsplit(['/', '\\']).filter(|part| !part.is_empty());
    let name = parts.next().filter(|name| name.contains('.'));
    name.map_or_else(
        || NAMELESS.to_owned(),
        |name| format!("top-level code ({})", without_hash(name)),
    )
}

/// Returns `-[Cart pay]` and `__11-[Cart pay]_block_invoke` from the class onwards, and any other name unchanged.
fn objc_class_onwards(function: &str) -> &str {
    if let Some(rest) = function
        .strip_prefix("-[")
        .or_else(|| function.strip_prefix("+["))
    {
        return rest;
    }
    let block = function
        .strip_prefix("__")
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    block
        .and_then(|rest| rest.strip_prefix("-[").or_else(|| rest.strip_prefix("+[")))
        .unwrap_or(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame<'a>(class: &'a str, module: &'a str, function: &'a str) -> Frame<'a> {
        Frame {
            class: class.into(),
            module: module.into(),
            function: function.into(),
            ..Frame::default()
        }
    }

    #[test]
    fn a_function_is_separated_from_its_class() {
        let split = [
            (frame("com.example.Cart", "", "pay"), "pay"),
            (
                frame("_CartState", "package:shop/", "_CartState.pay"),
                "pay",
            ),
            (frame("shop::Cart", "", "shop::Cart::pay"), "pay"),
            (frame("Cart", "", "CartList"), "CartList"),
            (frame("Cart", "", "Cart."), "Cart."),
            (frame("", "", "shop::cart::pay"), "shop::cart::pay"),
        ];
        for (frame, function) in split {
            assert_eq!(Names::new(&frame).function(), function);
        }
    }

    #[test]
    fn class_rules_see_the_function_if_there_is_no_class() {
        let seen = [
            (frame("com.example.Cart", "", "pay"), "com.example.Cart"),
            (
                frame("", "", "_ZN4shop4cart3pay17h0123456789abcdefE"),
                "shop::cart::pay",
            ),
            (frame("", "Shop", "-[Cart pay]"), "Cart pay]"),
            (
                frame("", "Shop", "__11-[Cart pay]_block_invoke"),
                "Cart pay]_block_invoke",
            ),
            (frame("", "", "batchedUpdates"), "batchedUpdates"),
        ];
        for (frame, class) in seen {
            assert_eq!(Names::new(&frame).class_or_function(), class);
        }
    }

    #[test]
    fn code_outside_functions_is_named_by_its_script() {
        for (file, name) in [
            ("a.js", "top-level code (a.js)"),
            ("https://shop.example/js/a.js?v=/2", "top-level code (a.js)"),
            ("C:\\shop\\b.js", "top-level code (b.js)"),
            (
                "https://shop.example/assets/index-BqV3x9aZ.js",
                "top-level code (index.js)",
            ),
            ("https://shop.example/", "top-level code (shop.example)"),
            ("https://shop.example/orders/12345#paid", NAMELESS),
            ("/", NAMELESS),
            ("", NAMELESS),
        ] {
            assert_eq!(top_level_code(file), name);
        }
    }

    #[test]
    fn an_image_is_named_by_its_file() {
        let named = [
            ("/system/lib64/libhwui.so", Some("libhwui.so")),
            ("/data/app/shop/base.apk!libcart.so", Some("libcart.so")),
            ("package:shop/src/", None),
            ("UIKitCore", None),
            ("", None),
        ];
        for (module, file) in named {
            assert_eq!(Names::new(&frame("", module, "")).module_file(), file);
        }
    }
}
