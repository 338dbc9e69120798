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
    let location = without_eval(location);
    if !native && !is_anonymous(location) && !has_column(location) && !is_file(location) {
        return None;
    }
    // `pay [as onClick]`: the second name is the caller's.
    let name = name.split_once(" [as ").map_or(name, |(name, _)| name);
    Some(new_frame(name, if native { "" } else { location }, native))
}

/// Parses `cart.js:42:7`: code outside any function, without the leading `at `.
pub(super) fn bare(rest: &str) -> Option<Frame<'_>> {
    let location = without_eval(rest.strip_prefix("async ").unwrap_or(rest));
    let is_known = || is_anonymous(location) || is_file(location);
    let is_place = has_column(location) || has_line(location) && is_known();
    let is_name =
        |location: &str| location.contains('(') && !is_whole_path(location) && !is_routed(location);
    (is_place && !is_name(location)).then(|| new_frame(ANONYMOUS, location, false))
}

/// `eval at pay (cart.js:1:1), <anonymous>:1:1`: only the last part is the location of the code.
fn without_eval(location: &str) -> &str {
    match location.strip_prefix("eval at ") {
        Some(eval) => eval.rsplit(", ").next().unwrap_or(eval),
        None => location,
    }
}

/// Whether a location, with or without a line, is in code without a file.
fn is_anonymous(location: &str) -> bool {
    file_and_line(location).0 == ANONYMOUS
}

/// Whether text is a module of the runtime, or code without a file: `node:events:513`, `[eval]:1`, `VM42:7`.
fn is_of_runtime(text: &str) -> bool {
    let (file, _) = file_and_line(text);
    let of_module = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    let is_module = ["node:", "bun:", "deno:", "ext:", "internal:"]
        .iter()
        .filter_map(|scheme| file.strip_prefix(scheme))
        .any(|module| !module.is_empty() && module.chars().all(of_module));
    let is_numbered = ["REPL", "VM"]
        .iter()
        .filter_map(|name| file.strip_prefix(name))
        .any(|number| number.parse::<u32>().is_ok());
    let is_typed = matches!(file, "[eval]" | "[stdin]" | "[worker eval]");
    is_module || (has_line(text) && (is_numbered || is_typed))
}

/// Whether text is a file with or without a line, rather than words or a time of day.
fn is_file(text: &str) -> bool {
    let (file, _) = file_and_line(text);
    let is_word = file.contains(['.', '/'])
        && !file.contains(|letter: char| letter.is_whitespace() || "()".contains(letter));
    is_word || is_whole_path(text) || is_routed(text) || is_of_runtime(text)
}

/// Whether text is a relative path, with or without a line, in folders of Next.js that group or intercept routes: `app/(shop)/page.js:42`,
/// `app/@modal/(..)photo/page.js`.
fn is_routed(text: &str) -> bool {
    let (file, _) = file_and_line(text);
    let Some((folders, name)) = file.rsplit_once('/') else {
        return false;
    };
    let is_folder = |folder: &str| {
        let mut rest = folder;
        while let Some((group, after)) = rest
            .strip_prefix('(')
            .and_then(|group| group.split_once(')'))
        {
            if group.is_empty() || group.contains('(') {
                return false;
            }
            rest = after;
        }
        !rest.contains(['(', ')'])
    };
    !file.contains(char::is_whitespace)
        && name.contains('.')
        && !name.contains(['(', ')'])
        && folders.split('/').all(is_folder)
}

/// Whether text is a URL or a file with a line, in a folder that may have blanks and brackets in its name:
/// `C:\Program Files (x86)\cart.js:42`.
fn is_whole_path(text: &str) -> bool {
    let (file, _) = file_and_line(text);
    let mut letters = file.chars();
    let is_drive = letters
        .next()
        .is_some_and(|letter| letter.is_ascii_alphabetic())
        && letters.next() == Some(':')
        && matches!(letters.next(), Some('\\' | '/'));
    let is_path = is_drive
        || ["/", "\\", "./", "../"]
            .iter()
            .any(|root| file.starts_with(*root));
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    has_line(text) && (is_url(file) || is_path && name.contains('.'))
}

fn is_url(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        let of_scheme = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
        !scheme.is_empty() && scheme.chars().all(of_scheme)
    };
    text.split_once("://")
        .is_some_and(|(scheme, _)| is_scheme(scheme))
}

/// Parses `pay@cart.js:42:7`. Of a function without a name, only the location is there, and a URL may contain `@`.
pub(super) fn jsc(line: &str) -> Option<Frame<'_>> {
    let (name, location) = match line.split_once('@') {
        Some((name, location)) if !is_url(name) => (name, location),
        _ if is_url(line) && has_column(line) && !line.contains(char::is_whitespace) => ("", line),
        _ => return None,
    };
    // Firefox writes `async*pay` and `setTimeout handler*pay` if another function started this one.
    let name = name.rsplit_once('*').map_or(name, |(_, name)| name);
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

    /// A frame, its function, its file and its line.
    type Case<'a> = (Option<Frame<'a>>, &'a str, &'a str, i64);

    fn check(cases: impl IntoIterator<Item = Case<'static>>) {
        for (frame, function, file, line) in cases {
            let frame = frame.unwrap();
            assert_eq!(
                (frame.function.as_str(), frame.file.as_str(), frame.line),
                (function, file, line)
            );
        }
    }

    #[test]
    fn paths_may_contain_blanks_and_brackets() {
        check([
            (
                v8("Object.<anonymous> (/Users/bob/My App/cart.js:42)"),
                "Object.<anonymous>",
                "/Users/bob/My App/cart.js",
                42,
            ),
            (
                v8("Cart.pay (C:\\Program Files (x86)\\shop\\cart.js:42)"),
                "Cart.pay",
                "C:\\Program Files (x86)\\shop\\cart.js",
                42,
            ),
            (
                v8("Cart.pay (/Users/bob/Tom, Ann/cart.js:42:7)"),
                "Cart.pay",
                "/Users/bob/Tom, Ann/cart.js",
                42,
            ),
            (
                bare("C:\\Program Files\\shop\\cart.js:43"),
                ANONYMOUS,
                "C:\\Program Files\\shop\\cart.js",
                43,
            ),
            (
                bare("C:\\Program Files (x86)\\shop\\cart.js:43:7"),
                ANONYMOUS,
                "C:\\Program Files (x86)\\shop\\cart.js",
                43,
            ),
        ]);
    }

    #[test]
    fn urls_may_contain_brackets() {
        check([
            (
                bare(
                    "https://shop.example.com/_next/static/chunks/app/(shop)/page-1a2b3c.js:1:2345",
                ),
                ANONYMOUS,
                "https://shop.example.com/_next/static/chunks/app/(shop)/page-1a2b3c.js",
                1,
            ),
            (
                v8("Cart.pay [as onClick] (https://shop.example.com/(group)/cart.js:42)"),
                "Cart.pay",
                "https://shop.example.com/(group)/cart.js",
                42,
            ),
            (
                bare("async webpack-internal:///(app-pages-browser)/./src/cart.js:42:7"),
                ANONYMOUS,
                "webpack-internal:///(app-pages-browser)/./src/cart.js",
                42,
            ),
            (
                bare("https://shop.example.com/(shop)/checkout:12:5"),
                ANONYMOUS,
                "https://shop.example.com/(shop)/checkout",
                12,
            ),
            (
                bare("./src/shop.v2/(cart)/page.js:42:7"),
                ANONYMOUS,
                "./src/shop.v2/(cart)/page.js",
                42,
            ),
        ]);
    }

    #[test]
    fn relative_paths_may_be_in_groups_of_routes() {
        let page = "app/(shop)/page.js";
        let photo = "app/@modal/(.)(..)photo/[id]/page.js";
        check([
            (bare("app/(shop)/page.js:42:7"), ANONYMOUS, page, 42),
            (bare("app/(shop)/page.js:42"), ANONYMOUS, page, 42),
            (bare("async app/(shop)/page.js:42:7"), ANONYMOUS, page, 42),
            (
                bare("app/@modal/(.)(..)photo/[id]/page.js:42:7"),
                ANONYMOUS,
                photo,
                42,
            ),
            (v8("pay (app/(shop)/page.js:42:7)"), "pay", page, 42),
            (v8("pay (app/(shop)/page.js:42)"), "pay", page, 42),
            (v8("pay (app/(shop)/page.js)"), "pay", page, 0),
            (
                v8("pay (address at app/(shop)/page.js:42:7)"),
                "pay",
                page,
                42,
            ),
            (jsc("pay@app/(shop)/page.js:42:7"), "pay", page, 42),
            (
                jsc("pay@app/@modal/(.)(..)photo/[id]/page.js:42:7"),
                "pay",
                photo,
                42,
            ),
            (jsc("@app/(shop)/page.js:42:7"), ANONYMOUS, page, 42),
            (
                jsc("https://shop.example/@app/(shop)/page.js:42:7"),
                ANONYMOUS,
                "https://shop.example/@app/(shop)/page.js",
                42,
            ),
        ]);
    }

    #[test]
    fn code_without_a_file_has_a_line() {
        check([
            (v8("pay (<anonymous>:42)"), "pay", "", 42),
            (bare("<anonymous>:42"), ANONYMOUS, "", 42),
            (
                v8(
                    "eval (eval at pay (https://shop.example.com/(group)/cart.js:1:1), <anonymous>:3)",
                ),
                "eval",
                "",
                3,
            ),
            (
                bare("eval at pay (cart.js:1:1), <anonymous>:3:9"),
                ANONYMOUS,
                "",
                3,
            ),
        ]);
    }

    #[test]
    fn frames_of_v8_are_parsed() {
        check([
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
            (
                v8("Server.emit (node:events:513)"),
                "Server.emit",
                "node:events",
                513,
            ),
            (v8("emit (node:events:513)"), "emit", "node:events", 513),
            (v8("emit (node:events)"), "emit", "node:events", 0),
            (v8("query (bun:sqlite:41)"), "query", "bun:sqlite", 41),
            (v8("pay ([eval]:3)"), "pay", "[eval]", 3),
            (v8("pay (REPL1:2)"), "pay", "REPL1", 2),
            (v8("async pay (VM42:7)"), "pay", "VM42", 7),
            (bare("node:events:513"), ANONYMOUS, "node:events", 513),
            (bare("async node:timers:12"), ANONYMOUS, "node:timers", 12),
            (bare("cart.js:42"), ANONYMOUS, "cart.js", 42),
            (
                bare("file:///app/cart.js:42:7"),
                ANONYMOUS,
                "file:///app/cart.js",
                42,
            ),
        ]);
    }

    #[test]
    fn frames_of_firefox_and_safari_are_parsed() {
        check([
            (
                jsc("pay@app:///main.jsbundle:1:2345"),
                "pay",
                "app:///main.jsbundle",
                1,
            ),
            (jsc("global code@cart.js:42"), "global code", "cart.js", 42),
            (jsc("@cart.js:42:7"), ANONYMOUS, "cart.js", 42),
            (jsc("parse@[native code]"), "parse", "", 0),
            (
                jsc("https://shop.example.com/cart.js:42:7"),
                ANONYMOUS,
                "https://shop.example.com/cart.js",
                42,
            ),
            (
                jsc("https://cdn.example.com/npm/vue@3.4.21/vue.js:42:7"),
                ANONYMOUS,
                "https://cdn.example.com/npm/vue@3.4.21/vue.js",
                42,
            ),
            (
                jsc("pay@https://cdn.example.com/npm/vue@3.4.21/vue.js:42:7"),
                "pay",
                "https://cdn.example.com/npm/vue@3.4.21/vue.js",
                42,
            ),
            (jsc("async*pay@cart.js:42:7"), "pay", "cart.js", 42),
            (
                jsc("setTimeout handler*Cart.pay/<@cart.js:42:7"),
                "Cart.pay/<",
                "cart.js",
                42,
            ),
        ]);
    }

    #[test]
    fn other_text_is_not_a_frame() {
        for line in [
            "somebody@example.com",
            "pay",
            "index 0",
            "https://shop.example.com:8080",
            "see https://shop.example.com/cart.js:42:7",
        ] {
            assert_eq!(jsc(line), None, "{line}");
        }
        for line in [
            "Promise.all (index 0)",
            "pay (twice)",
            "pay (node)",
            "pay (node:)",
            "pay (since 10:30)",
            "pay (VM)",
            "pay ([eval])",
        ] {
            assert_eq!(v8(line), None, "{line}");
        }
        assert_eq!(v8("com.example.Cart.pay(Cart.kt:42)"), None);
        assert_eq!(v8("com.example.CartTest.pays (twice)(CartTest.kt:3)"), None);
        for line in [
            "see https://shop.example/:1:2",
            "https://shop.example:8080/",
        ] {
            assert_eq!(jsc(line), None, "{line}");
        }
        for text in [
            "app/shop(1)/page.js:42:7",
            "app/(shop/page.js:42:7",
            "com.example.Cart.pay(Cart.kt:42:7",
        ] {
            assert_eq!(bare(text), None, "{text}");
        }
        for text in ["10:30", "/checkout since 10:30", "the shop in C:\\a.js:42"] {
            assert_eq!(bare(text), None, "{text}");
        }
    }
}
