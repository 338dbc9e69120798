//! What a frame is called. Languages disagree on where the name stands; the rules and the groups look here.

use std::borrow::Cow;

use unjank_protocol::Frame;

use super::demangle::demangle;

/// What stands for the name of a frame that has none.
pub(super) const NAMELESS: &str = "<unknown>";

/// The names of one frame, demangled.
pub(super) struct Names<'f> {
    pub(super) class: &'f str,
    pub(super) module: &'f str,
    pub(super) file: &'f str,
    function: Cow<'f, str>,
}

impl<'f> Names<'f> {
    pub(super) fn of(frame: &'f Frame<'_>) -> Self {
        let function = frame.function.as_str();
        Self {
            class: frame.class.as_str(),
            module: frame.module.as_str(),
            file: frame.file.as_str(),
            function: demangle(function).map_or(Cow::Borrowed(function), Cow::Owned),
        }
    }

    /// The function without its class: Dart and Swift repeat it, as in `Cart` / `Cart.pay`.
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

    /// What rules for classes look at: the class, or, where the language has none, the function with its path.
    pub(super) fn class_or_function(&self) -> &str {
        if self.class.is_empty() {
            objc_class_onwards(&self.function)
        } else {
            self.class
        }
    }

    /// The last part of a module that is a path, so that a rule may say `libhwui.so` and mean it in any folder.
    pub(super) fn module_file(&self) -> Option<&'f str> {
        if !self.module.starts_with('/') {
            return None;
        }
        self.module
            .rsplit(['/', '!'])
            .next()
            .filter(|name| !name.is_empty())
    }

    /// Everything that patterns are held against.
    pub(super) fn subjects(&self) -> impl Iterator<Item = &str> {
        let module = Some(self.module).filter(|module| !module.is_empty());
        [Some(self.class_or_function()), module, self.module_file()]
            .into_iter()
            .flatten()
    }

    /// Whether nothing at all is known of the frame.
    pub(super) fn is_nameless(&self) -> bool {
        self.class.is_empty() && self.module.is_empty() && self.function.is_empty()
    }

    /// The class to show, empty when the function says it all.
    pub(super) fn shown_class(&self) -> &'f str {
        if self.function.starts_with(['-', '+']) && self.function.ends_with(']') {
            ""
        } else {
            self.class
        }
    }

    /// Stands for frames of which only the image is known.
    pub(super) fn image(&self) -> &'f str {
        match self.module_file() {
            Some(name) => name,
            None if self.module.is_empty() => NAMELESS,
            None => self.module,
        }
    }
}

/// `-[Cart pay]` and `__11-[Cart pay]_block_invoke` from the class on; anything else unchanged.
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
    fn a_function_is_told_apart_from_its_class() {
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
            assert_eq!(Names::of(&frame).function(), function);
        }
    }

    #[test]
    fn rules_for_classes_see_the_function_where_there_is_no_class() {
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
            assert_eq!(Names::of(&frame).class_or_function(), class);
        }
    }

    #[test]
    fn an_image_is_known_by_its_file_name() {
        let named = [
            ("/system/lib64/libhwui.so", Some("libhwui.so")),
            ("/data/app/shop/base.apk!libcart.so", Some("libcart.so")),
            ("package:shop/src/", None),
            ("UIKitCore", None),
            ("", None),
        ];
        for (module, file) in named {
            assert_eq!(Names::of(&frame("", module, "")).module_file(), file);
        }
    }
}
