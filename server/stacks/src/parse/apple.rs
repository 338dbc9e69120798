//! iOS and macOS crash reports, and Kotlin/Native, which puts `at` in front: `3   Shop   0x0000000102e7c3f4 Cart.pay(_:) + 40 (Cart.swift:42)`.

use unjank_protocol::Frame;
use unjank_symbols::kotlin_native;

use super::location::{file_and_line, has_line, known, leading_number, number, without_offset};

/// Parses a frame with its number, image and address.
pub(super) fn frame(line: &str) -> Option<Frame<'_>> {
    let (_, rest) = leading_number(line)?;
    if !rest.starts_with([' ', '\t']) {
        return None;
    }
    // An image name may contain spaces, so the address marks its end.
    let at = rest.match_indices("0x").map(|(at, _)| at).find(|at| {
        let before = rest.get(..*at).unwrap_or_default();
        before.ends_with([' ', '\t']) && !before.trim().is_empty()
    })?;
    let (image, symbol) = rest.split_at_checked(at)?;
    let (address, symbol) = symbol.split_once(' ').unwrap_or((symbol, ""));
    number(address)?;
    let (symbol, file, line) = split_source(symbol.trim());
    let mut frame = Frame {
        module: image.trim().into(),
        file: file.into(),
        line,
        ..Frame::default()
    };
    // `0x102e7c000 + 12345`: not a symbol but the load address of the image and an offset into it.
    match symbol.rsplit_once(" + ") {
        Some((start, offset)) if start.starts_with("0x") => frame.offset = number(offset),
        _ => {
            let symbol = known(without_offset(symbol));
            let (class, function) = kotlin_native(symbol).unwrap_or(("", symbol));
            frame.class = class.into();
            frame.function = function.into();
        }
    }
    Some(frame)
}

/// `pay() + 40 (Cart.swift:42)` → (`pay() + 40`, `Cart.swift`, 42).
fn split_source(symbol: &str) -> (&str, &str, i64) {
    let source = symbol
        .strip_suffix(')')
        .and_then(|symbol| symbol.rsplit_once(" ("));
    match source {
        Some((symbol, location)) if has_line(location) && !location.ends_with(':') => {
            let (file, line) = file_and_line(location);
            (symbol, file, line)
        }
        _ => (symbol, "", 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_crash_reports_are_parsed() {
        let cases = [
            (
                "0   libsystem_kernel.dylib        \t0x00000001b9d21490 mach_msg2_trap + 8",
                ("libsystem_kernel.dylib", "mach_msg2_trap", "", 0, None),
            ),
            (
                "3   Shop                          \t0x0000000102e7c3f4 Cart.pay(_:) + 40 (Cart.swift:42)",
                ("Shop", "Cart.pay(_:)", "Cart.swift", 42, None),
            ),
            (
                "4   My Shop                       0x0000000102e7c3f4 -[Cart pay] + 44",
                ("My Shop", "-[Cart pay]", "", 0, None),
            ),
            (
                "5   Shop                          \t0x0000000102e7c3f4 0x102e78000 + 17396",
                ("Shop", "", "", 0, Some(17396)),
            ),
            (
                "6   Shop                          \t0x0000000102e7c3f4 closure #1 in Cart.pay(_:) + 12",
                ("Shop", "closure #1 in Cart.pay(_:)", "", 0, None),
            ),
            (
                "7   ???                           \t0x0000000000000000 ???",
                ("???", "", "", 0, None),
            ),
        ];
        for (line, (module, function, file, number, offset)) in cases {
            let frame = frame(line).unwrap();
            let read = (
                frame.module.as_str(),
                frame.function.as_str(),
                frame.file.as_str(),
                frame.line,
                frame.offset,
            );
            assert_eq!(read, (module, function, file, number, offset), "{line}");
        }
    }

    #[test]
    fn frames_of_kotlin_native_have_a_class() {
        let cases = [
            (
                "0   shop.kexe     0x0000000104b2f5a5 kfun:kotlin.Exception#<init>(kotlin.String?){} + 93 (/opt/buildAgent/work/Exceptions.kt:28:37)",
                (
                    "shop.kexe",
                    "kotlin.Exception",
                    "<init>",
                    "/opt/buildAgent/work/Exceptions.kt",
                    28,
                ),
            ),
            (
                "12  Shared        0x4213a5           kfun:com.example.Cart#pay(kotlin.Int;kotlin.collections.Map<kotlin.String,kotlin.Int>){}kotlin.Boolean + 44",
                ("Shared", "com.example.Cart", "pay", "", 0),
            ),
            (
                "3   shop.kexe     0x4213a5           kfun:#main(){} + 12 (main.kt:3:5)",
                ("shop.kexe", "", "main", "main.kt", 3),
            ),
            (
                "4   shop.kexe     0x4213a5           Konan_start + 108 (/opt/work/<compiler-generated>:1:1)",
                (
                    "shop.kexe",
                    "",
                    "Konan_start",
                    "/opt/work/<compiler-generated>",
                    1,
                ),
            ),
        ];
        for (line, (module, class, function, file, number)) in cases {
            let frame = frame(line).unwrap();
            let read = (
                frame.module.as_str(),
                frame.class.as_str(),
                frame.function.as_str(),
                frame.file.as_str(),
                frame.line,
            );
            assert_eq!(read, (module, class, function, file, number), "{line}");
        }
    }

    #[test]
    fn other_text_is_not_a_frame() {
        for line in ["0: shop::pay", "12 apples", "3   0x12 pay", "10 of 0xgreen"] {
            assert_eq!(frame(line), None, "{line}");
        }
    }
}
