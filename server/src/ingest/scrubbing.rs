//! The scrubbing rules of a project: the built-in rules, unless they are off, and its own rules.

pub(super) mod built_in;
mod members;

use std::borrow::Cow;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use unjank_foundation::expressions::{ExpressionError, Expressions};
use unjank_foundation::fingerprint::fingerprint;
use utoipa::ToSchema;

use self::built_in::{Found, Kind};

/// Maximum number of rules of a project.
const MOST_RULES: usize = 20;
const MOST_PATTERN_CHARS: usize = 500;
const MOST_ATTRIBUTES: usize = 100;
const MOST_NAME_BYTES: usize = 128;
/// Maximum memory of all compiled patterns of a project, in bytes.
const BUDGET: usize = 64 << 10;
/// A text with more matches of a rule is replaced as a whole. Otherwise it could take very long, and become longer.
const MOST_MATCHES: usize = 8;
/// Replacements do not make a text longer than this, unless it is longer already.
const MOST_BYTES: usize = 1_024;
/// The bytes of a batch multiplied by the number of rules. Above this product, scrubbing would delay other requests.
const QUICK: usize = 128 << 10;
/// Patterns with more compiled memory than this may delay other requests.
const SLOW: usize = 8 << 10;

/// The rules by which texts of a project are scrubbed before they are stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = Scrubbing)]
pub struct ScrubbingDocument {
    /// Whether the built-in rules apply: query strings and user names of URLs, e-mail addresses, card and phone numbers, tokens and passwords.
    pub built_in: bool,
    /// Rules of the project, which apply first. At most 20.
    #[schema(max_items = 20)]
    #[serde(deserialize_with = "objects")]
    pub rules: Vec<ScrubbingRule>,
    /// Names of attributes, ignoring case, whose values are replaced by `[secret]`. At most 100.
    #[schema(max_items = 100)]
    pub secret_attributes: Vec<String>,
    /// Names of attributes whose values are stored as they are. At most 100.
    #[schema(max_items = 100)]
    pub plain_attributes: Vec<String>,
}

/// Reads a list of objects. Refuses an object that is written as an array of its values.
fn objects<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ScrubbingRule>, D::Error> {
    let objects = Vec::<Map<String, Value>>::deserialize(deserializer)?;
    let rules = objects
        .into_iter()
        .map(|object| ScrubbingRule::deserialize(Value::Object(object)));
    rules
        .collect::<Result<_, _>>()
        .map_err(serde::de::Error::custom)
}

/// Replaces each match of a pattern by the name in brackets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScrubbingRule {
    /// 1 to 32 of a-z, 0-9 and `_`.
    #[schema(pattern = "^[a-z0-9_]{1,32}$")]
    pub name: String,
    /// A regular expression of at most 500 characters, in the syntax of the Rust crate `regex`. It must not match an empty text. `[0-9]` takes
    /// less memory than `\d`.
    #[schema(min_length = 1, max_length = 500)]
    pub pattern: String,
}

impl Default for ScrubbingDocument {
    fn default() -> Self {
        Self {
            built_in: true,
            rules: Vec::new(),
            secret_attributes: Vec::new(),
            plain_attributes: Vec::new(),
        }
    }
}

/// Why a document is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ScrubbingError {
    #[error("there can be at most {0} {1}")]
    TooMany(usize, &'static str),
    #[error("`{0}` is not a rule name: use 1 to 32 characters of a-z, 0-9 and _")]
    Name(String),
    #[error("the pattern of `{0}` must have 1 to {MOST_PATTERN_CHARS} characters")]
    Length(String),
    #[error("the pattern of `{0}` {1}")]
    Pattern(String, ExpressionError),
    #[error("the pattern of `{0}` matches an empty text")]
    Empty(String),
    #[error("the name of an attribute must have 1 to {MOST_NAME_BYTES} bytes")]
    Attribute,
    #[error("the attribute `{0}` is both secret and plain")]
    Both(String),
}

/// A compiled document.
#[derive(Debug, Default)]
pub struct Scrubbing {
    document: ScrubbingDocument,
    id: u64,
    rules: Vec<(String, Regex)>,
    is_slow: bool,
}

impl Scrubbing {
    /// Compiles a document. It takes up to a millisecond.
    pub fn new(document: ScrubbingDocument) -> Result<Self, ScrubbingError> {
        for (count, most, what) in [
            (document.rules.len(), MOST_RULES, "rules"),
            (
                document.secret_attributes.len(),
                MOST_ATTRIBUTES,
                "secret attributes",
            ),
            (
                document.plain_attributes.len(),
                MOST_ATTRIBUTES,
                "plain attributes",
            ),
        ] {
            if count > most {
                return Err(ScrubbingError::TooMany(most, what));
            }
        }
        let mut names = document
            .secret_attributes
            .iter()
            .chain(&document.plain_attributes);
        if !names.all(|name| (1..=MOST_NAME_BYTES).contains(&name.len())) {
            return Err(ScrubbingError::Attribute);
        }
        let is_plain = |name: &&String| {
            let mut plain = document.plain_attributes.iter();
            plain.any(|one| one.eq_ignore_ascii_case(name))
        };
        if let Some(name) = document.secret_attributes.iter().find(is_plain) {
            return Err(ScrubbingError::Both(name.clone()));
        }
        let mut expressions = Expressions::new(BUDGET);
        let rules = document.rules.iter();
        let rules: Result<Vec<_>, _> = rules.map(|rule| rule.compile(&mut expressions)).collect();
        let json = serde_json::to_vec(&document).unwrap_or_default();
        Ok(Self {
            rules: rules?,
            is_slow: expressions.used() > SLOW,
            id: fingerprint(&[&json]),
            document,
        })
    }

    #[must_use]
    pub fn document(&self) -> &ScrubbingDocument {
        &self.document
    }

    /// Identifies the document. 0 for the default.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether the rules of the project may take long for a batch of this size.
    #[must_use]
    pub fn is_slow(&self, bytes: usize) -> bool {
        self.is_slow || self.rules.len().saturating_mul(bytes) > QUICK
    }

    /// Returns the text without its private data, or `None` if it has none.
    pub(super) fn text(&self, text: &str) -> Option<(String, Found)> {
        let mut found = Found::default();
        let mut own = Cow::Borrowed(text);
        for (instead, pattern) in &self.rules {
            let matches = pattern.find_iter(&own).take(MOST_MATCHES + 1).count();
            if matches == 0 {
                continue;
            }
            found.add(Kind::OwnRule);
            own = Cow::Owned(if matches > MOST_MATCHES {
                instead.clone()
            } else {
                let instead = regex::NoExpand(instead);
                let mut replaced = pattern.replace_all(&own, instead).into_owned();
                replaced.truncate(replaced.floor_char_boundary(text.len().max(MOST_BYTES)));
                replaced
            });
        }
        if own.trim_start().starts_with(['{', '['])
            && let Some(without) = members::without_secrets(&own, |name| self.is_secret(name))
        {
            found.add(Kind::Secret);
            own = Cow::Owned(without);
        }
        let built_in = self.document.built_in.then(|| built_in::scrubbed(&own));
        match (built_in.flatten(), own) {
            (Some((scrubbed, more)), _) => Some((scrubbed, found.and(more))),
            (None, Cow::Owned(own)) => Some((own, found)),
            (None, Cow::Borrowed(_)) => None,
        }
    }

    /// Returns the value of an attribute without its private data, or `None` if it has none.
    pub(super) fn attribute(&self, name: &str, value: &str) -> Option<(String, Found)> {
        if value.is_empty() || has_name(&self.document.plain_attributes, name) {
            return None;
        }
        let is_own = has_name(&self.document.secret_attributes, name);
        if is_own || (self.is_secret(name) && !members::is_literal(value)) {
            let mut found = Found::default();
            found.add(Kind::Secret);
            return Some(("[secret]".to_owned(), found));
        }
        self.text(value)
    }

    /// Whether the value of an attribute, or of a member of one, is secret.
    fn is_secret(&self, name: &str) -> bool {
        let document = &self.document;
        let is_built_in = document.built_in && built_in::is_secret_name(name);
        (is_built_in && !has_name(&document.plain_attributes, name))
            || has_name(&document.secret_attributes, name)
    }

    /// Scrubs a stored text. Returns `None` if the text does not change. `attribute` is the name of the text's attribute, or empty.
    #[must_use]
    pub fn try_on(&self, attribute: &str, text: &str) -> Option<String> {
        let scrubbed = match attribute {
            "" => self.text(text),
            name => self.attribute(name, text),
        };
        scrubbed.map(|(text, _)| text).filter(|new| new != text)
    }
}

fn has_name(names: &[String], name: &str) -> bool {
    names.iter().any(|one| one.eq_ignore_ascii_case(name))
}

impl ScrubbingRule {
    fn compile(&self, expressions: &mut Expressions) -> Result<(String, Regex), ScrubbingError> {
        let Self { name, pattern } = self;
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if !(1..=32).contains(&name.len()) || !name.bytes().all(plain) {
            return Err(ScrubbingError::Name(name.chars().take(64).collect()));
        }
        if !(1..=MOST_PATTERN_CHARS).contains(&pattern.chars().count()) {
            return Err(ScrubbingError::Length(name.clone()));
        }
        let wrong = |error| ScrubbingError::Pattern(name.clone(), error);
        expressions.check(pattern).map_err(wrong)?;
        let compiled = RegexBuilder::new(pattern)
            .dfa_size_limit(BUDGET * 4)
            .build();
        let compiled =
            compiled.map_err(|error| wrong(ExpressionError::Invalid(error.to_string())))?;
        if compiled.is_match("") {
            return Err(ScrubbingError::Empty(name.clone()));
        }
        Ok((format!("[{name}]"), compiled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubbing(document: Value) -> Result<Scrubbing, ScrubbingError> {
        Scrubbing::new(serde_json::from_value(document).unwrap())
    }

    #[test]
    fn a_project_adds_rules_and_turns_off_built_in_ones() {
        let own = scrubbing(serde_json::json!({
            "rules": [{"name": "customer", "pattern": "CU-[0-9]{4}"}],
            "secret_attributes": ["Nickname"], "plain_attributes": ["order"],
        }))
        .unwrap();
        let text = own.text("CU-1234 and CU-9999 bob@example.com").unwrap().0;
        assert_eq!(text, "[customer] and [customer] [email]");
        assert_eq!(own.text("plain"), None);
        assert_eq!(own.try_on("nickname", "bob").unwrap(), "[secret]");
        assert_eq!(own.try_on("nickname", "true").unwrap(), "[secret]");
        for (name, value) in [
            ("hasPassword", "true"),
            ("showPassword", "true"),
            ("isSecret", "false"),
            ("token", "null"),
        ] {
            assert_eq!(own.try_on(name, value), None, "{name}");
        }
        assert_eq!(own.try_on("hasPassword", "yes").unwrap(), "[secret]");
        assert_eq!(own.try_on("order", "4111 1111 1111 1111"), None);
        assert_eq!(own.try_on("card", "4111 1111 1111 1111").unwrap(), "[card]");
        assert_eq!(
            own.try_on(
                "form",
                r#"{"nickname":"bob","cvv":123,"user":{"apiKey":"k1"}}"#
            ),
            Some(
                r#"{"nickname":"[secret]","cvv":"[secret]","user":{"apiKey":"[secret]"}}"#
                    .to_owned()
            )
        );
        assert_eq!(own.try_on("form", r#"{"order":"7","items":[1]}"#), None);
        let off = scrubbing(serde_json::json!({"built_in": false})).unwrap();
        assert_eq!(off.try_on("password", "hunter2 bob@example.com"), None);
        assert_ne!(own.id(), off.id());
        assert!(!own.is_slow(10_000) && own.is_slow(1_000_000));
        assert!(!off.is_slow(10_000_000));
        let large = serde_json::json!({"rules": [{"name": "large", "pattern": r"\w+x"}]});
        assert!(scrubbing(large).unwrap().is_slow(1));
    }

    #[test]
    fn rules_that_feed_each_other_do_not_grow_a_text() {
        let rule = serde_json::json!({"name": "a".repeat(32), "pattern": "a"});
        let own = scrubbing(serde_json::json!({"rules": vec![rule; 20]})).unwrap();
        assert!(own.text("a").unwrap().0.len() <= MOST_BYTES);
        assert!(own.text(&"a".repeat(5_000)).unwrap().0.len() <= 5_000);
    }

    #[test]
    fn invalid_documents_are_refused_with_a_reason() {
        for (name, pattern, reason) in [
            ("a", "(", "is not a regular expression"),
            ("a", r"\w{40}", "too large"),
            ("a", "x*", "matches an empty text"),
            ("A b", "x", "is not a rule name"),
            ("a", "", "must have 1 to 500 characters"),
        ] {
            let document = serde_json::json!({"rules": [{"name": name, "pattern": pattern}]});
            let error = scrubbing(document).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let rule = serde_json::json!({"name": "a", "pattern": "x"});
        let error = scrubbing(serde_json::json!({"rules": vec![rule; 21]})).unwrap_err();
        assert!(error.to_string().contains("at most 20 rules"), "{error}");
    }
}
