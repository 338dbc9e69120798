//! The file names of scripts without the hashes that bundlers add. A release changes the hash of each script that it changes.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use regex::Regex;

const ENDINGS: [&str; 3] = [".js", ".mjs", ".cjs"];
/// What may be between the hash and the ending.
const KINDS: [&str; 4] = [".min", ".chunk", ".bundle", ".esm"];
/// The length of the hashes of Rollup, Vite and esbuild.
const HASH: usize = 8;
/// The lengths of hashes in hexadecimal: 8 of Parcel and older versions of Vite, 16 of Angular and Next.js, 20 of webpack, 64 of SHA-256.
const HEXADECIMAL: RangeInclusive<usize> = 8..=64;

/// The words of a name, with the digits behind them.
static WORDS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*|[0-9]+[a-z]*")
        .expect("the tests compile this pattern")
});

/// Returns the file name of a script without its hash: `index.js` for `index-BqV3x9aZ.js`, `main.chunk.js` for `main.3f2a1b9c.chunk.js`.
/// Returns a name that is only a hash unchanged, and the name of any other file.
pub(super) fn without_hash(name: &str) -> Cow<'_, str> {
    let Some((stem, ending)) = split(name, &ENDINGS) else {
        return Cow::Borrowed(name);
    };
    let (stem, kind) = split(stem, &KINDS).unwrap_or((stem, ""));
    match before_hash(stem) {
        Some(short) => Cow::Owned(format!("{short}{kind}{ending}")),
        None => Cow::Borrowed(name),
    }
}

fn split<'n>(name: &'n str, ends: &[&'static str]) -> Option<(&'n str, &'static str)> {
    ends.iter()
        .find_map(|end| Some((name.strip_suffix(end)?, *end)))
}

/// Returns the part of a name before its hash, if there is both.
fn before_hash(stem: &str) -> Option<&str> {
    let (before, last) = stem.rsplit_once(['.', '-', '_'])?;
    if is_hexadecimal(last) {
        return Some(before).filter(|before| !before.is_empty());
    }
    // In Base64 for URLs, a hash may contain separators.
    let (before, hash) = stem.split_at_checked(stem.len().checked_sub(HASH)?)?;
    let before = before.strip_suffix(['.', '-'])?;
    let is_hash = is_base32(hash) || is_base64(hash);
    (is_hash && !before.is_empty()).then_some(before)
}

/// Words such as `facade` have no digits.
fn is_hexadecimal(text: &str) -> bool {
    HEXADECIMAL.contains(&text.len())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && text.bytes().any(|byte| byte.is_ascii_digit())
}

fn is_base32(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7'))
}

/// Whether text reads like a hash in Base64 for URLs rather than like words, such as `settings`, `CartView`, `product1` or `cart-row`. Four of
/// five hashes do.
fn is_base64(text: &str) -> bool {
    let has = |fits: fn(&u8) -> bool| text.as_bytes().iter().any(fits);
    let is_of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_mixed =
        has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit);
    let words = WORDS.find_iter(text).count();
    let has_word = text
        .split(|letter: char| !letter.is_ascii_lowercase())
        .any(|part| part.len() >= 4);
    text.bytes().all(is_of_base64) && !has_word && (words >= 4 || (words == 3 && is_mixed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hashes_of_bundlers_are_removed() {
        for (name, short) in [
            // Vite and Rollup
            ("index-BqV3x9aZ.js", "index.js"),
            ("index--qV3x9aZ.mjs", "index.mjs"),
            ("index-legacy-B_V3x-aZ.js", "index-legacy.js"),
            ("index.3f2a1b9c.js", "index.js"),
            ("start.DkP3xq1Z.js", "start.js"),
            // webpack
            ("main.3f2a1b9c8d7e6f5a4b3c.js", "main.js"),
            ("main.3f2a1b9c.chunk.js", "main.chunk.js"),
            ("chunk-2d0c1f3a.5b6c7d8e.js", "chunk-2d0c1f3a.js"),
            (
                "runtime-es2015.3f2a1b9c8d7e6f5a4b3c.js",
                "runtime-es2015.js",
            ),
            ("page-1a2b3c4d5e6f7a8b.js", "page.js"),
            ("src_app_page_1a2b3c4d.js", "src_app_page.js"),
            // esbuild
            ("chunk-ABC123XY.js", "chunk-ABC123XY.js"),
            ("chunk-ABC234XY.js", "chunk.js"),
            ("main-KQWERTYU.js", "main.js"),
            (
                "app-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.js",
                "app.js",
            ),
        ] {
            assert_eq!(without_hash(name), short, "{name}");
        }
    }

    #[test]
    fn names_without_a_hash_are_unchanged() {
        for name in [
            "index-settings.js",
            "index-Settings.js",
            "index-CartView.js",
            "index-product1.js",
            "index-useQuery.js",
            "index-S3Client.js",
            "index-B2BOrder.js",
            "index-iPhone15.js",
            "index-LCP-INP2.js",
            "my-cart-row.js",
            "checkout-v2.js",
            "utf8-to-utf16.js",
            "app.settings.js",
            "jquery-3.7.1.min.js",
            "facade-deadbeef.js",
            "polyfills-es2015.js",
            "3f2a1b9c8d7e6f5a.js",
            "-BqV3x9aZ.js",
            "BqV3x9aZ.js",
            "index-BqV3x9aZ.kt",
            "index.android.bundle",
            "größe-ßßßß.js",
            ".js",
            "",
        ] {
            assert_eq!(without_hash(name), name);
        }
    }
}
