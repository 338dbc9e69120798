//! Versions of apps and systems, and requirements on them. [`super::Condition::AppVersion`] documents the grammar.
//!
//! The semver crate does not fit: it does not parse versions of one, two or four numbers, which app stores accept, and
//! it excludes pre-releases from requirements that name none, so testers would fall outside `>=4.12`.

use std::cmp::Ordering;

/// The maximum count of numbers in a version.
const NUMBERS: usize = 4;

/// A version: one to four numbers, then optionally `-pre.release`, then optionally `+build`, which is ignored. Missing
/// numbers are 0. A leading `v` is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version<'a> {
    numbers: [u64; NUMBERS],
    written: usize,
    pre: Option<&'a str>,
}

impl<'a> Version<'a> {
    /// Parses a version. Returns `None` if the text is not one.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
        let (text, _build) = text.split_once('+').unwrap_or((text, ""));
        let (text, pre) = match text.split_once('-') {
            Some((text, pre)) => (text, Some(pre)),
            None => (text, None),
        };
        if pre.is_some_and(|pre| !is_pre_release(pre)) {
            return None;
        }
        let mut numbers = [0; NUMBERS];
        let mut written = 0;
        for part in text.split('.') {
            let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            *numbers.get_mut(written)? = part.parse().ok().filter(|_| is_number)?;
            written += 1;
        }
        Some(Self {
            numbers,
            written,
            pre,
        })
    }

    /// Orders two versions. Returns `None` if either text is not a version.
    pub(super) fn order(one: &str, other: &str) -> Option<Ordering> {
        Some(Version::parse(one)?.precedence(&Version::parse(other)?))
    }

    /// Orders by semantic versioning: a pre-release precedes its version.
    fn precedence(&self, other: &Self) -> Ordering {
        let pre = match (self.pre, other.pre) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(own), Some(other)) => pre_release_order(own, other),
        };
        self.numbers.cmp(&other.numbers).then(pre)
    }
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

/// Compares identifier by identifier: numbers by value, numbers before words, words alphabetically. A prefix sorts first.
fn pre_release_order(one: &str, other: &str) -> Ordering {
    let identifier_order = |one: &str, other: &str| match (one.parse::<u64>(), other.parse::<u64>())
    {
        (Ok(one), Ok(other)) => one.cmp(&other),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => one.cmp(other),
    };
    let mut others = other.split('.');
    for own in one.split('.') {
        let Some(other) = others.next() else {
            return Ordering::Greater;
        };
        let order = identifier_order(own, other);
        if order.is_ne() {
            return order;
        }
    }
    others.next().map_or(Ordering::Equal, |_| Ordering::Less)
}

/// Comparators that must all hold.
#[derive(Clone, Debug)]
pub(super) struct Requirement(Box<[Comparator]>);

#[derive(Clone, Debug)]
struct Comparator {
    operator: Operator,
    numbers: [u64; NUMBERS],
    written: usize,
    pre: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug)]
enum Operator {
    Any,
    Exact,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    /// At least the given version, with this many leading numbers equal.
    Within(usize),
}

impl Requirement {
    /// Parses a requirement.
    ///
    /// # Errors If the text is not a requirement. The error explains how to write one.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let comparators: Result<Vec<_>, _> = text.split(',').map(comparator).collect();
        comparators.map(|list| Self(list.into()))
    }

    pub(super) fn matches(&self, version: &Version<'_>) -> bool {
        self.0.iter().all(|comparator| comparator.matches(version))
    }
}

fn comparator(text: &str) -> Result<Comparator, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(
            "a comparator is empty; write one such as `>=4.12`, or `*` for any version".into(),
        );
    }
    let rest = text.trim_start_matches(['=', '>', '<', '~', '^', '!']);
    let (sign, rest) = text.split_at(text.len() - rest.len());
    let rest = rest.trim();
    if rest == "*" && sign.is_empty() {
        return Ok(Comparator::new(Operator::Any, Version::parse("0")));
    }
    let (rest, wildcard) = match rest.strip_suffix(".*") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let Some(version) = Version::parse(rest).filter(|version| !wildcard || version.pre.is_none())
    else {
        return Err(format!(
            "`{text}` is not an operator and a version of one to four numbers, such as `>=4.12` or `<5.0.0-beta.1`"
        ));
    };
    let operator = match sign {
        "=" | "" if wildcard => Operator::Exact,
        _ if wildcard => {
            return Err(format!(
                "`{text}` combines an operator with a wildcard; write `{rest}.*`, or omit `.*`"
            ));
        }
        "=" => Operator::Exact,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        "~" => Operator::Within(version.written.min(2)),
        "^" => Operator::Within(version.leading()),
        "" => {
            return Err(format!(
                "`{text}` has no operator; write `={text}` for that version, `>={text}` for it and all later ones, or \
                 `^{text}` for those before the next major version"
            ));
        }
        _ => {
            return Err(format!(
                "`{sign}` is not one of `=`, `>`, `>=`, `<`, `<=`, `~`, `^`"
            ));
        }
    };
    Ok(Comparator::new(operator, Some(version)))
}

impl Version<'_> {
    /// How many leading numbers `^` fixes: up to and including the first that is not 0.
    fn leading(&self) -> usize {
        let written = self.numbers.iter().take(self.written);
        written
            .into_iter()
            .position(|number| *number != 0)
            .map_or(self.written, |position| position + 1)
    }
}

impl Comparator {
    fn new(operator: Operator, version: Option<Version<'_>>) -> Self {
        let version = version.unwrap_or(Version {
            numbers: [0; NUMBERS],
            written: 0,
            pre: None,
        });
        Self {
            operator,
            numbers: version.numbers,
            written: version.written,
            pre: version.pre.map(Into::into),
        }
    }

    fn matches(&self, version: &Version<'_>) -> bool {
        let first = |count: usize| {
            let own = self.numbers.iter().take(count);
            version.numbers.iter().take(count).cmp(own)
        };
        let order = match &self.pre {
            None => first(self.written),
            Some(pre) => version.precedence(&Version {
                numbers: self.numbers,
                written: self.written,
                pre: Some(pre),
            }),
        };
        match self.operator {
            Operator::Any => true,
            Operator::Exact => order.is_eq(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Within(count) => order.is_ge() && first(count).is_eq(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holds(requirement: &str, version: &str) -> bool {
        let requirement = Requirement::parse(requirement).unwrap();
        requirement.matches(&Version::parse(version).unwrap())
    }

    #[test]
    fn requirements_match_the_versions_people_expect() {
        for (requirement, yes, no) in [
            (
                ">=4.12, <5",
                &["4.12", "4.12.0-beta.1", "4.99.9.9"][..],
                &["4.11.9", "5", "5.0.0-beta.1"][..],
            ),
            (
                "=4.12",
                &["4.12", "4.12.0", "4.12.7.3", "v4.12+9"],
                &["4.1", "4.120", "4.13"],
            ),
            ("=4.12.0.1", &["4.12.0.1"], &["4.12", "4.12.0.2"]),
            (">4.12", &["4.13", "5"], &["4.12", "4.12.9"]),
            ("<=4.12", &["4.12.9", "4.1"], &["4.13"]),
            ("~4.12.1", &["4.12.1", "4.12.9"], &["4.12.0", "4.13"]),
            ("~4", &["4", "4.99"], &["5", "3.9"]),
            ("^4.12", &["4.12", "4.99"], &["5", "4.11"]),
            ("^0.3.1", &["0.3.1", "0.3.9"], &["0.4", "0.3.0"]),
            ("^0.0.3", &["0.0.3", "0.0.3.1"], &["0.0.4"]),
            ("^0.0", &["0.0.9"], &["0.1"]),
            ("4.*", &["4", "4.12"], &["5", "40"]),
            ("=4.12.*", &["4.12.3"], &["4.13"]),
            ("*", &["0", "99.1-alpha"], &[]),
            (
                ">=4.12.0-beta.2",
                &[
                    "4.12.0-beta.2",
                    "4.12.0-beta.10",
                    "4.12.0-rc",
                    "4.12",
                    "4.13",
                ],
                &["4.12.0-beta.1", "4.12.0-beta", "4.12.0-alpha.9", "4.11"],
            ),
            (
                "<5.0.0-rc.1",
                &["5.0.0-beta", "5.0-rc.0", "4.99"],
                &["5.0.0-rc.1", "5"],
            ),
            (
                "^4.12-beta",
                &["4.12.0-beta", "4.99"],
                &["4.12.0-alpha", "5"],
            ),
            (" >= 4.12 , < 5 ", &["4.12"], &["5"]),
            (">=14", &["15", "14", "17.4.1"], &["13.9", "8.1.0"]),
        ] {
            for version in yes {
                assert!(holds(requirement, version), "{requirement} for {version}");
            }
            for version in no {
                assert!(!holds(requirement, version), "{requirement} for {version}");
            }
        }
    }

    #[test]
    fn invalid_versions_are_rejected() {
        for text in [
            "",
            "four",
            "4..1",
            "4.12.",
            ".4",
            "1.2.3.4.5",
            "4.12-",
            "4.12-a..b",
            "4.12_1",
            "-1",
            "4,1",
            "4.+1",
            "99999999999999999999",
        ] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_invalid_requirement_explains_what_to_write() {
        for (text, part) in [
            ("4.12", "write `=4.12`"),
            ("", "is empty"),
            (">=4,", "is empty"),
            (">=4.*", "wildcard"),
            ("!=4", "`!=` is not one of"),
            ("==4", "`==` is not one of"),
            (">= four", "not an operator and a version"),
            ("4.12 || 5", "not an operator and a version"),
            ("=*", "not an operator and a version"),
        ] {
            let error = Requirement::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(requirement in any::<String>(), version in any::<String>(), likely in "[<>=~^*, ]{0,3}[0-9.]{0,9}(-[a-z.0-9]{0,5})?") {
            let version = Version::parse(&version);
            for text in [&requirement, &likely] {
                if let (Ok(requirement), Some(version)) = (Requirement::parse(text), version) {
                    requirement.matches(&version);
                }
            }
        }

        #[test]
        fn versions_are_totally_ordered_and_operators_agree(
            one in "[0-2](\\.[0-2]){0,3}(-(a|b|1|2)(\\.(a|1|10))?)?", other in "[0-2](\\.[0-2]){3}-(a|b|1|2)(\\.(a|1|10))?",
        ) {
            let (left, right) = (Version::parse(&one).unwrap(), Version::parse(&other).unwrap());
            prop_assert_eq!(left.precedence(&right), right.precedence(&left).reverse());
            let [less, equal, greater] = ["<", "=", ">"].map(|sign| holds(&format!("{sign}{other}"), &one));
            prop_assert_eq!([less, equal, greater].iter().filter(|holds| **holds).count(), 1);
            prop_assert_eq!(holds(&format!("<={other}"), &one), less || equal);
            prop_assert_eq!(holds(&format!(">={other}"), &one), greater || equal);
        }

        #[test]
        fn versions_of_three_numbers_compare_numerically(one in [0_u64..3, 0..3, 0..3], other in [0_u64..3, 0..3, 0..3]) {
            let text = |[a, b, c]: [u64; 3]| format!("{a}.{b}.{c}");
            prop_assert_eq!(holds(&format!(">={}", text(other)), &text(one)), one >= other);
            prop_assert_eq!(holds(&format!("<{}", text(other)), &text(one)), one < other);
        }
    }
}
