//! Formats a number with its unit.

/// `unit` is `us`, `ms`, `share` or `bytes`. A number of another unit has no unit in the text.
pub(super) fn amount(value: f64, unit: &str) -> String {
    match unit {
        "us" if value >= 1e6 => format!("{:.2} s", value / 1e6),
        "us" => format!("{:.1} ms", value / 1e3),
        "ms" if value >= 1e4 => format!("{:.2} s", value / 1e3),
        "ms" => format!("{value:.1} ms"),
        "share" => format!("{:.2} %", value * 100.0),
        "bytes" if value >= 1e9 => format!("{:.2} GB", value / 1e9),
        "bytes" if value >= 1e6 => format!("{:.1} MB", value / 1e6),
        "bytes" => format!("{:.1} kB", value / 1e3),
        _ => format!("{value}"),
    }
}
