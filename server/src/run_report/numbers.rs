//! Formats numbers with their units for people.

/// Returns a text such as `412 ms`, `1.24 s` or `3 min 20 s`.
pub(super) fn millis(ms: f64) -> String {
    match ms {
        _ if ms >= 60_000.0 => {
            let seconds = (ms / 1_000.0).round();
            let minutes = (seconds / 60.0).floor();
            format!("{minutes} min {} s", seconds - minutes * 60.0)
        }
        _ if ms >= 10_000.0 => format!("{:.1} s", ms / 1_000.0),
        _ if ms >= 1_000.0 => format!("{:.2} s", ms / 1_000.0),
        _ if ms >= 10.0 || ms.fract() == 0.0 => format!("{ms:.0} ms"),
        _ if ms >= 0.1 => format!("{ms:.1} ms"),
        _ => format!("{:.0} µs", ms * 1_000.0),
    }
}

pub(super) fn micros(us: f64) -> String {
    millis(us / 1_000.0)
}

/// Formats in binary units, as is usual for memory.
pub(super) fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes.abs(), 0);
    while value >= 1_023.95 && unit < UNITS.len() - 1 {
        value /= 1_024.0;
        unit += 1;
    }
    let sign = if bytes < 0.0 { "−" } else { "" };
    let digits = usize::from(unit > 0 && value < 100.0);
    format!("{sign}{value:.digits$} {}", UNITS[unit])
}

/// Adds a `+` to positive numbers.
pub(super) fn growth(by: f64) -> String {
    if by > 0.0 {
        format!("+{}", bytes(by))
    } else {
        bytes(by)
    }
}

pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        _ if percent == 0.0 => "0 %".to_owned(),
        _ if percent < 0.1 => "< 0.1 %".to_owned(),
        _ if percent < 10.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// Separates thousands with a thin space. Weighted counts are not always whole numbers.
pub(super) fn count(count: f64) -> String {
    let whole = format!("{:.0}", count.abs());
    let mut text = String::with_capacity(whole.len() + 4);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Returns a text such as `1 jank` or `2 janks`.
pub(super) fn plural(number: f64, name: &str) -> String {
    let shown = count(number);
    let end = if shown == "1" { "" } else { "s" };
    format!("{shown} {name}{end}")
}

/// Formats a number without a known unit.
pub(super) fn value(value: f64) -> String {
    match value.abs() {
        size if size >= 1_000.0 || value.fract() == 0.0 => {
            let sign = if value < 0.0 { "−" } else { "" };
            format!("{sign}{}", count(value))
        }
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_readable_precision() {
        let times = [0.004, 0.25, 7.0, 412.4, 1_240.0, 12_345.0, 200_000.0].map(millis);
        assert_eq!(
            times,
            [
                "4 µs",
                "0.2 ms",
                "7 ms",
                "412 ms",
                "1.24 s",
                "12.3 s",
                "3 min 20 s"
            ]
        );
        let sizes = [0.0, 1_023.0, 1_024.0, 5_500_000.0, 200_000_000.0, -3_000.0].map(bytes);
        assert_eq!(
            sizes,
            ["0 B", "1023 B", "1.0 KiB", "5.2 MiB", "191 MiB", "−2.9 KiB"]
        );
        assert_eq!(
            [0.0, 0.0004, 0.034, 0.5].map(percent),
            ["0 %", "< 0.1 %", "3.4 %", "50 %"]
        );
        assert_eq!(
            [7.0, 1_234.0, 1_234_567.0].map(count),
            ["7", "1\u{202f}234", "1\u{202f}234\u{202f}567"]
        );
        assert_eq!(growth(2_048.0), "+2.0 KiB");
    }
}
