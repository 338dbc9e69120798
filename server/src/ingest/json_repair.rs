//! Repairs of JSON that clients in other languages write, so that a bad character costs a character and not the batch. The texts of columns are
//! repaired in their own crate.
//!
//! Only bodies that cannot be read as they are get repaired. In bodies from people and their tools, only characters are repaired: there, a
//! bad escape or a `NaN` is a mistake.

use std::cell::OnceCell;

/// A request's body. It is repaired when the repaired body is first needed.
#[derive(Debug)]
pub struct Body<'b> {
    json: &'b [u8],
    repaired: OnceCell<Option<String>>,
    mended: OnceCell<Option<Vec<u8>>>,
}

impl<'b> Body<'b> {
    #[must_use]
    pub fn new(json: &'b [u8]) -> Self {
        Self {
            json,
            repaired: OnceCell::new(),
            mended: OnceCell::new(),
        }
    }

    #[must_use]
    pub fn bytes(&self) -> &'b [u8] {
        self.json
    }

    /// The body as it is. `None` if it is not UTF-8.
    #[must_use]
    pub fn as_sent(&self) -> Option<&'b str> {
        std::str::from_utf8(self.json).ok()
    }

    /// The repaired body. `None` if there is nothing to repair.
    #[must_use]
    pub fn repaired(&self) -> Option<&str> {
        let text = self.repaired.get_or_init(|| repaired(self.json, false));
        text.as_deref()
    }

    /// The body, which is a columnar batch, with texts that are texts. `None` if it is damaged.
    #[must_use]
    pub fn mended_columns(&self) -> Option<&[u8]> {
        let columns = self
            .mended
            .get_or_init(|| unjank_columns::mended(self.json));
        columns.as_deref()
    }

    /// The body with half characters and bytes that are not UTF-8 replaced, and without a byte order mark. `None` if it has none of these.
    #[must_use]
    pub fn with_whole_characters(&self) -> Option<String> {
        repaired(self.json, true)
    }
}

/// Replaces what is not JSON or not text. The result has at most four times as many bytes.
///
/// * Bytes that are not UTF-8, halves of surrogate pairs and control characters become U+FFFD.
/// * Tabs, line feeds and backslashes in texts become their escapes.
/// * `NaN`, `Infinity`, the other forms that languages have for them (`-nan`, `Inf`, `1.#IND`), and numbers that are too large (`1e999`)
///   become `null` or, in a sample rate or a double of OTLP, `"NaN"` and `"Infinity"`.
/// * Whole numbers with a fraction or an exponent, and -0, become their digits. Numbers lose a plus sign.
///
/// If `only_characters` is set, replaces only bytes that are not UTF-8 and halves of surrogate pairs.
fn repaired(json: &[u8], only_characters: bool) -> Option<String> {
    let sent = String::from_utf8_lossy(json);
    let text = sent.strip_prefix('\u{feff}').unwrap_or(&sent);
    let mut repair = Repair {
        text,
        only_characters,
        at: 0,
        copied: 0,
        out: String::new(),
    };
    while let Some(byte) = text.as_bytes().get(repair.at) {
        match byte {
            b'"' => repair.string(),
            b'-' | b'+' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' if !only_characters => {
                repair.scalar();
            }
            _ => repair.at += 1,
        }
    }
    let is_same = repair.copied == 0 && text.len() == json.len() && text.as_bytes() == json;
    let rest = text.get(repair.copied..).unwrap_or_default();
    (!is_same).then(|| repair.out + rest)
}

struct Repair<'t> {
    text: &'t str,
    only_characters: bool,
    at: usize,
    /// How much of the text has been copied to `out`.
    copied: usize,
    out: String,
}

impl Repair<'_> {
    /// Replaces the next `length` bytes.
    fn replace(&mut self, length: usize, by: &str) {
        let before = self.text.get(self.copied..self.at).unwrap_or_default();
        self.out.push_str(before);
        self.out.push_str(by);
        self.at += length;
        self.copied = self.at;
    }

    /// Reads a text with its quotes.
    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'"' => {
                    self.at += 1;
                    return;
                }
                b'\\' => self.escape(),
                _ if self.only_characters => self.at += 1,
                b'\t' => self.replace(1, "\\t"),
                b'\n' => self.replace(1, "\\n"),
                b'\r' => self.replace(1, "\\r"),
                0..0x20 => self.replace(1, "\u{fffd}"),
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) {
        match self.text.as_bytes().get(self.at + 1) {
            Some(b'u') => {}
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                return;
            }
            _ => return self.bad_escape(),
        }
        match (self.code_unit(self.at), self.code_unit(self.at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => self.at += 12,
            (Some(0xd800..=0xdfff), _) => self.replace(6, "\\ufffd"),
            (Some(_), _) => self.at += 6,
            (None, _) => self.bad_escape(),
        }
    }

    /// Keeps the backslash of an escape that JSON does not have.
    fn bad_escape(&mut self) {
        if self.only_characters {
            self.at += 1;
        } else {
            self.replace(1, "\\\\");
        }
    }

    /// The UTF-16 code unit of the escape at a place.
    fn code_unit(&self, at: usize) -> Option<u16> {
        let digits = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    }

    /// Whether the next scalar is the value of a member that also takes the text of a number. A missing sample rate is 1, so `null` would
    /// count wrong; in OTLP, a double that is not finite is a text.
    fn is_quoted_number(&self) -> bool {
        let before = self.text.get(self.copied..self.at).unwrap_or_default();
        let name = before.trim_end().strip_suffix(':').map(str::trim_end);
        let is_one = |name: &str| {
            ["\"sample_rate\"", "\"doubleValue\""]
                .iter()
                .any(|one| name.ends_with(one))
        };
        name.is_some_and(is_one)
    }

    /// Reads a number or a word.
    fn scalar(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let is_end =
            |char: char| !char.is_ascii_alphanumeric() && !matches!(char, '-' | '+' | '.' | '#');
        let length = rest.find(is_end).unwrap_or(rest.len());
        let (scalar, after) = rest.split_at_checked(length).unwrap_or_default();
        if let Some(name) = not_finite(scalar) {
            let by = match self.is_quoted_number() {
                true => format!("\"{name}\""),
                false => "null".to_owned(),
            };
            return self.replace(length + note_length(after), &by);
        }
        let unsigned = scalar.strip_prefix('+').unwrap_or_default();
        if unsigned.starts_with(|char: char| char.is_ascii_digit()) {
            return self.replace("+".len(), "");
        }
        match whole(scalar) {
            Some(digits) => self.replace(length, &digits),
            None => self.at += length.max(1),
        }
    }
}

/// The name of a number that is not finite, or of one that is too large: `-nan`, `Inf`, `1e999`.
fn not_finite(number: &str) -> Option<&'static str> {
    // Older C libraries of Windows write `1.#INF` and `-1.#IND`.
    let value = match number.contains(".#") {
        true => f64::NAN,
        false => number.parse().ok()?,
    };
    match value {
        _ if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

/// The length of the note that C libraries of Windows write after a number that is none: `-nan(ind)`.
fn note_length(after: &str) -> usize {
    let note = after.strip_prefix('(').unwrap_or_default();
    let length = note.find(|char: char| !char.is_ascii_alphanumeric());
    let closed = length.filter(|length| note.as_bytes().get(*length) == Some(&b')'));
    closed.map_or(0, |length| length + "()".len())
}

/// The digits of a whole number that is written with a fraction or an exponent, or as -0: 41250.0, 4.125e4.
fn whole(number: &str) -> Option<String> {
    /// From here on, floating-point numbers are not exact, and no field holds larger numbers.
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    if number == "-0" {
        return Some("0".to_owned());
    }
    if let Some((digits, fraction)) = number.split_once('.')
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte == b'0')
    {
        let digits = if digits == "-0" { "0" } else { digits };
        return Some(digits.to_owned());
    }
    let value: f64 = number
        .contains(['.', 'e', 'E'])
        .then(|| number.parse().ok())??;
    let is_whole = value.fract() == 0.0 && value.abs() <= LARGEST;
    is_whole.then(|| format!("{:.0}", value + 0.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn repaired_text(json: &str) -> String {
        repaired(json.as_bytes(), false).unwrap_or_else(|| json.to_owned())
    }

    #[test]
    fn a_bad_character_costs_a_character() {
        for (sent, read) in [
            (r#"["Cart \ud83d"]"#, r#"["Cart \ufffd"]"#),
            (r#"["\ude00 cart"]"#, r#"["\ufffd cart"]"#),
            (r#"["\ud83d\ud83d\ude00"]"#, r#"["\ufffd\ud83d\ude00"]"#),
            (r#"["\uD83Dx"]"#, r#"["\ufffdx"]"#),
            (r#"["\\ud83d"]"#, r#"["\\ud83d"]"#),
            (r#"["\ud83d\ude00"]"#, r#"["\ud83d\ude00"]"#),
            ("[\"a\tb\nc\r\0\"]", "[\"a\\tb\\nc\\r\u{fffd}\"]"),
            (r#"["C:\Users\x\u12"]"#, r#"["C:\\Users\\x\\u12"]"#),
            ("\u{feff}{}", "{}"),
            ("[NaN, -Infinity,Infinity]", "[null, null,null]"),
            (
                r#"[{"sample_rate": NaN}, {"doubleValue" :-Infinity}, {"rate":NaN}]"#,
                r#"[{"sample_rate": "NaN"}, {"doubleValue" :"-Infinity"}, {"rate":null}]"#,
            ),
            (r#"["NaN", "1.0"]"#, r#"["NaN", "1.0"]"#),
            (
                "[nan, -nan, inf, -inf, NAN, +Inf, -nan(ind), 1.#QNAN, -1e999]",
                "[null, null, null, null, null, null, null, null, null]",
            ),
            (
                r#"[{"sample_rate":-nan(ind)},{"doubleValue":-inf},{"doubleValue":1e999}]"#,
                r#"[{"sample_rate":"NaN"},{"doubleValue":"-Infinity"},{"doubleValue":"Infinity"}]"#,
            ),
            (
                "[true, false, null, nancy, nan(, nan(a, nan(a b), +, e5]",
                "[true, false, null, nancy, null(, null(a, null(a b), +, e5]",
            ),
            (
                "[41250.0, -3.00, 4.125e4, 1E+3, +5, +5.0, +0.5]",
                "[41250, -3, 41250, 1000, 5, 5, 0.5]",
            ),
            (
                "[41250.5, 1e-999, 1e-3, 0.0, -0.0]",
                "[41250.5, 0, 1e-3, 0, 0]",
            ),
            ("[18446744073709551615.0]", "[18446744073709551615]"),
            ("[-0, -05, \"-0\"]", "[0, -05, \"-0\"]"),
        ] {
            assert_eq!(repaired_text(sent), read, "{sent}");
        }
        for only_characters in [false, true] {
            let sent = b"[\"caf\xc3\", \"\xed\xa0\xbd\"]";
            let cut = repaired(sent, only_characters).unwrap();
            assert!(cut.starts_with("[\"caf\u{fffd}\", \"\u{fffd}"), "{cut}");
        }
    }

    #[test]
    fn mistakes_of_people_stay() {
        let whole = |json: &str| Body::new(json.as_bytes()).with_whole_characters();
        assert_eq!(
            whole(r#"["\d \ud83d", "\ud83d\ude00"]"#),
            Some(r#"["\d \ufffd", "\ud83d\ude00"]"#.to_owned())
        );
        assert_eq!(whole("\u{feff}[NaN, 2.0]"), Some("[NaN, 2.0]".to_owned()));
        for same in [
            r#"["\d+\b", "\u12", NaN, 1.0, -0]"#,
            "[\"a\tb\nc\0\"]",
            r#"["\\ud83d"]"#,
        ] {
            assert_eq!(whole(same), None, "{same}");
        }
    }

    proptest! {
        #[test]
        fn json_keeps_its_meaning(texts in any::<Vec<String>>(), number in any::<f64>(), whole in any::<i64>()) {
            let value = serde_json::json!({"texts": texts, "number": number, "whole": whole, "half": 0.5});
            let json = value.to_string();
            let read: serde_json::Value = serde_json::from_str(&repaired_text(&json)).unwrap();
            prop_assert_eq!(&read["texts"], &value["texts"]);
            prop_assert_eq!(&read["whole"], &value["whole"]);
            prop_assert_eq!(read["number"].as_f64(), value["number"].as_f64());
        }

        #[test]
        fn nothing_panics(bytes in any::<Vec<u8>>(), likely in "[\\\\ud8c\"0-9.eNnaif#(){}\\[\\], ]{0,40}") {
            for only_characters in [false, true] {
                repaired(&bytes, only_characters);
                repaired(likely.as_bytes(), only_characters);
            }
        }
    }
}
