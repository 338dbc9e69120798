//! Dart: `#0      Cart.pay (package:shop/src/cart.dart:42:7)`.

use unjank_protocol::Frame;

use super::location::{file_and_line, leading_number};

/// Parses a frame with its number.
pub(super) fn frame(line: &str) -> Option<Frame<'_>> {
    let (_, rest) = leading_number(line.strip_prefix('#')?)?;
    let (name, location) = rest.trim().strip_suffix(')')?.rsplit_once(" (")?;
    let (path, line) = file_and_line(location);
    let of_dart = ["package:", "dart:"]
        .iter()
        .any(|scheme| path.starts_with(scheme))
        || path.ends_with(".dart");
    if !of_dart || name.is_empty() {
        return None;
    }
    let (class, function) = split_class(name);
    let (module, file) = match path
        .rfind('/')
        .and_then(|slash| path.split_at_checked(slash + 1))
    {
        Some((folder, file)) => (folder, file),
        // A path without a file, such as `dart:core`.
        None => (path, ""),
    };
    Some(Frame {
        class: class.into(),
        module: module.into(),
        function: function.into(),
        file: file.into(),
        line,
        ..Frame::default()
    })
}

/// `Cart.pay` → (`Cart`, `pay`). Constructors and closures of top-level functions have no class.
fn split_class(name: &str) -> (&str, &str) {
    match name.split_once('.') {
        Some((class, function)) if !class.starts_with("new ") && !function.starts_with('<') => {
            (class, function)
        }
        _ => ("", name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_dart_are_parsed() {
        let cases = [
            (
                "#0      Cart.pay (package:shop/src/cart.dart:42:7)",
                ("Cart", "pay", "package:shop/src/", "cart.dart", 42),
            ),
            (
                "#12     _CartState.build.<anonymous closure> (package:shop/cart.dart:9:3)",
                (
                    "_CartState",
                    "build.<anonymous closure>",
                    "package:shop/",
                    "cart.dart",
                    9,
                ),
            ),
            (
                "#1      main.<anonymous closure> (file:///shop/lib/main.dart:3:1)",
                (
                    "",
                    "main.<anonymous closure>",
                    "file:///shop/lib/",
                    "main.dart",
                    3,
                ),
            ),
            (
                "#2      new Cart (package:shop/cart.dart:5)",
                ("", "new Cart", "package:shop/", "cart.dart", 5),
            ),
            (
                "#3      _invoke1 (dart:ui/hooks.dart:332:13)",
                ("", "_invoke1", "dart:ui/", "hooks.dart", 332),
            ),
        ];
        for (line, (class, function, module, file, number)) in cases {
            let frame = frame(line).unwrap();
            let read = (
                frame.class.as_str(),
                frame.function.as_str(),
                frame.module.as_str(),
                frame.file.as_str(),
                frame.line,
            );
            assert_eq!(read, (class, function, module, file, number));
        }
        assert_eq!(frame("#0  pay (amount=3) at cart.c:42"), None);
    }
}
