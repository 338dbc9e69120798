//! Java, Kotlin and Android's runtime: `com.example.Cart.pay(Cart.kt:42)`. .NET writes parameters in the brackets, and the file behind them.

use unjank_protocol::Frame;
use unjank_symbols::SOURCE_FILE_PREFIX;

use super::location::{file_and_line, has_line};

/// The endings of source files that compilers for the JVM write into classes.
const SOURCES: [&str; 6] = [".java", ".kt", ".kts", ".scala", ".groovy", ".clj"];

/// Parses a frame, without its leading `at `.
pub(super) fn frame(rest: &str) -> Option<Frame<'_>> {
    let source = source_of_net(rest);
    let rest = source.map_or(rest, |(call, ..)| call);
    // Text after the closing bracket is a note on the jar that loggers append.
    let (name, after) = rest.rsplit_once('(')?;
    let (location, note) = after.split_once(')')?;
    // A URL or a path of a script may have brackets in the name of a folder.
    let goes_on = !note.starts_with(char::is_whitespace) && note.contains('/');
    if goes_on || name.contains(':') {
        return None;
    }
    let (module, name) = split_module(name);
    let (class, function) = name.rsplit_once('.')?;
    // The name of a constructor of .NET begins with a dot: `Shop.Cart..ctor`.
    let class = class.trim_end_matches('.');
    // Names in Kotlin may contain blanks, but none ends with one.
    let is_name = !function.is_empty() && !function.ends_with(char::is_whitespace);
    if class.is_empty() || !is_name || class.contains(char::is_whitespace) {
        return None;
    }
    let native = location.eq_ignore_ascii_case("native method");
    let (file, line) = match source {
        Some((_, file, line)) => (file, line),
        None if native => ("", 0),
        None if are_parameters(location) => ("", 0),
        None => file_and_line(location),
    };
    Some(Frame {
        class: class.into(),
        module: module.into(),
        function: function.into(),
        file: if file == "Unknown Source" { "" } else { file }.into(),
        line,
        native,
        ..Frame::default()
    })
}

/// Parses an element of a stack without `at `, as `StackTraceElement.toString` writes it. Calls in code and prose look alike, so the name has no
/// blanks, and the brackets have a location that only the JVM writes.
pub(super) fn element(line: &str) -> Option<Frame<'_>> {
    let (name, location) = line.strip_suffix(')')?.split_once('(')?;
    let is_element = !name.contains(char::is_whitespace) && is_location(location);
    is_element.then(|| frame(line))?
}

/// Whether text in brackets is a source file of the JVM, with or without a line, or what the JVM writes instead. With a line, any name counts
/// that is no label of a parameter, as in `frame(width:100)`: R8 can rename files to `PG` or leave them out.
fn is_location(location: &str) -> bool {
    if location.eq_ignore_ascii_case("native method") {
        return true;
    }
    let (file, _) = file_and_line(location);
    let is_generated = file.starts_with(SOURCE_FILE_PREFIX) || file.ends_with("$$SyntheticClass");
    let is_known = matches!(file, "Unknown Source" | "SourceFile") || is_generated;
    let is_word = !file.contains(|letter: char| letter.is_whitespace() || "()/@".contains(letter));
    let is_renamed = || file.is_empty() || file.starts_with(char::is_uppercase);
    let is_file = SOURCES.iter().any(|ending| file.ends_with(ending));
    is_known || is_word && (is_file || has_line(location) && (file.contains('.') || is_renamed()))
}

/// Whether the text in brackets is the parameters of .NET, such as `Int32 amount, String name`. The last word of a file, as in `My File.kt`, has a
/// dot or a line.
fn are_parameters(location: &str) -> bool {
    location.split(", ").all(|parameter| {
        let name = parameter.rsplit_once(' ').map(|(_, name)| name);
        name.is_some_and(|name| !name.contains(['.', ':']))
    })
}

/// `Shop.Cart.Pay(Int32 amount) in C:\src\Cart.cs:line 42` → (`Shop.Cart.Pay(Int32 amount)`, `C:\src\Cart.cs`, 42).
fn source_of_net(rest: &str) -> Option<(&str, &str, i64)> {
    let (before, line) = rest.rsplit_once(":line ")?;
    let (call, file) = before.split_once(") in ")?;
    Some((rest.get(..=call.len())?, file, line.trim().parse().ok()?))
}

/// `java.base@17.0.1/java.lang.Thread.run` → (`java.base`, `java.lang.Thread.run`). The name of a class loader may be in front. The slash in
/// the name of a hidden class does not separate a module.
fn split_module(name: &str) -> (&str, &str) {
    let (mut module, mut name) = ("", name);
    while let Some((before, after)) = name
        .split_once('/')
        .filter(|(before, _)| !before.contains('$'))
    {
        if !before.is_empty() {
            module = before;
        }
        name = after;
    }
    let module = module.split_once('@').map_or(module, |(module, _)| module);
    (module, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str) -> (String, String, String, i64, bool) {
        let frame = frame(line).unwrap();
        (
            frame.class.to_string(),
            frame.function.to_string(),
            frame.file.to_string(),
            frame.line,
            frame.native,
        )
    }

    #[test]
    fn frames_of_the_jvm_are_parsed() {
        let cases = [
            (
                "com.example.Cart.pay(Cart.kt:42)",
                ("com.example.Cart", "pay", "Cart.kt", 42, false),
            ),
            (
                "com.example.Cart.<init>(Cart.java)",
                ("com.example.Cart", "<init>", "Cart.java", 0, false),
            ),
            (
                "android.os.MessageQueue.nativePollOnce(Native Method)",
                ("android.os.MessageQueue", "nativePollOnce", "", 0, true),
            ),
            (
                "android.os.MessageQueue.nativePollOnce(Native method)",
                ("android.os.MessageQueue", "nativePollOnce", "", 0, true),
            ),
            ("a.b.c(Unknown Source:12)", ("a.b", "c", "", 12, false)),
            ("a.b.c(SourceFile:5)", ("a.b", "c", "SourceFile", 5, false)),
            (
                "com.example.Cart$$Lambda/0x0000ab.run(Unknown Source)",
                ("com.example.Cart$$Lambda/0x0000ab", "run", "", 0, false),
            ),
            (
                "com.example.Cart.lambda$pay$0(Cart.java:7) ~[cart.jar:1.0]",
                ("com.example.Cart", "lambda$pay$0", "Cart.java", 7, false),
            ),
            (
                "Shop.Cart.Pay(Int32 amount) in C:\\Program Files (x86)\\shop\\Cart.cs:line 42",
                (
                    "Shop.Cart",
                    "Pay",
                    "C:\\Program Files (x86)\\shop\\Cart.cs",
                    42,
                    false,
                ),
            ),
            (
                "Shop.Cart.Pay(Int32 amount, String name)",
                ("Shop.Cart", "Pay", "", 0, false),
            ),
            (
                "com.example.Cart.pay(My File.kt)",
                ("com.example.Cart", "pay", "My File.kt", 0, false),
            ),
            (
                "com.example.Cart.pay(My File.kt:42)",
                ("com.example.Cart", "pay", "My File.kt", 42, false),
            ),
            (
                "Shop.Cart..ctor(Int32 amount)",
                ("Shop.Cart", "ctor", "", 0, false),
            ),
            (
                "Shop.Cart..cctor() in /src/Cart.cs:line 7",
                ("Shop.Cart", "cctor", "/src/Cart.cs", 7, false),
            ),
            (
                "Shop.Cart.<PayAsync>d__5.MoveNext() in /src/Cart.cs:line 7",
                (
                    "Shop.Cart.<PayAsync>d__5",
                    "MoveNext",
                    "/src/Cart.cs",
                    7,
                    false,
                ),
            ),
        ];
        for (line, (class, function, file, number, native)) in cases {
            assert_eq!(
                parts(line),
                (class.into(), function.into(), file.into(), number, native),
                "{line}"
            );
        }
    }

    #[test]
    fn the_module_of_a_class_is_separated() {
        let cases = [
            (
                "java.base@17.0.1/java.lang.Thread.run(Thread.java:840)",
                "java.base",
            ),
            ("app//com.example.Cart.pay(Cart.kt:42)", "app"),
            ("app/shop@1.2/com.example.Cart.pay(Cart.kt:42)", "shop"),
        ];
        for (line, module) in cases {
            let frame = frame(line).unwrap();
            assert_eq!(frame.module.as_str(), module);
            let classes = ["java.lang.Thread", "com.example.Cart"];
            assert!(classes.contains(&frame.class.as_str()), "{line}");
        }
    }

    #[test]
    fn elements_without_at_are_frames() {
        for line in [
            "android.os.MessageQueue.nativePollOnce(Native Method)",
            "com.example.Cart.pay(Cart.kt:42)",
            "com.example.Cart.<init>(Cart.java)",
            "com.example.Cart$$Lambda/0x0000ab.run(Unknown Source)",
            "com.example.-$$Lambda$Cart$Xy.run(Unknown Source:4)",
            "com.example.Cart$$ExternalSyntheticLambda0.run(D8$$SyntheticClass:0)",
            "a.b.c(r8-map-id-5a7d1b0c:12)",
            "a.b.c(SourceFile:5)",
            "a.b.c(PG:12)",
            "a.b.c(:12)",
            "app//com.example.Cart.pay(Cart.kt:42)",
            "java.base@17.0.1/java.lang.Thread.run(Thread.java:840)",
        ] {
            let read = element(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(Some(read), frame(line), "{line}");
        }
    }

    #[test]
    fn calls_and_prose_are_no_elements() {
        for line in [
            "Cart.pay(_:)",
            "view.frame(width:100)",
            "cart.add(item.price)",
            "cart.pay()",
            "Shop.Cart.Pay(Int32 amount)",
            "see com.example.Cart.pay(Cart.kt:42)",
            "com.example.Cart.pay(Cart.kt:42) failed",
            "java.lang.IllegalStateException: com.example.Cart.pay(Cart.kt:42)",
            "com.example.CartTest.pays (twice)(CartTest.kt:3)",
            "pay(Cart.kt:42)",
            "(Cart.kt:42)",
            "https://shop.example.com/v2.app(Cart.kt:42)",
            ")(",
        ] {
            assert_eq!(element(line), None, "{line}");
        }
    }

    #[test]
    fn paths_of_scripts_are_no_frames() {
        let paths = [
            "https://shop.example.com/app/(shop)/page-1a2b3c.js:1:2345",
            "https://shop.example.com/v2.app(shop)/page.js:1:2345",
            "./src/shop.v2/(cart)/page.js:42:7",
            "./src/shop.v2(cart)/page.js:42:7",
            "webpack-internal:///(app-pages-browser)/./src/cart.js:42:7",
        ];
        for path in paths {
            assert_eq!(frame(path), None, "{path}");
        }
    }
}
