//! Texts in files for spreadsheets, which run a text that begins like a formula.

use std::sync::LazyLock;

use regex::Regex;

/// The beginning of a formula. Spreadsheets skip blanks and invisible characters before a sign. ClickHouse applies this pattern to exports, and
/// the web interface has a copy of it.
pub(crate) const FORMULA: &str = r"^([\p{Z}\p{C}\p{M}]*[=+@＝＋－＠-]|[\t\r\n])";

/// Quotes a text (RFC 4180). A formula gets a leading apostrophe, so that a spreadsheet shows it as text.
pub(crate) fn cell(text: &str) -> String {
    static BEGINNING: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(FORMULA).expect("a pattern of this project"));
    let guard = if BEGINNING.is_match(text) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::{FORMULA, cell};

    #[test]
    fn texts_are_quoted_and_never_formulas() {
        assert_eq!(cell("a,\"b\""), "\"a,\"\"b\"\"\"");
        for formula in ["=1+1", " =1+1", "\u{200b}＝1", "\u{fe0f}=1", "-1", "\t1"] {
            assert_eq!(cell(formula), format!("\"'{formula}\""));
        }
        assert_eq!(cell("u-1"), "\"u-1\"");
    }

    #[test]
    fn the_web_interface_has_the_same_pattern() {
        let code = include_str!("../../dashboards/web/src/format/csv.ts");
        assert!(code.contains(&format!("/{FORMULA}/u")));
    }
}
