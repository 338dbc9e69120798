//! Texts of devices and people in statements that have no parameters.

/// Returns a text as an SQL expression. It is hexadecimal, so it cannot break out of the statement.
pub(super) fn text(text: &str) -> String {
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("unhex('{hex}')")
}
