//! JavaScript: V8 and Hermes (`at pay (cart.js:42:7)`), `JavaScriptCore` (`pay@cart.js:42:7`).

use unjank_protocol::Frame;

use super::location::{file_and_line, has_column, has_line};

const ANONYMOUS: &str = "<anonymous>";

/// Parses `pay (cart.js:42:7)`, without the leading `at `.
pub(super) fn v8(rest: &str) -> Option<Frame<'_>> {
    let rest = rest.strip_prefix("async ").unwrap_or(rest);
    let (name, location) = rest.strip_suffix(')')?.split_once(" (")?;
    // Hermes writes `address at` if it has bytecode but no source.
    let location = location.strip_prefix("address at ").unwrap_or(location);
    let native = location == "native" || location == "native code";
    // `eval at pay (cart.js:1:1), <anonymous>:1:1`: only the last part is the location of the code.
    let location = location.rsplit(", ").next().unwrap_or(location);
    if !native && location != ANONYMOUS && !has_column(location) && !is_file(location) {
        return None;
    }
    // `pay [as onClick]`: the second name is the caller's.
    let name = name.split_once(" [as ").map_or(name, |(name, _)| name);
    Some(new_frame(name, if native { "" } else { location }, native))
}

/// Parses `cart.js:42:7`: code outside any function, without the leading `at `.
pub(super) fn bare(rest: &str) -> Option<Frame<'_>> {
    let location = rest.strip_prefix("async ").unwrap_or(rest);
    let is_place = has_column(location) || has_line(location) && is_file(location);
    (is_place && !location.contains('(')).then(|| new_frame(ANONYMOUS, location, false))
}

/// Whether text is a file with or without a line, rather than words or a time of day.
fn is_file(text: &str) -> bool {
    let (file, _) = file_and_line(text);
    file.contains(['.', '/'])
        && !file.contains(|letter: char| letter.is_whitespace() || "()".contains(letter))
}

/// Parses `pay@cart.js:42:7`.
pub(super) fn jsc(line: &str) -> Option<Frame<'_>> {
    let (name, location) = line.split_once('@')?;
    let native = location == "[native code]";
    if !native && !has_line(location) {
        return None;
    }
    Some(new_frame(name, if native { "" } else { location }, native))
}

fn new_frame<'t>(name: &'t str, location: &'t str, native: bool) -> Frame<'t> {
    let (file, line) = file_and_line(location);
    Frame {
        function: if name.is_empty() { ANONYMOUS } else { name }.into(),
        file: if file == ANONYMOUS { "" } else { file }.into(),
        line,
        native,
        ..Frame::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_three_engines_are_parsed() {
        let cases = [
            (v8("pay (/app/cart.js:42:7)"), "pay", "/app/cart.js", 42),
            (
                v8("async Cart.pay (file:///app/cart.js:42:7)"),
                "Cart.pay",
                "file:///app/cart.js",
                42,
            ),
            (
                v8("new Cart (webpack:///./cart.js:42:7)"),
                "new Cart",
                "webpack:///./cart.js",
                42,
            ),
            (
                v8("Object.pay [as onClick] (cart.js:42:7)"),
                "Object.pay",
                "cart.js",
                42,
            ),
            (v8("JSON.parse (<anonymous>)"), "JSON.parse", "", 0),
            (
                v8("eval (eval at pay (cart.js:1:1), <anonymous>:3:9)"),
                "eval",
                "",
                3,
            ),
            (
                v8("pay (address at index.android.bundle:1:91827)"),
                "pay",
                "index.android.bundle",
                1,
            ),
            (v8("forEach (native)"), "forEach", "", 0),
            (v8("Cart.pay (cart.js:42)"), "Cart.pay", "cart.js", 42),
            (
                v8("new Cart (C:\\app\\cart.js:42)"),
                "new Cart",
                "C:\\app\\cart.js",
                42,
            ),
            (
                v8("async Cart.pay (node:internal/timers:9)"),
                "Cart.pay",
                "node:internal/timers",
                9,
            ),
            (v8("Cart.pay (cart.js)"), "Cart.pay", "cart.js", 0),
            (bare("cart.js:42"), ANONYMOUS, "cart.js", 42),
            (
                bare("file:///app/cart.js:42:7"),
                ANONYMOUS,
                "file:///app/cart.js",
                42,
            ),
            (
                jsc("pay@app:///main.jsbundle:1:2345"),
                "pay",
                "app:///main.jsbundle",
                1,
            ),
            (jsc("global code@cart.js:42"), "global code", "cart.js", 42),
            (jsc("@cart.js:42:7"), ANONYMOUS, "cart.js", 42),
            (jsc("parse@[native code]"), "parse", "", 0),
        ];
        for (frame, function, file, line) in cases {
            let frame = frame.unwrap();
            assert_eq!(
                (frame.function.as_str(), frame.file.as_str(), frame.line),
                (function, file, line)
            );
        }
    }

    #[test]
    fn other_text_is_not_a_frame() {
        for line in ["somebody@example.com", "pay", "index 0"] {
            assert_eq!(jsc(line), None, "{line}");
        }
        assert_eq!(v8("Promise.all (index 0)"), None);
        assert_eq!(v8("com.example.Cart.pay(Cart.kt:42)"), None);
        assert_eq!(v8("com.example.CartTest.pays (twice)(CartTest.kt:3)"), None);
        assert_eq!(bare("10:30"), None);
    }
}
