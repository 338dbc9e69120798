//! Secrets in texts of JSON, found by the names of their members.
//!
//! The text may be cut off, as the limits of attributes cut it, so it is not parsed.

/// Replaces the values of secret members by `[secret]`. Returns `None` if there are none.
pub(super) fn without_secrets(json: &str, is_secret: impl Fn(&str) -> bool) -> Option<String> {
    let mut scan = Scan { json, at: 0 };
    let (mut out, mut copied) = (String::new(), 0);
    while let Some(name) = scan.next_member() {
        if !is_secret(name) {
            // The value is scanned, too: its members may be secret.
            continue;
        }
        let start = scan.at;
        scan.skip_value();
        let value = json.get(start..scan.at).unwrap_or_default();
        let value = value.trim_end();
        if is_literal(value) || matches!(value, "" | "\"\"" | "\"[secret]\"") {
            continue;
        }
        out.push_str(json.get(copied..start).unwrap_or_default());
        out.push_str("\"[secret]\"");
        copied = scan.at;
    }
    (copied > 0).then(|| out + json.get(copied..).unwrap_or_default())
}

/// Whether a value is too short to be a secret: `hasPassword: true`.
pub(super) fn is_literal(value: &str) -> bool {
    matches!(value, "null" | "true" | "false")
}

struct Scan<'t> {
    json: &'t str,
    at: usize,
}

impl<'t> Scan<'t> {
    fn rest(&self) -> &'t str {
        self.json.get(self.at..).unwrap_or_default()
    }

    /// Goes to the value of the next member. Returns the member's name.
    fn next_member(&mut self) -> Option<&'t str> {
        loop {
            self.at += self.rest().find('"')?;
            let name = self.skip_text();
            if let Some(value) = self.rest().trim_start().strip_prefix(':') {
                self.at = self.json.len() - value.trim_start().len();
                return Some(name);
            }
        }
    }

    /// Skips a text in quotes, and returns it without them.
    fn skip_text(&mut self) -> &'t str {
        let rest = self.rest().get(1..).unwrap_or_default();
        let mut is_escaped = false;
        let end = rest.find(|char: char| {
            let is_end = char == '"' && !is_escaped;
            is_escaped = char == '\\' && !is_escaped;
            is_end
        });
        let text = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.at += 1 + text.len() + usize::from(end.is_some());
        text
    }

    /// Skips a value and all of its members.
    fn skip_value(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.json.as_bytes().get(self.at) {
            match byte {
                b'"' => {
                    self.skip_text();
                    continue;
                }
                b',' | b'}' | b']' if depth == 0 => return,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn secret_members_lose_their_values_at_any_depth() {
        for (json, expected) in [
            (
                r#"{"password":"a","user":{"pin" : 1234, "name":"bob"}}"#,
                r#"{"password":"[secret]","user":{"pin" : "[secret]", "name":"bob"}}"#,
            ),
            (
                r#"[{"pin":{"a":[1,"}"],"b":{}}},{"pin":[1,2] }]"#,
                r#"[{"pin":"[secret]"},{"pin":"[secret]"}]"#,
            ),
            (r#"{"pin":"a\"b\\","n":1}"#, r#"{"pin":"[secret]","n":1}"#),
            (r#"{"pin":"12…"#, r#"{"pin":"[secret]""#),
        ] {
            let is_secret = |name: &str| matches!(name, "password" | "pin");
            assert_eq!(without_secrets(json, is_secret).as_deref(), Some(expected));
            assert_eq!(without_secrets(expected, is_secret), None, "{expected}");
        }
        for json in [
            "",
            "{}",
            r#"{"a":"pin","b":["pin"],"pin":null}"#,
            r#"{"pin":true,"b":{"pin":false}}"#,
            r#"{"pin":"""#,
            r#"{"pin"#,
        ] {
            assert_eq!(without_secrets(json, |name| name == "pin"), None, "{json}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics_and_json_stays_json(text in "[{}\\[\\]\":,\\\\apé ]{0,40}", key in "[a-z]{1,4}", value in any::<String>()) {
            without_secrets(&text, |_| true);
            let json = serde_json::json!({"a": {key: [value]}, "b": 1});
            let without = without_secrets(&json.to_string(), |name| name == "a").unwrap();
            let expected = serde_json::json!({"a": "[secret]", "b": 1});
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&without).unwrap(), expected);
        }
    }
}
