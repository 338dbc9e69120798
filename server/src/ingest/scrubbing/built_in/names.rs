//! Names from code, packages and files that look like personal data or secrets.

use std::sync::LazyLock;

use regex::Regex;

use super::regex;

/// What follows `@` in file names, package names and units, and is no top-level domain.
const ENDINGS: [&str; 62] = [
    "aar",
    "apk",
    "atlas",
    "avif",
    "bin",
    "bmp",
    "bundle",
    "car",
    "cjs",
    "cpp",
    "css",
    "csv",
    "dart",
    "dex",
    "dll",
    "dylib",
    "exe",
    "framework",
    "gif",
    "gz",
    "htm",
    "html",
    "ico",
    "jar",
    "java",
    "jpeg",
    "jpg",
    "js",
    "json",
    "jsx",
    "kt",
    "kts",
    "map",
    "mjs",
    "mount",
    "otf",
    "pdf",
    "plist",
    "plt",
    "png",
    "sec",
    "service",
    "slice",
    "socket",
    "svelte",
    "svg",
    "swift",
    "tar",
    "target",
    "tgz",
    "timer",
    "ts",
    "tsx",
    "ttf",
    "txt",
    "vue",
    "wasm",
    "webp",
    "woff",
    "xib",
    "xml",
    "yaml",
];

/// Top-level domains of more than two letters under which most people have addresses.
const PEOPLE: [&str; 10] = [
    "com", "net", "org", "info", "biz", "edu", "gov", "mil", "name", "int",
];

/// What precedes `@` in code and in addresses of repositories.
const WORDS: [&str; 7] = ["break", "continue", "git", "npm", "return", "super", "this"];

/// A version, the scale of an image, or the hash of an object.
static VERSION: LazyLock<Regex> = LazyLock::new(|| regex(r"^[0-9]+\.[0-9]"));
static SCALE_OR_NUMBER: LazyLock<Regex> = LazyLock::new(|| regex(r"^[0-9]+x?\."));
static HASH: LazyLock<Regex> = LazyLock::new(|| regex(r"^[0-9a-f]{1,16}\.[a-z]+$"));
/// A qualified class, as before `@` in the text of an object.
static CLASS: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:^|[.$])[A-Z][A-Za-z0-9_]*$"));

/// Whether `local@domain` is an e-mail address, and not a name.
pub(super) fn is_address(local: &str, domain: &str) -> bool {
    let ending = domain.rsplit('.').next().unwrap_or_default();
    let has_people = ending.len() == 2 || PEOPLE.contains(&ending);
    let is_hash = || {
        HASH.is_match(domain)
            && domain.contains(|char: char| char.is_ascii_digit())
            && CLASS.is_match(local)
    };
    let is_name = ENDINGS.contains(&ending)
        || WORDS.contains(&local)
        || VERSION.is_match(domain)
        || (!has_people && (SCALE_OR_NUMBER.is_match(domain) || is_hash()));
    !is_name
}

/// Whether a word after `Basic` or `Bearer` is one of a sentence or an identifier. Credentials have digits or letters of both cases.
pub(super) fn is_word(text: &str) -> bool {
    static WORD: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^(?:[A-Z]?[a-z]+)(?:[A-Z][a-z]{2,})*\.?$"));
    WORD.is_match(text)
}

/// Whether the text after `password:` is the type of a parameter.
pub(super) fn is_type(text: &str) -> bool {
    static TYPE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"(?x) ^ &? (?: [a-z]+ (?: \. | :: ) )*
              (?: String | str | Str | Char (?:Sequence|Array)? | ByteArray | Data | Int (?:eger|[0-9]+)? | Long | Bool (?:ean)?
                | Any | Object | Unit | Void | string | number | boolean | [A-Z][A-Za-z]* < [A-Za-z.,?]+ > )
              [?!)>\]}]* $",
        )
    });
    TYPE.is_match(text)
}

/// Whether what looks like a query is a comparison in code: `cart?b==c`.
pub(super) fn is_comparison(text: &str) -> bool {
    text.split_once('=')
        .is_some_and(|(_, value)| value.starts_with('='))
}

/// Whether what looks like a phone number is a coordinate: one to three digits, then five or more after a point.
pub(super) fn is_coordinate(text: &str) -> bool {
    static COORDINATE: LazyLock<Regex> = LazyLock::new(|| regex(r"^\D?\+[0-9]{1,3}\.[0-9]{5,}$"));
    COORDINATE.is_match(text)
}
