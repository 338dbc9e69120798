//! Versions of apps and systems, and their order.
//!
//! The semver crate does not fit: it does not parse versions of one, two or four numbers, which app stores accept, and it does not
//! order builds.
//!
//! `dashboards/web/src/versions/version_order.ts` has the same order for the screens. `version_order.json` checks both.

use std::cmp::Ordering;

/// The maximum count of numbers in a version.
pub(super) const NUMBERS: usize = 8;

/// An exact requirement has at least this many numbers, so that 4.12 excludes 4.12.3.
const EXACT_NUMBERS: usize = 4;

/// Words that may precede a version, as in `Version 4.12`, `release-4.12` and `release/4.12`.
const NAMES: [&str; 2] = ["version", "release"];

/// Words after a space that begin a pre-release, as in `4.12 beta 2`.
const BEFORE: [&str; 15] = [
    "alpha",
    "beta",
    "canary",
    "debug",
    "dev",
    "ea",
    "eap",
    "insider",
    "insiders",
    "milestone",
    "nightly",
    "pre",
    "preview",
    "rc",
    "snapshot",
];

/// Letters after a space that begin a pre-release if a number follows at once, as in `4.12 M1`.
const BEFORE_A_NUMBER: [&str; 3] = ["a", "b", "m"];

/// Words that begin a correction of the release, as in `4.12.0-hotfix.1` and `4.12.0.post1`.
const AFTER: [&str; 4] = ["fix", "hotfix", "patch", "post"];

/// Short words that do so if a number follows, as in `4.12.0-SP1` and `4.12p1`.
const AFTER_WITH_NUMBER: [&str; 5] = ["p", "r", "sp", "sr", "u"];

/// Words for the release itself, as in `4.12.0-final` and `4.12.0.RELEASE`.
const RELEASED: [&str; 3] = ["final", "ga", "release"];

/// A commit id of at least this many characters does not order versions.
const COMMIT_ID_CHARS: usize = 7;

/// A version: numbers, then optionally a pre-release (`-pre.release`, `.rc1`, `~rc1`, `b2`, ` beta 2`), then optionally a build (`+9`, ` (41)`,
/// ` (41) debug`, ` build 41`, `_41`). Missing numbers are 0. A leading `v`, `Version `, `release-`, `release/` or `name@` is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version<'a> {
    pub(super) numbers: [u64; NUMBERS],
    pub(super) written: usize,
    pub(super) pre: Option<&'a str>,
    pub(super) build: Option<&'a str>,
}

impl<'a> Version<'a> {
    /// Parses a version. Returns `None` if the text is not one.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let text = without_app(text.trim());
        let mut names = NAMES.iter();
        let text = names
            .find_map(|name| without_word(text, name))
            .unwrap_or(text);
        let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
        let end = text
            .find(|char: char| !char.is_ascii_digit() && char != '.')
            .unwrap_or(text.len());
        let is_dotted = is_dotted(text.split_at(end));
        let (written_numbers, rest) = text.split_at(end - usize::from(is_dotted));
        let mut numbers = [0; NUMBERS];
        let mut written = 0;
        for part in written_numbers.split('.') {
            *numbers.get_mut(written)? = part.parse().ok()?;
            written += 1;
        }
        let (pre, build) = suffixes(rest, written)?;
        Some(Self {
            numbers,
            written,
            pre,
            build,
        })
    }

    /// Orders by numbers, then by pre-release: a pre-release precedes its version.
    pub(super) fn precedence(&self, other: &Self) -> Ordering {
        let pre = match (self.pre, other.pre) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(own), Some(other)) => natural_order(own, other),
        };
        self.numbers.cmp(&other.numbers).then(pre)
    }

    /// Orders by build. A version without a build precedes its builds.
    pub(super) fn build_order(&self, other: &Self) -> Ordering {
        match (self.build, other.build) {
            (Some(own), Some(other)) => natural_order(own, other),
            (own, other) => own.is_some().cmp(&other.is_some()),
        }
    }
}

/// Orders two versions of an app: by their numbers, then by their builds. Texts that are not versions precede all versions.
/// Callers sort versions that are equal by this order by when each was first seen.
#[must_use]
pub fn version_order(one: &str, other: &str) -> Ordering {
    match (Version::parse(one), Version::parse(other)) {
        (Some(one), Some(other)) => one.precedence(&other).then(one.build_order(&other)),
        (one, other) => one.is_some().cmp(&other.is_some()),
    }
}

/// Splits a version that ends in the number of its build in brackets, as in `4.12.0 (41200)`. Returns `None` for other texts.
#[must_use]
pub fn version_and_build(text: &str) -> Option<(&str, u64)> {
    let build = Version::parse(text)?.build?.parse().ok()?;
    let (version, _) = text.trim().strip_suffix(')')?.rsplit_once('(')?;
    Some((version.trim_end(), build))
}

/// Returns a requirement that only this version and its builds meet: for 4.12, not 4.12.3; for 4.12 (41), not 4.12 (42). `None` if
/// the text is not a version.
#[must_use]
pub fn exact_requirement(version: &str) -> Option<String> {
    let version = Version::parse(version)?;
    let numbers = version.numbers.iter();
    let numbers = numbers.take(version.written.max(EXACT_NUMBERS));
    let numbers: Vec<_> = numbers.map(u64::to_string).collect();
    let pre = version.pre.map(|pre| format!("-{}", words(pre).join(".")));
    let build = version.build.map(|it| format!("+{}", words(it).join(".")));
    let [pre, build] = [pre, build].map(Option::unwrap_or_default);
    Some(format!("={}{pre}{build}", numbers.join(".")))
}

/// Whether a word follows the last dot, as in `4.12.RELEASE`. `4.12.x` is not a version.
fn is_dotted((numbers, rest): (&str, &str)) -> bool {
    let chars = rest.bytes().take_while(u8::is_ascii_alphanumeric);
    let is_word = rest.starts_with(|char: char| char.is_ascii_alphabetic()) && chars.count() > 1;
    numbers.ends_with('.') && is_word
}

/// A pre-release and a build.
type Suffixes<'a> = (Option<&'a str>, Option<&'a str>);

/// Splits what follows the numbers into a pre-release and a build. Returns `None` if the text is neither.
fn suffixes(rest: &str, written: usize) -> Option<Suffixes<'_>> {
    // `4.12, build 41`
    let spaced = rest.strip_prefix(',').filter(|rest| rest.starts_with(' '));
    let rest = spaced.unwrap_or(rest);
    let end = rest.find(['+', '(']).unwrap_or(rest.len());
    let (before, build) = rest.split_at(end);
    let build = match build.strip_prefix('(') {
        // `(41)` or `(41) debug`
        Some(build) if build.contains(')') => Some(build.strip_suffix(')').unwrap_or(build)),
        Some(_) => return None,
        None => build.strip_prefix('+'),
    };
    let (pre, build) = match (before.chars().next(), before.trim()) {
        (_, "") => (None, build),
        (Some(' '), text) if precedes_release(text) => (Some(text), build),
        (Some(' '), text) => match released(text) {
            Some(number) => (None, build.or(filled(number))),
            // `4.12 internal (41)`
            None => (None, filled(rest)),
        },
        // `4.12_41`
        (Some('_'), text) if text.as_bytes().get(1).is_some_and(u8::is_ascii_digit) => {
            (None, rest.strip_prefix('_'))
        }
        (Some('-' | '.' | '_' | '~'), _) => {
            stage(before.strip_prefix(['-', '.', '_', '~'])?, build)?
        }
        // `4.12b2`. A single number with letters is more often a commit id.
        (Some(_), text) if is_letter_release(text, written) => (None, Some(text)),
        (Some(first), text) if first.is_ascii_alphabetic() && written > 1 => {
            let number = text.trim_start_matches(|char: char| char.is_ascii_alphabetic());
            let is_stage = number.bytes().all(|byte| byte.is_ascii_digit());
            stage(Some(text).filter(|_| is_stage)?, build)?
        }
        _ => return None,
    };
    let build = build.map(|build| without_word(build.trim(), "build").unwrap_or(build.trim()));
    let is_readable = |text: &str| {
        !text.contains(|char: char| char.is_control() || matches!(char, ',' | '|'))
            && !words(text).is_empty()
    };
    let is_readable = [pre, build].into_iter().flatten().all(is_readable);
    is_readable.then_some((pre, build))
}

/// Reads a stage of the release, as in `-rc.1`, `.RELEASE` and `b2`.
fn stage<'a>(text: &'a str, build: Option<&'a str>) -> Option<Suffixes<'a>> {
    let (text, after) = text.split_once(' ').unwrap_or((text, ""));
    let build = build.or(filled(after));
    if !is_pre_release(text) {
        return None;
    }
    if follows_release(text) {
        return Some((None, Some(text)));
    }
    Some(match released(text) {
        Some(number) => (None, build.or(filled(number))),
        None => (Some(text), build),
    })
}

/// Returns what follows a word for the release itself: nothing in `final`, 2 in `release.2`. `None` for other texts.
fn released(text: &str) -> Option<&str> {
    let word = first_word(text);
    let number = text.get(word.len()..)?.trim_start_matches(['-', '.', ' ']);
    let is_number = number.is_empty() || number.starts_with(|char: char| char.is_ascii_digit());
    (RELEASED.contains(&&*word) && is_number).then_some(number)
}

fn filled(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

/// Whether a text after a space is a stage before the release.
fn precedes_release(text: &str) -> bool {
    let word = first_word(text);
    let number = text.get(word.len()..).unwrap_or_default();
    let number = number.split(' ').next().unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    BEFORE.contains(&&*word) || (is_number && BEFORE_A_NUMBER.contains(&&*word))
}

/// Whether a suffix marks a version after the release: a correction, or commits that `git describe` counted.
fn follows_release(text: &str) -> bool {
    let is_describe = text.split_once("-g").is_some_and(|(count, commit)| {
        let commit = commit.strip_suffix("-dirty").unwrap_or(commit);
        let is_hex = commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()) && is_hex
    });
    let word = first_word(text);
    let number = text.get(word.len()..).unwrap_or_default();
    let number = number.strip_prefix(['-', '.']).unwrap_or(number);
    let has_number = number.starts_with(|char: char| char.is_ascii_digit());
    is_describe || AFTER.contains(&&*word) || (has_number && AFTER_WITH_NUMBER.contains(&&*word))
}

/// Whether letters alone mark a correction of the release, as in `1.0.2k` and `0.9.8zh`. `4.12a` and `4.12b` precede their release.
fn is_letter_release(text: &str, written: usize) -> bool {
    let is_letter = match text.as_bytes() {
        [letter] => written > 2 || !matches!(letter, b'a' | b'b' | b'A' | b'B'),
        [b'z' | b'Z', _] => true,
        _ => false,
    };
    is_letter && written > 1 && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// The letters with which a text begins, in lower case.
fn first_word(text: &str) -> String {
    let letters = text.chars().take_while(char::is_ascii_alphabetic);
    letters.map(|char| char.to_ascii_lowercase()).collect()
}

/// Removes a word and the spaces, hyphens or slashes after it. Returns `None` if the text does not begin with the word.
fn without_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let start = text.get(..word.len())?;
    let rest = text.get(word.len()..)?;
    let is_word = start.eq_ignore_ascii_case(word) && rest.starts_with([' ', '-', '/']);
    is_word.then(|| {
        rest.trim_start_matches(|char: char| matches!(char, '-' | '/') || char.is_whitespace())
    })
}

/// Removes the app from `com.example.shop@4.12.0`.
fn without_app(text: &str) -> &str {
    let is_end = |char: char| char.is_whitespace() || matches!(char, '+' | '(');
    let (start, _) = text.split_at(text.find(is_end).unwrap_or(text.len()));
    let is_app = |at: &usize| *at > 0 && !text.starts_with(|char: char| char.is_ascii_digit());
    let at = start.rfind('@').filter(is_app);
    at.and_then(|at| text.get(at + 1..)).unwrap_or(text)
}

/// Whether a text consists of identifiers of letters, digits and hyphens, separated by dots.
fn is_pre_release(text: &str) -> bool {
    text.split('.').all(|identifier| {
        !identifier.is_empty()
            && identifier
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    })
}

/// The runs of letters and digits of a text.
pub(super) fn words(text: &str) -> Vec<&str> {
    let words = text.split(|char: char| !char.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).collect()
}

/// Compares number by number and word by word: `rc2` before `rc10`, numbers before words, words without regard to case. A prefix
/// sorts first. Commit ids are skipped.
fn natural_order(one: &str, other: &str) -> Ordering {
    let parts = |text| -> Vec<(bool, usize, String)> {
        let words = words(text);
        let words = words.into_iter().filter(|word| !is_commit_id(word));
        words.flat_map(parts_of_word).collect()
    };
    parts(one).cmp(&parts(other))
}

/// Splits a word into numbers and letters. Numbers are ordered by their count of digits first.
fn parts_of_word(word: &str) -> impl Iterator<Item = (bool, usize, String)> {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let runs = word
        .as_bytes()
        .chunk_by(move |one, other| is_digit(one) == is_digit(other));
    runs.map(move |run| {
        let text = String::from_utf8_lossy(run).to_ascii_lowercase();
        match run.first().is_some_and(is_digit) {
            true => {
                let digits = text.trim_start_matches('0').to_owned();
                (false, digits.len(), digits)
            }
            false => (true, 0, text),
        }
    })
}

/// Whether a word is a commit id, also as `git describe` writes it: `g1a2b3c4`.
fn is_commit_id(word: &str) -> bool {
    let id = word.strip_prefix(['g', 'G']).unwrap_or(word);
    let is_hex = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    id.len() >= COMMIT_ID_CHARS && is_hex && !word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::requirement::Requirement;

    fn holds(requirement: &str, version: &str) -> bool {
        let requirement = Requirement::parse(requirement).unwrap();
        requirement.matches(&Version::parse(version).unwrap())
    }

    #[test]
    fn invalid_versions_are_rejected() {
        for text in [
            "",
            "four",
            "4..1",
            "4.12.",
            ".4",
            "1.2.3.4.5.6.7.8.9",
            "4.12-",
            "4.12-a..b",
            "4.12_",
            "4.12.x",
            "4.12.-a",
            "4.12,",
            "shop@",
            "4.12@shop",
            "release",
            "-1",
            "4,1",
            "4.+1",
            "99999999999999999999",
            "4.12 (41",
            "4.12 ()",
            "4.12+",
            "1a2b3c4",
            "4.12 (a, b)",
        ] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }

    #[derive(serde::Deserialize)]
    struct Vectors {
        /// Oldest first. Versions of one list are equal.
        ascending: Vec<Vec<Vec<String>>>,
    }

    /// The versions of a scheme, each with its place in the order.
    fn placed(scheme: &[Vec<String>]) -> Vec<(usize, &String)> {
        let places = scheme.iter().enumerate();
        let placed = places.flat_map(|(place, equal)| equal.iter().map(move |one| (place, one)));
        placed.collect()
    }

    #[test]
    fn versions_are_ordered_as_their_makers_mean_them() {
        let vectors: Vectors = serde_json::from_str(include_str!("version_order.json")).unwrap();
        let schemes = vectors.ascending.iter().map(|scheme| placed(scheme));
        let pairs = schemes.flat_map(|all| {
            let others = all.clone();
            all.into_iter()
                .flat_map(move |one| others.clone().into_iter().map(move |other| (one, other)))
        });
        for ((place, one), (other_place, other)) in pairs {
            let expected = place.cmp(&other_place);
            assert_eq!(version_order(one, other), expected, "{one} and {other}");
        }
    }

    #[test]
    fn an_exact_requirement_excludes_other_versions_and_other_builds() {
        for (version, requirement) in [
            ("4.12", "=4.12.0.0"),
            ("v18.1-beta.2+7", "=18.1.0.0-beta.2+7"),
            ("4.12 (41)", "=4.12.0.0+41"),
            ("4.12 beta 2", "=4.12.0.0-beta.2"),
            ("1.2.3.4.5", "=1.2.3.4.5"),
            ("4.12 (41) debug", "=4.12.0.0+41.debug"),
            ("com.example.shop@4.12.0+41", "=4.12.0.0+41"),
            ("4.12, build 41", "=4.12.0.0+41"),
            ("4.12.RELEASE", "=4.12.0.0"),
        ] {
            let exact = exact_requirement(version);
            assert_eq!(exact.as_deref(), Some(requirement));
            assert!(holds(requirement, version), "{version}");
        }
        assert!(!holds("=4.12.0.0+41", "4.12 (42)"));
        assert_eq!(exact_requirement("nightly"), None);
    }

    #[test]
    fn a_build_in_brackets_is_split_off() {
        for (text, split) in [
            ("4.12.0 (41200)", Some(("4.12.0", 41_200))),
            (" v4.12(7) ", Some(("v4.12", 7))),
            ("4.12 beta 2 (41)", Some(("4.12 beta 2", 41))),
            ("4.12 (build 41)", Some(("4.12", 41))),
            ("4.12.0", None),
            ("4.12.0+41200", None),
            ("4.12+7 (41)", None),
            ("4.12 (1a2b3c4)", None),
            ("4.12 (1.2)", None),
            ("4.12 (41) debug", None),
            ("4.12 internal (41)", None),
            ("nightly (41)", None),
            ("(41)", None),
        ] {
            assert_eq!(version_and_build(text), split, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_order_of_texts_is_total(
            texts in proptest::collection::vec("(v|Version |release-|a@)?[0-2](\\.([0-2]|10)){0,3}(,? ?(-|_|\\.|\\+|\\(|b|beta |build |ga|post)?[a-c0-9.]{0,8}\\)?( [ab])?)?", 3),
        ) {
            let [one, other, third] = [&texts[0], &texts[1], &texts[2]];
            prop_assert_eq!(version_order(one, other), version_order(other, one).reverse());
            if version_order(one, other).is_le() && version_order(other, third).is_le() {
                prop_assert!(version_order(one, third).is_le());
            }
            if let Some(exact) = exact_requirement(one) {
                prop_assert!(holds(&exact, one), "{exact} for {one}");
            }
        }
    }
}
