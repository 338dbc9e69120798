//! Removes personal data and secrets from texts before they are stored: query strings and user names in URLs, e-mail addresses, card and
//! phone numbers, tokens, passwords.
//!
//! A text without any sign of them is only scanned once, byte by byte. Each match is replaced by its kind, such as `[email]`.

mod domains;
mod names;
mod patterns;
mod signs;
mod types;

use std::borrow::Cow;

use regex::{Captures, Regex};

use self::patterns::{CARD, EMAIL, PHONE, QUERY, SECRET, SECRET_NAME, SECRET_PARTS, URL_USER};
use self::signs::Signs;

/// Names that follow one another without a secret, each in the value of the one before. Further ones are replaced as a secret: the value of
/// each is searched to its end, so a long chain of names would take a time that grows with its square.
const MOST_NAMES: usize = 8;

/// The kind of removed data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Query,
    UrlUser,
    Email,
    Card,
    Phone,
    Secret,
    /// Removed by a rule of the project.
    OwnRule,
}

impl Kind {
    pub(crate) const ALL: [Self; 7] = [
        Self::Query,
        Self::UrlUser,
        Self::Email,
        Self::Card,
        Self::Phone,
        Self::Secret,
        Self::OwnRule,
    ];

    /// The reason that Ingest health shows.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Query => "query_string",
            Self::UrlUser => "url_user",
            Self::Email => "email",
            Self::Card => "card_number",
            Self::Phone => "phone_number",
            Self::Secret => "secret",
            Self::OwnRule => "own_rule",
        }
    }
}

/// The kinds that were found in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found(u8);

impl Found {
    pub(crate) fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    pub(crate) fn add(&mut self, kind: Kind) {
        self.0 |= 1 << kind as u8;
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A match of a pattern in a text.
struct Hit<'t> {
    captures: Captures<'t>,
    text: &'t str,
    /// How many matches before it were only names and reach into one another and into this one: `bypass:bypass:…`.
    names: usize,
}

impl<'t> Hit<'t> {
    /// A group of the match. Group 0 is the match.
    fn part(&self, group: usize) -> &'t str {
        self.captures.get(group).map_or("", |part| part.as_str())
    }

    fn before(&self) -> &'t str {
        let start = self.captures.get(0).map_or(0, |all| all.start());
        self.text.get(..start).unwrap_or_default()
    }

    fn after(&self) -> &'t str {
        let end = self.captures.get(0).map_or(0, |all| all.end());
        self.text.get(end..).unwrap_or_default()
    }

    /// Where the search goes on if the match is only a name. Its value may have a secret in it: `compass: token=…`. So may the groups of
    /// digits after the first one.
    fn resume(&self) -> Option<usize> {
        let mut values = ["credential", "bare", "value", "list", "rest"].into_iter();
        let value = values.find_map(|group| self.captures.name(group));
        value.map(|value| value.start())
    }
}

/// Returns the text without its private data, or `None` if it has none.
pub(crate) fn scrubbed(text: &str) -> Option<(String, Found)> {
    let signs = Signs::new(text);
    if !signs.any() {
        return None;
    }
    let mut found = Found::default();
    let mut text = Cow::Borrowed(text);
    let mut replace = |regex: &Regex, kind: Kind, with: fn(&Hit<'_>) -> Option<String>| {
        let replaced = replaced(regex, &text, with);
        if let Some(replaced) = replaced {
            found.add(kind);
            text = Cow::Owned(replaced);
        }
    };
    // Secrets are replaced first, so that no other pattern matches a part of one.
    if signs.secret {
        replace(&SECRET, Kind::Secret, without_secret);
    }
    if signs.query {
        replace(&QUERY, Kind::Query, |hit| {
            (!types::is_code(hit.part(0))).then(|| "?[query]".to_owned())
        });
    }
    if signs.at {
        replace(&URL_USER, Kind::UrlUser, |hit| {
            let is_package = names::is_package(hit.before(), hit.part(1), hit.after());
            (!is_package).then(|| "://[user]@".to_owned())
        });
        replace(&EMAIL, Kind::Email, |hit| {
            let (local, domain) = (hit.part(1), hit.part(2));
            names::is_address(hit.before(), local, domain, hit.after())
                .then(|| "[email]".to_owned())
        });
    }
    if signs.digits {
        replace(&CARD, Kind::Card, |hit| {
            let number = hit.part(0);
            let is_part = || names::is_part_of_number(hit.before(), number, hit.after());
            (is_card(number) && !is_part()).then(|| "[card]".to_owned())
        });
        replace(&PHONE, Kind::Phone, |hit| {
            let all = hit.part(0);
            let digits = all.bytes().filter(u8::is_ascii_digit).count();
            let is_name = names::is_coordinate(all, hit.after())
                || names::is_size(all, hit.after())
                || names::is_numbers(hit.before(), all, hit.after());
            ((10..=15).contains(&digits) && !is_name).then(|| format!("{}[phone]", hit.part(1)))
        });
    }
    match text {
        Cow::Owned(text) => Some((text, found)),
        Cow::Borrowed(_) => None,
    }
}

/// The text of a match of [`SECRET`] without the secret, or `None` if it is a name or replaced already.
fn without_secret(hit: &Hit<'_>) -> Option<String> {
    let all = hit.captures.get(0)?;
    let part = |group| Some((group, hit.captures.name(group)?));
    let Some((group, secret)) = SECRET_PARTS.into_iter().find_map(part) else {
        return Some("[secret]".to_owned());
    };
    let kept = all.as_str().get(..secret.start() - all.start())?;
    let secret = secret.as_str();
    let is_name = hit.names < MOST_NAMES && is_only_name(hit, group, kept, secret);
    (!is_name && secret != "[secret]").then(|| format!("{kept}[secret]"))
}

/// Whether what looks like a secret is a word, a type or a label of code. `kept` is the match up to it.
fn is_only_name(hit: &Hit<'_>, group: &str, kept: &str, secret: &str) -> bool {
    match group {
        "credential" => {
            let scheme = hit.captures.name("scheme").map_or("", |one| one.as_str());
            types::is_word(scheme, secret)
        }
        "value" if kept.ends_with(':') && types::is_label(hit.before(), secret) => true,
        "value" | "list" if types::is_other_pass(kept) => true,
        "value" if kept == "token: " && hit.before().ends_with("nexpected ") => {
            types::is_kind(secret)
        }
        "value" if types::is_state(kept, secret) || types::is_measure(secret, hit.after()) => true,
        "bare" | "value" => {
            let separator = kept.trim_end().chars().next_back().unwrap_or_default();
            types::is_type(hit.before(), separator, secret)
        }
        "list" => {
            let separator = kept.trim_end().chars().next_back().unwrap_or_default();
            types::is_array(hit.before(), separator, secret)
        }
        _ => false,
    }
}

/// Whether the value of an attribute with this name is a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    SECRET_NAME.is_match(name)
}

/// Replaces each match that has a replacement. Returns `None` if no match has one.
///
/// The search goes on inside a match that is only a name. [`MOST_NAMES`] bounds how often a part of a text is searched.
fn replaced(regex: &Regex, text: &str, with: fn(&Hit<'_>) -> Option<String>) -> Option<String> {
    let mut out = String::new();
    let (mut end, mut at) = (0, 0);
    let (mut names, mut names_end) = (0, 0);
    while let Some(captures) = regex.captures_at(text, at) {
        let all = captures.get(0)?;
        names = if all.start() < names_end {
            names + 1
        } else {
            0
        };
        let hit = Hit {
            captures,
            text,
            names,
        };
        at = all.end();
        let Some(instead) = with(&hit) else {
            names_end = names_end.max(all.end());
            at = hit.resume().unwrap_or(at);
            continue;
        };
        out.push_str(text.get(end..all.start()).unwrap_or_default());
        out.push_str(&instead);
        end = all.end();
    }
    (end > 0).then(|| out + text.get(end..).unwrap_or_default())
}

/// The Luhn check: from the right, every second digit counts twice. Numbers that begin with 2 have 16 digits.
fn is_card(number: &str) -> bool {
    let digits: Vec<u32> = number
        .chars()
        .filter_map(|char| char.to_digit(10))
        .collect();
    if digits.first() == Some(&2) && digits.len() != 16 {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match place % 2 {
            0 => *digit,
            _ => digit * 2 / 10 + digit * 2 % 10,
        })
        .sum();
    digits
        .iter()
        .any(|digit| *digit != digits.first().copied().unwrap_or(0))
        && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_parts_are_replaced_by_their_kind() {
        for (text, expected) in [
            (
                "GET https://bob:hunter2@shop.example/cart?user=7&x=1#top",
                "GET https://[user]@shop.example/cart?[query]",
            ),
            ("/cart?user=bob%40example.com", "/cart?[query]"),
            (
                "mail to bob.smith+x@mail.example.co.uk failed",
                "mail to [email] failed",
            ),
            ("card 4111 1111 1111 1111 declined", "card [card] declined"),
            ("card 5500-0000-0000-0004", "card [card]"),
            ("call +49 170 1234567 now", "call [phone] now"),
            ("call (415) 555-2671", "call [phone]"),
            (
                "Authorization: Bearer abcdef1234567890",
                "Authorization: [secret]",
            ),
            ("header Bearer abcdef1234567890", "header Bearer [secret]"),
            ("Cookie: a=bcdef; session=1234", "Cookie: [secret]"),
            ("password=hunter22 user=bob", "password=[secret] user=bob"),
            (
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJl end",
                "[secret] end",
            ),
            ("key ujk_abcdefghijklmnopqrstuvwx", "key [secret]"),
            (
                "/setup#code=ujs_abcdefghijklmnopqrstuvwx",
                "/setup#code=[secret]",
            ),
        ] {
            let scrubbed = scrubbed(text).map_or_else(|| text.to_owned(), |(text, _)| text);
            assert_eq!(scrubbed, expected);
        }
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "checkout",
            "com.example.shop.Cart.open(CartId, List<Item>)",
            "this@MainActivity.onCreate",
            "lambda$0@7f3a",
            "1795176000000000",
            "4111 1111 1111 1112",
            "order 4111111111111112345",
            "where id = ?",
            "what?",
            "a?b:c",
            "image 2026-11-20 12:00:00.123456",
            "v4.12.0+4711",
            "0x7fff5fbff8a0 + 44",
            "http status: 404",
            "Token bucket is empty",
            "token: ok",
            "memory_used_bytes",
            "550e8400-e29b-41d4-a716-446655440000",
        ] {
            assert_eq!(scrubbed(text), None, "{text}");
        }
    }

    #[derive(serde::Deserialize)]
    struct Corpus {
        kept: Vec<String>,
        /// Texts, and what is stored.
        scrubbed: Vec<(String, String)>,
    }

    #[test]
    fn names_from_apps_are_kept_and_secrets_beside_them_are_not() {
        let corpus: Corpus = serde_json::from_str(include_str!("corpus.json")).unwrap();
        for text in corpus.kept {
            assert_eq!(scrubbed(&text), None, "{text}");
        }
        for (text, stored) in corpus.scrubbed {
            let scrubbed = scrubbed(&text).map(|(text, _)| text);
            assert_eq!(scrubbed, Some(stored), "{text}");
        }
    }

    #[test]
    fn tokens_in_known_formats_are_secrets() {
        // In parts, so that no scanner of sources takes them for secrets.
        for (prefix, rest) in [
            ("AKIA", "IOSFODNN7EXAMPLE"),
            ("ASIA", "IOSFODNN7EXAMPLE"),
            ("sk-proj-", "abcdefghijklmnop1234"),
            ("sk-ant-", "api03-abcdefghijklmnop"),
            ("sk-", "a1b2c3d4a1b2c3d4a1b2c3d4a1b2c3d4"),
            (
                "SG.",
                "abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG",
            ),
            ("whsec_", "abcdefghijklmnopqrstuvwx"),
            ("rk_test_", "abcdefghijklmnop1234"),
            ("rk_live_", "abcdefghijklmnop1234"),
            ("sk_test_", "abcdefghijklmnop1234"),
            ("shpat_", "abcdefghijklmnop1234"),
            ("hf_", "abcdefghabcdefghabcdefghabcdefgh"),
            ("hvs.", "abcdefghijklmnop1234"),
        ] {
            let stored = scrubbed(&format!("key {prefix}{rest} end"));
            let stored = stored.map(|(text, _)| text);
            assert_eq!(stored.as_deref(), Some("key [secret] end"), "{prefix}");
        }
    }

    #[test]
    fn a_chain_of_names_is_searched_at_most_eight_times() {
        for (before, name, after, kept) in [
            ("", "bypass:", "", "bypass:"),
            ("login(", "password:", ")", "password:"),
            ("login(", "token:List<", ")", "token:"),
            ("", "compass: ", "north", "compass: "),
        ] {
            for names in [MOST_NAMES + 2, 100] {
                let text = format!("{before}{}{after}", name.repeat(names));
                let (stored, _) = scrubbed(&text).unwrap();
                let skipped = name.repeat(MOST_NAMES);
                let expected = format!("{before}{skipped}{kept}[secret]");
                assert!(stored.starts_with(&expected), "{name}: {stored}");
            }
        }
        // Names that do not reach into one another are as many as the text has.
        let labels = "login(password:completion:) ".repeat(50);
        assert_eq!(scrubbed(&labels), None);
        assert_eq!(scrubbed(&"token=null ".repeat(50)), None);
    }

    #[test]
    fn secrets_are_recognized_by_the_names_of_attributes() {
        for name in [
            "password",
            "user.password",
            "http.request.header.authorization",
            "Cookie",
            "access_token",
            "apiKey",
            "card_number",
            "token",
            "user.token",
            "userPassword",
            "newPassword",
            "secretKey",
            "clientSecret",
            "private_key",
            "aws_secret_access_key",
            "jwt",
            "sessionid",
            "JSESSIONID",
            "passcode",
            "x-auth-token",
            "refreshToken",
            "password_confirmation",
            "passwordConfirm",
            "password2",
            "new_password1",
            "oauth_token",
            "oauthToken",
            "user.oauth2_token",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "page",
            "token_count",
            "http.method",
            "cookies_enabled",
            "tokenizer",
            "compass",
            "token_type",
            "next_page_token",
            "cancellationToken",
            "forgot_password_screen",
            "publicKey",
            "session.id",
            "session_id",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn scrubbing_twice_changes_nothing_more() {
        for text in [
            "https://a:b@c.example/x?y=z",
            "bob@example.com",
            "password: hunter22",
            "password=[hunter22, hunter23]",
            "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ==\n-----END PRIVATE KEY-----",
            "SharedAccessSignature=sv=2020-08-04&sig=abcd%3D;AccountKey=abcdefghij0123456789abcd==",
            r#"{"password":"hunter22","api_key":12345678}"#,
            "Cookie: a=bcdef; session=1234",
            "Bearer abcdefgh12345678",
        ] {
            let (once, _) = scrubbed(text).unwrap();
            assert_eq!(scrubbed(&once), None);
        }
    }
}
