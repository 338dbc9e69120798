//! Requirements on versions. [`super::Condition::AppVersion`] documents the grammar.
//!
//! The requirements of the semver crate exclude pre-releases unless they name one, so testers would fall outside `>=4.12`.

use super::version::{NUMBERS, Version, words};

/// Comparators that must all hold.
#[derive(Clone, Debug)]
pub(super) struct Requirement(Box<[Comparator]>);

#[derive(Clone, Debug)]
struct Comparator {
    operator: Operator,
    numbers: [u64; NUMBERS],
    written: usize,
    pre: Option<Box<str>>,
    build: Option<Box<str>>,
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
    /// # Errors
    ///
    /// If the text is not a requirement. The error explains how to write one.
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
            "`{text}` is not an operator and a version of one to eight numbers, such as `>=4.12` or `<5.0.0-beta.1`"
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
            build: None,
        });
        Self {
            operator,
            numbers: version.numbers,
            written: version.written,
            pre: version.pre.map(Into::into),
            build: version.build.map(Into::into),
        }
    }

    fn matches(&self, version: &Version<'_>) -> bool {
        let first = |count: usize| {
            let own = self.numbers.iter().take(count);
            version.numbers.iter().take(count).cmp(own)
        };
        let own = Version {
            numbers: self.numbers,
            written: self.written,
            pre: self.pre.as_deref(),
            build: self.build.as_deref(),
        };
        let order = match (own.pre, own.build) {
            (None, None) => first(self.written),
            (Some(_), None) => version.precedence(&own),
            (_, Some(_)) => version.precedence(&own).then(version.build_order(&own)),
        };
        // Commit ids have no order, but one build is not another.
        let is_build = |own: &str| version.build.is_some_and(|it| words(it) == words(own));
        match self.operator {
            Operator::Any => true,
            Operator::Exact => order.is_eq() && own.build.is_none_or(is_build),
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

    /// A requirement, versions that match it, and versions that do not.
    type Case<'a> = (&'a str, &'a [&'a str], &'a [&'a str]);

    fn check(cases: &[Case<'_>]) {
        for (requirement, yes, no) in cases {
            for version in *yes {
                assert!(holds(requirement, version), "{requirement} for {version}");
            }
            for version in *no {
                assert!(!holds(requirement, version), "{requirement} for {version}");
            }
        }
    }

    #[test]
    fn requirements_match_the_versions_people_expect() {
        check(&[
            (
                ">=4.12, <5",
                &["4.12", "4.12.0-beta.1", "4.99.9.9"],
                &["4.11.9", "5", "5.0.0-beta.1"],
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
        ]);
    }

    #[test]
    fn requirements_match_builds_and_stages() {
        check(&[
            (
                ">=1.4.0+10",
                &["1.4.0+10", "1.4.0+11", "1.4.0 (12)", "1.4.1"],
                &["1.4.0+9", "1.4.0", "1.3"],
            ),
            (
                "=4.12 (41)",
                &["4.12 (41)", "4.12.0+41", "4.12 build 41"],
                &["4.12", "4.12 (40)", "4.12.1 (41)"],
            ),
            (
                "=4.12+1a2b3c4",
                &["4.12 (1a2b3c4)"],
                &["4.12+9f8e7d6", "4.12"],
            ),
            (
                "=4.12.0-rc.1",
                &["4.12.0-rc.1+7", "4.12 RC1"],
                &["4.12+7", "4.12.0-rc.2"],
            ),
            (
                ">=17",
                &["Version 17.4.1 (Build 21E236)", "17"],
                &["16.9 (Build 20A1)"],
            ),
            (
                ">=6.0.0 (10)",
                &[
                    "6.0.0 (11) debug",
                    "6.0.0_11",
                    "6.0.0, build 11",
                    "com.example.shop@6.0.0+11",
                    "release-6.0.1",
                ],
                &["6.0.0 (9) debug", "6.0.0_9", "6.0.0.RELEASE"],
            ),
            (
                ">=6.0.0.rc2",
                &["6.0.0", "6.0.0-final", "6.0.0.post1", "6.0.0-rc3"],
                &["6.0.0-rc1", "6.0.0.beta3"],
            ),
        ]);
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
            (">=4.12.x", "not an operator and a version"),
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
