//! The patterns of personal data and secrets. Some matches are only names: see [`super::names`] and [`super::types`].

use std::sync::LazyLock;

use regex::Regex;

/// `?` followed by something like `name=value` or `flag&name=value`, to the end of the word. It follows a path or URL.
pub(super) static QUERY: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\?[A-Za-z0-9_~%\[$&-][A-Za-z0-9_.~%\[\]$&+-]*=[^\s]*"));
pub(super) static URL_USER: LazyLock<Regex> =
    LazyLock::new(|| regex(r"://([^\s/?#@\[][^\s/?#@]*)@"));
/// Domains with letters of both cases, or with other letters, end in a top-level domain of people, so `this@MainActivity.onCreate` is not an
/// address.
pub(super) static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x) ([\p{L}\p{N}._%+-]+) (?: @ | %40 ) (
              [a-z0-9-]+ (?: \.[a-z0-9-]+ )* \.[a-z]{2,24}
            | [A-Z0-9-]+ (?: \.[A-Z0-9-]+ )* \.[A-Z]{2,24}
            | [\p{L}\p{N}-]+ (?: \.[\p{L}\p{N}-]+ )* \.(?i: [a-z]{2} | com | net | org | info | biz | edu | gov | mil | name | int )
        ) \b",
    )
});
/// 13 to 19 digits in groups, of which the first has at least four. The check digit and what is around it then decide whether it is a card number.
/// If not, one may begin in the next group: `order 4000 4111 1111 1111 1111`.
pub(super) static CARD: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x) \b (?: [3-6][0-9]{3} | 222[1-9] | 22[3-9][0-9] | 2[3-6][0-9]{2} | 27[01][0-9] | 2720 )
            (?P<rest> (?: [\x20\x{a0}\x{202f}-]?[0-9] ){9,15} ) \b",
    )
});
/// International numbers with `+`, and North American numbers in their usual groups. The code of an area may have one digit: `+33 (0)6 12…`.
pub(super) static PHONE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x) (^|[^0-9A-Za-z+]) (?:
            \(?\+[1-9][0-9]{0,2}\)? (?:[\x20.-]?\(?[0-9]\)?){0,2} (?:[\x20.-]?\(?[0-9]{2,4}\)?){2,5}
          | \(?[2-9][0-9]{2}\)?[\x20-][2-9][0-9]{2}-[0-9]{4}
        ) \b",
    )
});
/// Tokens in known formats, private keys in PEM, keys and signatures of Azure, `Authorization` headers, arguments such as `--password …`, and
/// assignments such as `password=…`, `password=[…]` and `"password":"…"`. A list that does not end is a secret up to the next bracket or the
/// end of its line. What precedes one of [`SECRET_PARTS`] stays.
///
/// Word boundaries are those of ASCII: with others, `regex` takes its slow engine for texts that are not ASCII.
pub(super) static SECRET: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?x)
          eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*
        | (?-u:\b)(?: uj[irkst]_ | gh[pousr]_ | github_pat_ | gl(?:pat|ptt|dt|rt|cbt|soat|agent)- | [rs]k_(?:live|test)_ | xox[abeoprs]- | xapp-[0-9]-
            | sk-(?:proj|ant|svcacct|or-v1)- | shp(?:at|ca|pa|ss)_ | dop_v1_ | dckr_pat_ | pypi-AgE | lin_api_ | GOCSPX- | glsa_
            | hvs\. )[A-Za-z0-9_-]{16,}
        | (?-u:\b)sk-admin-[A-Za-z0-9_-]{40,} | (?-u:\b)whsec_[A-Za-z0-9+/_-]{16,}=* | (?-u:\b)(?: sk- | hf_ | gsk_ | sbp_ )[A-Za-z0-9]{30,}(?-u:\b)
        | (?-u:\b)SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}
        | (?-u:\b)A(?:KI|SI|BI)A[0-9A-Z]{16}(?-u:\b) | (?-u:\b)AIza[0-9A-Za-z_-]{35} | (?-u:\b)npm_[A-Za-z0-9]{36}(?-u:\b) | (?-u:\b)ya29\.[A-Za-z0-9_-]{20,}
        | -----BEGIN\x20(?:[A-Z0-9]+\x20)*PRIVATE\x20KEY(?:\x20BLOCK)?-----
            (?P<pem> (?: \s | \\+[nr] )* (?: [A-Za-z0-9+/]{16} | [A-Z][A-Za-z-]+:\x20 ) (?: [^-] | -[^-] )* )
        | (?-u:\b)(?i: [a-z0-9_-]*account[_-]?key | [a-z0-9_-]*shared[_-]?access[_-]?key )
            (?: \\*["'] )? \x20?[=:]\x20? (?: \\*["'] )? (?P<key> [A-Za-z0-9+/%]{20,}=* )
        | (?-u:\b)(?i: shared[_-]?access[_-]?signature )\x20?[=\x20] (?P<signature> s[a-z]{1,4}=[^\s"';,]{4,} )
        | (?-u:\b)(?P<scheme> (?i: bearer | basic ) )\x20+ (?P<credential> [A-Za-z0-9._~+/-]{8,}=*)
        | (?-u:\b)(?i: (?:set-)?cookie )\x20?[=:][^\S\n]* (?P<cookies> \S[^\n]{2,})
        | (?-u:\b)(?i: authorization )\x20?[=:]\x20? (?P<header>
            (?i: digest | aws4-[a-z0-9-]+ | oauth | hawk | signature | negotiate | ntlm | shared[a-z]+ ) \x20+ [^\n]{4,} )
        | --(?i: (?:[a-z]+-)* (?: pass(?:word|wd|phrase|code)? | secret | token | (?:api|secret|private)-?key ) )\x20+
            (?P<argument> [^\s\[<$=:-][^\s]{3,} )
        | (?-u:\b)(?i: [a-z0-9_-]*pass(?: (?:word|wd|phrase|code) [0-9]? )? | [a-z0-9_-]*pwd | [a-z0-9_-]*secret (?: [_-]? (?:access[_-]?)? key )?
            | [a-z0-9_-]*token | [a-z0-9_-]*jwt | [a-z0-9_-]* (?:api|private|signing)[_-]?key | [a-z0-9_-]*sess(?:ion)?[_-]?id | aspsessionid[a-z]*
            | connect\.sid | authorization | (?:set-)?cookie )
          (?: (?: \\*["'] )? \x20?(?: => | [=:] )\x20? [bu]?
              (?: "(?P<double> (?: [^"\\] | \\. ){4,} ) | '(?P<single> (?: [^'\\] | \\. ){4,} ) | \\+["'](?P<escaped> [^"'\\]{4,} ) )
            | \\*["'] \x20?(?: => | [=:] )\x20? (?P<bare> [^\s,;&"'\\{}\[\]]{4,} )
            | \x20?[=:]\x20? (?P<value> (?: (?i: bearer | basic | token | api-?key | jwt | dpop | bot )\x20+ [^\s,;&\[=:] | [^\s,;&\[] ) [^\s,;&]{3,} )
            | (?: \\*["'] )? \x20?(?: => | [=:] )\x20? (?P<list> \[
              (?: [^\[\]\n]{4,} \] | (?: \x20?\[ )+ [^\[\]\n]{4,} \]+ | (?: \x20?\[ )* [^\s\[\]] [^\[\]\n]{3,} ) )
          )"#,
    )
});
/// The groups of [`SECRET`] that are secrets.
pub(super) const SECRET_PARTS: [&str; 13] = [
    "pem",
    "key",
    "signature",
    "credential",
    "cookies",
    "header",
    "argument",
    "double",
    "single",
    "escaped",
    "bare",
    "value",
    "list",
];
/// Names of attributes whose values are always secrets: with separators, with capitals, and those that are a whole name. `session.id` and
/// `session_id` are not secrets: they are the usual names of a session of a user in telemetry.
pub(super) static SECRET_NAME: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x) (?:
            (?:^|[_.\x20-]) (?i: pass(?:word|wd|phrase|code) (?:[_.-]?(?:confirm(?:ation)?|[0-9]))? | pwd | secret
                | (?:secret|api|private|signing)[_.-]?key | secret[_.-]?access[_.-]?key
                | shared[_.-]?access[_.-]?(?:key|signature) | jwt
                | (?:access|o?auth2?|id|refresh|session|csrf|xsrf|api|bearer|security|device|push|fcm|reset|user)[_.-]?token
                | authorization | (?:set[_-])?cookie | credit[_.-]?card | card[_.-]?number | cvv | ssn | iban )
            | [a-z0-9] (?: Pass(?:word|wd|phrase|code) (?:Confirm(?:ation)?|[0-9])? | Pwd | Secret | (?:Secret|Api|API|Private|Signing)Key
                | SecretAccessKey | Jwt | JWT | (?:Access|O?[Aa]uth2?|Id|ID|Refresh|Session|Csrf|Xsrf|Api|API|Bearer|Security|Device
                    |Push|Fcm|Reset|User)Token
                | CreditCard | CardNumber | Cvv | CVV | Iban | IBAN )
            | (?:^|\.) (?i: token | bearer )
            | (?:^|[_.\x20-]) (?: [a-z]*sess(?:ion)?id | [A-Z]*SESS(?:ION)?ID )
        ) $",
    )
});

pub(super) fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern of this project, compiled by its tests")
}
