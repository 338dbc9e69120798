//! Words, types and labels of code that look like secrets: what follows `Basic`, `password:` or `token=`.

use std::sync::LazyLock;

use regex::Regex;

use super::patterns::regex;

/// How many bytes before a match are searched for a parenthesis.
const NEAR: usize = 200;

/// Whether what follows `Basic` or `Bearer` is a word of a sentence or an identifier, or, after `Basic`, several of them. Credentials have
/// digits, or letters of both cases that are not words. A token of `Bearer` may be several words.
pub(super) fn is_word(scheme: &str, text: &str) -> bool {
    static ONE: LazyLock<Regex> = LazyLock::new(|| regex(r"^[A-Z]?[a-z]+(?:[A-Z][a-z]{2,})*\.?$"));
    static WORD: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^(?:[A-Z]{2,6}[a-z]{2,}|[A-Z]?[a-z]+)(?:[A-Z][a-z]{2,})*$"));
    if !scheme.eq_ignore_ascii_case("basic") {
        return ONE.is_match(text);
    }
    let text = text.trim_end_matches('.');
    // Neither `.` nor `-` is in a credential of `Basic`, so a number may end a word there.
    let may_end_in_digit = text.contains(['.', '-']);
    text.split(['.', '-', '_', '/']).all(|word| {
        let without = word.trim_end_matches(|char: char| char.is_ascii_digit());
        let is_short = word.len() - without.len() <= 2;
        WORD.is_match(if may_end_in_digit && is_short {
            without
        } else {
            word
        })
    })
}

/// Whether the text after `password:` or `password=` says that there is no value, or is the type of a parameter.
pub(super) fn is_type(before: &str, separator: char, text: &str) -> bool {
    static LITERAL: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"(?x) ^ [(<]? (?: null | NULL | nil | None | nullptr | undefined | true | false | True | False ) [)>\]}.]* $",
        )
    });
    /// Types that are known wherever they are.
    static TYPE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"(?x) ^ [(&*]* (?: [A-Za-z]+ (?: \. | :: ) )*
              (?: String | str | Str | Char (?:Sequence|Array)? | ByteArray | Data | Int (?:eger|[0-9]+)? | UInt[0-9]* | Long | Bool (?:ean)?
                | Any | Object | Unit | Void | NSString | string | number | boolean | [A-Z][A-Za-z]* < [A-Za-z0-9.,?:]+ >
                | [iu] (?: 8 | 16 | 32 | 64 | 128 | size ) | f32 | f64 | u?int (?:8|16|32|64)? (?:_t)? | size_t | c_char
                | char | bytes? | bool | float | double | long | short | void | object | dynamic )
              [?!*)>\]}]* $",
        )
    });
    /// Types of parameters. A person's secret is rarely several words with capitals in parentheses.
    static PARAMETER: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"(?x) ^ [(&*@]* (?:
                (?: [a-z_][A-Za-z0-9_]* (?: \. | :: ) )* (?: [A-Z]+[a-z]+ (?:[A-Z]+[a-z]*)+ | [A-Z]{2,}[a-z]+ | [A-Z] [A-Za-z0-9]* < .* )
              | (?: [a-z_][a-z0-9_]* (?: \. | :: ) )+ [A-Z][A-Za-z]+
              | Token | Secret | Password | Cookie | Binder | Uuid | UUID | Guid | Self | Bytes | Buffer
            ) [?!*)>\]}]* $",
        )
    });
    let is_parameter = || separator == ':' && is_in(before, b'(', b')');
    // `string|null`
    text.split('|').all(|one| {
        LITERAL.is_match(one) || TYPE.is_match(one) || (PARAMETER.is_match(one) && is_parameter())
    })
}

/// Whether the last parenthesis or bracket of a text is open.
fn is_in(before: &str, open: u8, close: u8) -> bool {
    let mut near = before.bytes().rev().take(NEAR);
    near.find(|byte| [open, close].contains(byte)) == Some(open)
}

/// Whether the text after `password:` is the rest of a function's labels: `completion:)` of `login(user:password:completion:)`.
pub(super) fn is_label(before: &str, text: &str) -> bool {
    static LABELS: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^(?:[A-Za-z_][A-Za-z0-9_]*:)*[)\]](?:[.(]|$)"));
    (is_in(before, b'(', b')') || is_in(before, b'[', b']')) && LABELS.is_match(text)
}

/// Whether `pass` ends another word: `compass: north`, `renderPass: Opaque`. `name` is the text up to the value.
pub(super) fn is_other_pass(name: &str) -> bool {
    static OTHER: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"^(?i:(?:[a-z_-]*[_-])?(?:by|com|encom|over|sur|tres|under)|[a-z_-]*(?:compute|render|shader))(?i:pass)\b",
        )
    });
    OTHER.is_match(name)
}

/// Whether the text after `Unexpected token: ` is the kind of token in the message of a parser.
pub(super) fn is_kind(text: &str) -> bool {
    static KIND: LazyLock<Regex> = LazyLock::new(|| regex(r"^[a-z]+\W*$"));
    KIND.is_match(text)
}

/// Whether what looks like a query is code: a comparison such as `cart?b==c`, or a part of a file of a component.
pub(super) fn is_code(query: &str) -> bool {
    let is_comparison = || {
        query
            .split_once('=')
            .is_some_and(|(_, value)| value.starts_with('='))
    };
    let is_part = ["?vue&type=", "?svelte&type=", "?astro&type="]
        .iter()
        .any(|part| query.starts_with(part));
    is_part || is_comparison()
}
