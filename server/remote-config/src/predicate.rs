//! Compiled conditions: requirements, globs and salts are prepared, and cheap parts are evaluated first.

use hashbrown::HashSet;
use unjank_protocol::Glob;

use super::device::{Device, Facts};
use super::percentage::Salted;
use super::requirement::Requirement;
use super::version::Version;

/// A text attribute of a device.
pub(super) type TextOf = for<'a> fn(&Device<'a>) -> Option<&'a str>;
/// A version attribute of a device.
pub(super) type VersionOf = for<'f, 'a> fn(&'f Facts<'a>) -> Option<&'f Version<'a>>;

#[derive(Debug)]
pub(super) enum Predicate {
    All(Box<[Self]>),
    Any(Box<[Self]>),
    Not(Box<Self>),
    OneOf(TextOf, Names),
    Version(VersionOf, Requirement),
    Build { min: u64, max: u64 },
    DeviceModel(Box<[Glob]>),
    Locale(Box<[Box<str>]>),
    Percentage { salt: Salted, below: u32 },
}

/// The entries of a list.
#[derive(Debug)]
pub(super) enum Names {
    /// Names of a small vocabulary, compared case-insensitively.
    AnyCase(Box<[Box<str>]>),
    /// Ids, compared exactly.
    Exact(HashSet<Box<str>>),
}

impl Names {
    fn contains(&self, text: &str) -> bool {
        match self {
            Self::AnyCase(names) => names.iter().any(|name| name.eq_ignore_ascii_case(text)),
            Self::Exact(names) => names.contains(text),
        }
    }
}

impl Predicate {
    pub(super) fn all(mut parts: Vec<Self>) -> Self {
        parts.sort_by_key(Self::cost);
        Self::All(parts.into())
    }

    pub(super) fn any(mut parts: Vec<Self>) -> Self {
        parts.sort_by_key(Self::cost);
        Self::Any(parts.into())
    }

    /// The approximate cost of an evaluation, in nanoseconds.
    fn cost(&self) -> u32 {
        let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        match self {
            Self::All(parts) | Self::Any(parts) => parts
                .iter()
                .fold(1, |sum, part| sum.saturating_add(part.cost())),
            Self::Not(part) => part.cost(),
            Self::Build { .. } => 1,
            Self::OneOf(_, Names::AnyCase(names)) => length(names.len()).saturating_mul(3),
            Self::OneOf(_, Names::Exact(_)) | Self::Version(..) => 10,
            Self::Locale(locales) => length(locales.len()).saturating_mul(5),
            Self::DeviceModel(globs) => length(globs.len()).saturating_mul(20),
            Self::Percentage { .. } => 200,
        }
    }

    pub(super) fn matches(&self, facts: &Facts<'_>) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.matches(facts)),
            Self::Any(parts) => parts.iter().any(|part| part.matches(facts)),
            Self::Not(part) => !part.matches(facts),
            Self::OneOf(text_of, names) => {
                known(text_of(&facts.device)).is_some_and(|text| names.contains(text))
            }
            Self::Version(version_of, requirement) => {
                version_of(facts).is_some_and(|version| requirement.matches(version))
            }
            Self::Build { min, max } => facts
                .device
                .build
                .is_some_and(|build| (*min..=*max).contains(&build)),
            Self::DeviceModel(globs) => known(facts.device.device_model)
                .is_some_and(|model| globs.iter().any(|glob| glob.matches(model))),
            Self::Locale(locales) => known(facts.device.locale)
                .is_some_and(|locale| locales.iter().any(|outer| is_within(locale, outer))),
            Self::Percentage { salt, below } => {
                known(facts.device.install_id).is_some_and(|id| salt.bucket(id) < *below)
            }
        }
    }

    /// Returns the result if it is the same for every device.
    pub(super) fn constant(&self) -> Option<bool> {
        match self {
            Self::All(parts) => folded(parts, false),
            Self::Any(parts) => folded(parts, true),
            Self::Not(part) => part.constant().map(|constant| !constant),
            _ => None,
        }
    }
}

/// Returns the constant result of combined parts: `decisive` if any part always is, its opposite if all parts always are.
fn folded(parts: &[Predicate], decisive: bool) -> Option<bool> {
    let constants = || parts.iter().map(Predicate::constant);
    if constants().any(|constant| constant == Some(decisive)) {
        return Some(decisive);
    }
    constants()
        .all(|constant| constant.is_some())
        .then_some(!decisive)
}

/// Treats an empty attribute as unknown.
pub(super) fn known(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// Whether a locale equals `outer`, or starts with it and a separator.
fn is_within(locale: &str, outer: &str) -> bool {
    let same = |(one, other): (u8, u8)| {
        one.eq_ignore_ascii_case(&other) || matches!((one, other), (b'_', b'-') | (b'-', b'_'))
    };
    let (locale, outer) = (locale.as_bytes(), outer.as_bytes());
    locale.len() >= outer.len()
        && matches!(locale.get(outer.len()), None | Some(b'-' | b'_'))
        && locale.iter().copied().zip(outer.iter().copied()).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_matches_its_regions() {
        for (locale, outer, expected) in [
            ("de-AT", "de", true),
            ("de_AT", "de-at", true),
            ("de", "de", true),
            ("den", "de", false),
            ("de", "de-AT", false),
            ("zh-Hant-TW", "zh_hant", true),
        ] {
            assert_eq!(is_within(locale, outer), expected, "{locale} {outer}");
        }
    }
}
