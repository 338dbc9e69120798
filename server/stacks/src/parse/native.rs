//! Native code: Android tombstones, gdb, lldb and Rust backtraces.

use unjank_protocol::Frame;

use super::location::{file_and_line, has_line, known, leading_number, number, without_offset};

/// Images of compiled Java. Their functions are named by class and method.
const JAVA_IMAGES: [&str; 6] = [".odex", ".oat", ".vdex", ".dex", ".jar", ".apk"];

/// Parses `#00 pc 000000000004f9a8  /system/lib64/libc.so (__epoll_pwait+8) (BuildId: 3f2a…)`.
pub(super) fn tombstone(line: &str) -> Option<Frame<'_>> {
    let (_, rest) = leading_number(line.strip_prefix('#')?)?;
    let (address, rest) = rest
        .trim_start()
        .strip_prefix("pc ")?
        .trim_start()
        .split_once(' ')?;
    let offset = u64::from_str_radix(address, 16).ok()?;
    let (rest, build_id) = match rest.split_once(" (BuildId: ") {
        Some((rest, build_id)) => (rest, build_id.trim_end().trim_end_matches(')')),
        None => (rest, ""),
    };
    let (module, symbol) = rest.trim().split_once(" (").unwrap_or((rest.trim(), ""));
    // The offset of a library within an archive precedes the symbol.
    let symbol = match symbol.strip_prefix("offset ") {
        Some(offset) => offset.split_once(" (").map_or("", |(_, symbol)| symbol),
        None => symbol,
    };
    let function = without_offset(symbol.strip_suffix(')').unwrap_or(symbol));
    let java = JAVA_IMAGES.iter().any(|ending| module.ends_with(ending));
    let (class, function) = match function.rsplit_once('.') {
        Some(parts) if java => parts,
        _ => ("", function),
    };
    Some(Frame {
        class: class.into(),
        module: module.into(),
        function: known(function).into(),
        build_id: build_id.into(),
        offset: Some(offset),
        native: !java,
        ..Frame::default()
    })
}

/// Parses `#0  0x00007ffff7e5a in pay (amount=3) at cart.c:42` and `#1  main () from /lib/libc.so.6`.
pub(super) fn gdb(line: &str) -> Option<Frame<'_>> {
    let (_, rest) = leading_number(line.strip_prefix('#')?)?;
    let rest = rest.trim_start();
    let rest = match rest.split_once(" in ") {
        Some((address, rest)) if address.starts_with("0x") => rest,
        _ => rest,
    };
    let (function, after) = rest.split_once(" (")?;
    let source = after.rsplit_once(") at ").map(|(_, source)| source);
    let (file, line) = source.map_or(("", 0), file_and_line);
    let module = after
        .rsplit_once(") from ")
        .map_or("", |(_, module)| module);
    Some(Frame {
        module: module.into(),
        function: known(function).into(),
        file: file.into(),
        line,
        ..Frame::default()
    })
}

/// Parses ``frame #0: 0x000000010000 Shop`-[Cart pay](self=0x01) at Cart.m:42:5``.
pub(super) fn lldb(line: &str) -> Option<Frame<'_>> {
    let rest = line
        .strip_prefix("* ")
        .unwrap_or(line)
        .trim_start()
        .strip_prefix("frame #")?;
    let (_, rest) = leading_number(rest)?;
    let rest = rest.strip_prefix(':')?.trim_start();
    let rest = match rest.split_once(' ') {
        Some((address, rest)) if address.starts_with("0x") => rest,
        _ => rest,
    };
    let (module, symbol) = rest.split_once('`')?;
    let (symbol, location) = match symbol.rsplit_once(" at ") {
        Some((symbol, location)) if has_line(location) => (symbol, location),
        _ => (symbol, ""),
    };
    let (file, line) = file_and_line(location);
    let symbol = without_offset(symbol);
    // Removes arguments with values, which differ between samples, but keeps signatures.
    let function = symbol
        .split_once('(')
        .filter(|(_, arguments)| arguments.contains('='))
        .map_or(symbol, |(name, _)| name);
    Some(Frame {
        module: module.trim().into(),
        function: known(function).into(),
        file: file.into(),
        line,
        ..Frame::default()
    })
}

/// Parses `3: shop::cart::pay` and `3:     0x55d6e9a8 - shop::cart::pay::h0123456789abcdef`.
pub(super) fn rust(line: &str) -> Option<Frame<'_>> {
    let (_, rest) = leading_number(line)?;
    let rest = rest.strip_prefix(": ")?.trim_start();
    let (offset, function) = match rest.split_once(" - ") {
        Some((address, function)) if address.starts_with("0x") => (number(address), function),
        _ => (None, rest),
    };
    let named = !function.is_empty() && !function.starts_with(|c: char| c.is_ascii_digit());
    named.then(|| Frame {
        function: known(function.trim()).into(),
        offset,
        ..Frame::default()
    })
}

/// Parses the line below a frame of a Rust backtrace: `at ./src/cart.rs:42:7`.
pub(super) fn rust_source(line: &str) -> Option<(&str, i64)> {
    let location = line.strip_prefix("at ")?;
    has_line(location).then(|| file_and_line(location))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_tombstones_are_parsed() {
        let cases = [
            (
                "#00 pc 000000000004f9a8  /system/lib64/libc.so (__epoll_pwait+8) (BuildId: 3f2a)",
                ("/system/lib64/libc.so", "", "__epoll_pwait", "3f2a"),
            ),
            (
                "#01 pc 0001a  /data/app/base.apk!libcart.so (offset 0x1000) (Cart::pay(int, char)+124)",
                (
                    "/data/app/base.apk!libcart.so",
                    "",
                    "Cart::pay(int, char)",
                    "",
                ),
            ),
            (
                "#02 pc 0001a  /data/app/oat/arm64/base.odex (com.example.Cart.pay+12)",
                (
                    "/data/app/oat/arm64/base.odex",
                    "com.example.Cart",
                    "pay",
                    "",
                ),
            ),
            (
                "#03 pc 0001a  /data/app/lib/libcart.so",
                ("/data/app/lib/libcart.so", "", "", ""),
            ),
        ];
        for (line, (module, class, function, build_id)) in cases {
            let frame = tombstone(line).unwrap();
            let read = (
                frame.module.as_str(),
                frame.class.as_str(),
                frame.function.as_str(),
                frame.build_id.as_str(),
            );
            assert_eq!(read, (module, class, function, build_id), "{line}");
            assert!(frame.offset.is_some());
        }
    }

    #[test]
    fn frames_of_debuggers_are_parsed() {
        let cases = [
            (
                gdb("#0  0x00007ffff7e5a in pay (amount=3) at src/cart.c:42"),
                ("", "pay", "src/cart.c", 42),
            ),
            (gdb("#1  main () at main.c:3"), ("", "main", "main.c", 3)),
            (
                gdb("#2  0x00007ffff7e5a in ?? () from /lib/libc.so.6"),
                ("/lib/libc.so.6", "", "", 0),
            ),
            (
                lldb("* frame #0: 0x00000001b9 libsystem_kernel.dylib`mach_msg2_trap + 8"),
                ("libsystem_kernel.dylib", "mach_msg2_trap", "", 0),
            ),
            (
                lldb(
                    "frame #1: 0x0000000100 Shop`-[Cart pay](self=0x01, _cmd=\"pay\") at Cart.m:42:5",
                ),
                ("Shop", "-[Cart pay]", "Cart.m", 42),
            ),
            (
                lldb("frame #2: 0x0000000100 Shop`Cart::total(int) const at cart.cpp:7"),
                ("Shop", "Cart::total(int) const", "cart.cpp", 7),
            ),
            (rust("3: shop::cart::pay"), ("", "shop::cart::pay", "", 0)),
            (
                rust("3:     0x55d6e9a8 - shop::cart::pay::h0123456789abcdef"),
                ("", "shop::cart::pay::h0123456789abcdef", "", 0),
            ),
        ];
        for (frame, (module, function, file, line)) in cases {
            let frame = frame.unwrap();
            assert_eq!(
                (
                    frame.module.as_str(),
                    frame.function.as_str(),
                    frame.file.as_str(),
                    frame.line
                ),
                (module, function, file, line)
            );
        }
        assert_eq!(
            rust_source("at ./src/cart.rs:42:7"),
            Some(("./src/cart.rs", 42))
        );
    }
}
