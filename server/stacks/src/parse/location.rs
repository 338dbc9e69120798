//! Parsers of elements that several formats share.

/// `Cart.kt:42:7` → (`Cart.kt`, 42). The column is optional, and so is the line, which is then 0.
pub(super) fn file_and_line(location: &str) -> (&str, i64) {
    let (first, last) = split_number(location);
    let Some(last) = last else {
        return (location, 0);
    };
    match split_number(first) {
        (file, Some(line)) => (file, line),
        (file, None) => (file, last),
    }
}

/// Whether a location ends in a line, with or without a column.
pub(super) fn has_line(location: &str) -> bool {
    split_number(location).1.is_some()
}

/// Whether a location ends in a line and a column.
pub(super) fn has_column(location: &str) -> bool {
    let (first, column) = split_number(location);
    column.is_some() && has_line(first)
}

fn split_number(text: &str) -> (&str, Option<i64>) {
    match text
        .rsplit_once(':')
        .map(|(before, number)| (before, number.parse::<u32>()))
    {
        Some((before, Ok(number))) => (before, Some(i64::from(number))),
        _ => (text, None),
    }
}

/// Removes the offset from `name + 44` and `name+44`.
pub(super) fn without_offset(name: &str) -> &str {
    let Some((before, offset)) = name.rsplit_once('+') else {
        return name;
    };
    if number(offset.trim()).is_some() {
        before.trim_end()
    } else {
        name
    }
}

/// Parses a decimal number, or a hexadecimal one with `0x`.
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `12  rest` → (12, `rest`).
pub(super) fn leading_number(text: &str) -> Option<(usize, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, rest))
}

/// Returns an empty name for a function that the debugger could not name.
pub(super) fn known(function: &str) -> &str {
    match function {
        "??" | "???" | "<unknown>" | "<redacted>" => "",
        name => name,
    }
}
