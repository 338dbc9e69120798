//! Removes personal data and secrets from texts before they are stored: query strings and user names in URLs, e-mail addresses, card and
//! phone numbers, tokens, passwords.
//!
//! A text without any sign of them is only scanned once, byte by byte. Each match is replaced by its kind, such as `[email]`.

mod names;

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

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

/// `?` followed by something like `name=value`, to the end of the word. It follows a path or URL.
static QUERY: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\?[A-Za-z0-9_~%\[-][A-Za-z0-9_.~%\[\]-]*=[^\s]*"));
static URL_USER: LazyLock<Regex> = LazyLock::new(|| regex(r"://[^\s/?#@\[][^\s/?#@]*@"));
/// Domains are in lower case, so `this@MainActivity.onCreate` is not an address. [`names::is_address`] tells the other names.
static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"([A-Za-z0-9._%+-]+)(?:@|%40)([a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,24})\b")
});
/// 13 to 19 digits in groups. The check digit then decides whether it is a card number.
static CARD: LazyLock<Regex> = LazyLock::new(|| regex(r"\b[3-6](?:[ -]?[0-9]){12,18}\b"));
/// International numbers with `+`, and North American numbers in their usual groups.
static PHONE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x) (^|[^0-9A-Za-z+]) (?:
            \+[1-9][0-9]{0,2} (?:[\x20.-]?\(?[0-9]{2,4}\)?){2,5}
          | \(?[2-9][0-9]{2}\)?[\x20-][2-9][0-9]{2}-[0-9]{4}
        ) \b",
    )
});
/// Tokens in known formats, `Authorization` headers, and assignments such as `password=…`.
static SECRET: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x)
          eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*
        | \b(?: uj[irkst]_ | gh[pousr]_ | github_pat_ | glpat- | sk_live_ | sk_test_ | rk_live_ | xox[abeoprs]- )[A-Za-z0-9_-]{16,}
        | \bAKIA[0-9A-Z]{16}\b | \bAIza[0-9A-Za-z_-]{35}
        | (?P<scheme> \b(?i:bearer|basic)\x20+ )(?P<credential> [A-Za-z0-9._~+/-]{8,}=*)
        | (?P<name> \b(?i: [a-z_-]*pass(?:word|wd|phrase)? | pwd | [a-z_-]*secret | [a-z_-]*token | api[_-]?key | session[_-]?id
            | authorization )\x20?[=:]\x20? )(?: (?i:bearer|basic)\x20+ )?(?P<value> [^\s,;&\[][^\s,;&]{3,})
        | (?P<cookie> \b(?i: (?:set-)?cookie )\x20?[=:]\x20? )[^\[\n][^\n]{3,}",
    )
});
/// Names of attributes whose values are always secrets.
static SECRET_NAME: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?xi) (?:^|[_.\x20-]) (?: pass(?:word|wd|phrase) | pwd | secret | (?:access|auth|id|refresh|session|csrf|api)[_.-]?token | api[_.-]?key
            | authorization | (?:set[_-])?cookie | credit[_.-]?card | card[_.-]?number | cvv | ssn | iban ) $",
    )
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern of this file, compiled by its tests")
}

/// Returns the text without its private data, or `None` if it has none.
pub(crate) fn scrubbed(text: &str) -> Option<(String, Found)> {
    let signs = Signs::new(text);
    if !signs.any() {
        return None;
    }
    let mut found = Found::default();
    let mut text = Cow::Borrowed(text);
    let mut replace =
        |regex: &Regex, kind: Kind, with: &dyn Fn(&Captures<'_>) -> Option<String>| {
            let replaced = replaced(regex, &text, with);
            if let Some(replaced) = replaced {
                found.add(kind);
                text = Cow::Owned(replaced);
            }
        };
    // Secrets are replaced first, so that no other pattern matches a part of one.
    if signs.secret {
        let keep = |group: &str, captures: &Captures<'_>| {
            let kept = captures.name(group).map_or("", |kept| kept.as_str());
            kept.to_owned()
        };
        replace(&SECRET, Kind::Secret, &|captures| {
            let is_name = |group: &str, is_name: fn(&str) -> bool| {
                captures
                    .name(group)
                    .is_some_and(|text| is_name(text.as_str()))
            };
            if is_name("credential", names::is_word) || is_name("value", names::is_type) {
                return None;
            }
            let kept = ["scheme", "name", "cookie"].map(|group| keep(group, captures));
            Some(format!("{}[secret]", kept.concat()))
        });
    }
    if signs.query {
        replace(&QUERY, Kind::Query, &|captures| {
            let query = captures.get(0).map_or("", |query| query.as_str());
            (!names::is_comparison(query)).then(|| "?[query]".to_owned())
        });
    }
    if signs.at {
        replace(&URL_USER, Kind::UrlUser, &|_| Some("://[user]@".to_owned()));
        replace(&EMAIL, Kind::Email, &|captures| {
            let part = |group| captures.get(group).map_or("", |part| part.as_str());
            names::is_address(part(1), part(2)).then(|| "[email]".to_owned())
        });
    }
    if signs.digits {
        replace(&CARD, Kind::Card, &|captures| {
            let number = captures.get(0).map_or("", |number| number.as_str());
            is_card(number).then(|| "[card]".to_owned())
        });
        replace(&PHONE, Kind::Phone, &|captures| {
            let before = captures.get(1).map_or("", |before| before.as_str());
            let all = captures.get(0).map_or("", |all| all.as_str());
            let digits = all.bytes().filter(u8::is_ascii_digit).count();
            ((10..=15).contains(&digits) && !names::is_coordinate(all))
                .then(|| format!("{before}[phone]"))
        });
    }
    match text {
        Cow::Owned(text) => Some((text, found)),
        Cow::Borrowed(_) => None,
    }
}

/// Whether the value of an attribute with this name is a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    SECRET_NAME.is_match(name)
}

/// Replaces each match that has a replacement. Returns `None` if no match has one.
fn replaced(
    regex: &Regex,
    text: &str,
    with: &dyn Fn(&Captures<'_>) -> Option<String>,
) -> Option<String> {
    let mut out = String::new();
    let mut end = 0;
    for captures in regex.captures_iter(text) {
        let (Some(all), Some(instead)) = (captures.get(0), with(&captures)) else {
            continue;
        };
        out.push_str(text.get(end..all.start()).unwrap_or_default());
        out.push_str(&instead);
        end = all.end();
    }
    (end > 0).then(|| out + text.get(end..).unwrap_or_default())
}

/// The Luhn check: from the right, every second digit counts twice.
fn is_card(number: &str) -> bool {
    let digits: Vec<u32> = number
        .chars()
        .filter_map(|char| char.to_digit(10))
        .collect();
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

/// Signs of private data, found in one scan of a text.
struct Signs {
    at: bool,
    query: bool,
    digits: bool,
    secret: bool,
}

impl Signs {
    fn new(text: &str) -> Self {
        let (mut at, mut query, mut assigns, mut digits) = (false, false, false, 0_u32);
        // The lengths of the current and the longest run of letters, digits, `-` and `_`.
        let (mut run, mut longest) = (0_u32, 0_u32);
        for byte in text.bytes() {
            if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' {
                run += 1;
                digits += u32::from(byte.is_ascii_digit());
                continue;
            }
            longest = longest.max(run);
            run = 0;
            match byte {
                b'@' | b'%' => at = true,
                b'?' => query = true,
                b'=' | b':' | b' ' => assigns = true,
                _ => {}
            }
        }
        longest = longest.max(run);
        Self {
            at,
            query,
            digits: digits >= 10,
            secret: longest >= 20 || (assigns && text.len() >= 8),
        }
    }

    fn any(&self) -> bool {
        self.at || self.query || self.digits || self.secret
    }
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
    fn secrets_are_recognized_by_the_names_of_attributes() {
        for name in [
            "password",
            "user.password",
            "http.request.header.authorization",
            "Cookie",
            "access_token",
            "apiKey",
            "card_number",
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
            "Bearer abcdefgh12345678",
        ] {
            let (once, _) = scrubbed(text).unwrap();
            assert_eq!(scrubbed(&once), None);
        }
    }
}
