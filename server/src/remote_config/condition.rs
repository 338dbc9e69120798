//! Which devices an override is for, as operators write it.
//!
//! A condition about something that is not known of a device (its query parameter is missing or empty, or a version does
//! not read as one) does not hold; hence `not` of it holds.

use serde::{Deserialize, Serialize};

/// Which devices an override is for. In JSON an object with one key: `{"os_name": ["android"]}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Every one holds. `{"all": []}` is every device.
    #[schema(no_recursion)]
    All(Vec<Self>),
    /// At least one holds.
    #[schema(no_recursion)]
    Any(Vec<Self>),
    /// It does not hold.
    #[schema(no_recursion)]
    Not(Box<Self>),
    /// The app is one of these. Exact.
    AppId(Vec<String>),
    /// A version requirement: `">=4.12, <5"`. Comparators joined by commas must all hold; each is `=`, `>`, `>=`, `<`,
    /// `<=`, `~` or `^` and a version of one to four numbers, or `4.*`, or `*` for any.
    ///
    /// Only the numbers that are written are compared, so `=4.12` holds for 4.12.3 and `>4.12` begins at 4.13. `~4.12.1`
    /// is at least that within 4.12, `^4.12` is at least that within 4. Pre-releases belong to their version, `>=4.12`
    /// holds for 4.12.0-beta.1 and `<5` does not for 5.0.0-beta.1, unless the comparator names a pre-release itself:
    /// `>=4.12.0-beta.2` compares them as semantic versioning does.
    AppVersion(String),
    /// The build number lies in a range.
    Build(BuildRange),
    /// The system is one of these. Case does not matter.
    OsName(Vec<String>),
    /// A version requirement, as for the app.
    OsVersion(String),
    /// The model matches one of these globs: `*` is any run of characters, `?` any one. Case does not matter.
    DeviceModel(Vec<String>),
    /// The device class is one of these. Case does not matter.
    DeviceClass(Vec<String>),
    /// The network is one of these, as devices name them: `wifi`, `cellular_4g`, ….
    Network(Vec<String>),
    /// The locale is one of these or within one: `de` holds for `de-AT`. Case does not matter, nor does `_` for `-`.
    Locale(Vec<String>),
    /// A version requirement, as for the app.
    SdkVersion(String),
    /// The user is one of these. Exact, in the form the app sends.
    UserId(Vec<String>),
    /// The install is one of these. Exact.
    InstallId(Vec<String>),
    /// A share of all installs.
    Percentage(Percentage),
}

impl Condition {
    /// Whether the network stands anywhere in it.
    pub(super) fn asks_for_network(&self) -> bool {
        self.any_part(&|part| matches!(part, Self::Network(_)))
    }

    /// Whether a share of all installs stands anywhere in it.
    pub(super) fn asks_for_share(&self) -> bool {
        self.any_part(&|part| matches!(part, Self::Percentage(_)))
    }

    /// Whether the install decides anywhere in it: by a list, or by a share of all.
    pub(super) fn asks_for_install(&self) -> bool {
        self.any_part(&|part| matches!(part, Self::Percentage(_) | Self::InstallId(_)))
    }

    /// Whether anything holds of a part that has no parts of its own.
    fn any_part(&self, holds: &impl Fn(&Self) -> bool) -> bool {
        match self {
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().any(|condition| condition.any_part(holds))
            }
            Self::Not(condition) => condition.any_part(holds),
            part => holds(part),
        }
    }
}

/// Build numbers from `min` to `max`, both included. Either may be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BuildRange {
    /// The lowest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// The highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

/// A share of all installs that only grows when the percentage is raised: those that were in stay in.
///
/// See [`super::bucket`] for the rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Percentage {
    /// 0 to 100, in steps of 0.001.
    #[schema(minimum = 0, maximum = 100)]
    pub percent: f64,
    /// Decides who comes first. Overrides with the same salt choose the same installs, others choose independently.
    /// Left out: the override's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1_024)]
    pub salt: Option<String>,
}
