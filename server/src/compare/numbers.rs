//! Formats numbers for people, by the unit of their metric.

use super::{Metric, Row};

/// Returns a text such as `412 ms`, `58.2 fps` or `1.4 %`.
pub(super) fn value(metric: Metric, value: f64) -> String {
    match metric.nature().unit {
        "share" => format!("{} %", digits(value * 100.0)),
        "bytes" => bytes(value),
        unit => format!("{} {unit}", digits(value)),
    }
}

/// Formats a change with its sign.
pub(super) fn change(metric: Metric, by: f64) -> String {
    let size = value(metric, by.abs());
    match by {
        _ if by > 0.0 => format!("+{size}"),
        _ if by < 0.0 => format!("−{size}"),
        _ => size,
    }
}

pub(super) fn percent(row: &Row) -> String {
    match row.change_percent() {
        Some(percent) if percent > 0.0 => format!("+{} %", digits(percent)),
        Some(percent) if percent < 0.0 => format!("−{} %", digits(-percent)),
        Some(_) => "0 %".to_owned(),
        None => "–".to_owned(),
    }
}

pub(super) fn p(p: f64) -> String {
    if p < 0.001 {
        "< 0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}

/// Formats with about three significant digits.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// Formats in binary units, as is usual for memory.
fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes, 0);
    while value >= 1_023.95 && unit < UNITS.len() - 1 {
        value /= 1_024.0;
        unit += 1;
    }
    let places = usize::from(unit > 0 && value < 100.0);
    format!("{value:.places$} {}", UNITS[unit])
}
