//! The condition that selects the devices of an override, as operators write it.
//!
//! A condition on an unknown attribute does not hold, so its `not` does. An attribute is unknown if its query parameter
//! is missing or empty, or if it should be a version and does not parse as one.

use serde::{Deserialize, Serialize};

/// Selects the devices of an override. In JSON, an object with one key: `{"os_name": ["android"]}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Every condition holds. `{"all": []}` selects every device.
    #[schema(no_recursion)]
    All(Vec<Self>),
    /// At least one condition holds.
    #[schema(no_recursion)]
    Any(Vec<Self>),
    /// The condition does not hold.
    #[schema(no_recursion)]
    Not(Box<Self>),
    /// The app is one of these. Matched exactly.
    AppId(Vec<String>),
    /// A version requirement: `">=4.12, <5"`. Comparators are joined by commas and must all hold. Each is `=`, `>`,
    /// `>=`, `<`, `<=`, `~` or `^` followed by a version of one to eight numbers; or `4.*`; or `*` for any version.
    ///
    /// Only the numbers written in the requirement are compared: `=4.12` holds for 4.12.3, and `>4.12` starts at 4.13.
    /// `~4.12.1` means at least 4.12.1 within 4.12; `^4.12` means at least 4.12 within 4. A pre-release counts as its
    /// version: `>=4.12` holds for 4.12.0-beta.1, and `<5` does not hold for 5.0.0-beta.1. A comparator that names a
    /// pre-release, such as `>=4.12.0-beta.2`, compares as semantic versioning does. A build, `+9` or ` (41)`, is compared
    /// only if the comparator names one: `=1.4.0` holds for 1.4.0+9, and `>=1.4.0+10` does not.
    AppVersion(String),
    /// The build number is within a range.
    Build(BuildRange),
    /// The operating system is one of these. Case-insensitive.
    OsName(Vec<String>),
    /// A version requirement, as for the app.
    OsVersion(String),
    /// The device model matches one of these globs: `*` matches any run of characters, `?` any single one.
    /// Case-insensitive.
    DeviceModel(Vec<String>),
    /// The device class is one of these. Case-insensitive.
    DeviceClass(Vec<String>),
    /// The network is one of these, as devices report it: `wifi`, `cellular_4g`, ….
    Network(Vec<String>),
    /// The locale is one of these or within one of them: `de` holds for `de-AT`. Case-insensitive; `_` equals `-`.
    Locale(Vec<String>),
    /// A version requirement, as for the app.
    SdkVersion(String),
    /// The user is one of these. Matched exactly, in the form the app sends.
    UserId(Vec<String>),
    /// The install is one of these. Case-insensitive.
    InstallId(Vec<String>),
    /// A percentage of all installs.
    Percentage(Percentage),
}

impl Condition {
    /// Whether any part of the condition depends on the network.
    pub(super) fn asks_for_network(&self) -> bool {
        self.any_part(&|part| matches!(part, Self::Network(_)))
    }

    /// Whether any part of the condition is a percentage of installs.
    pub(super) fn asks_for_share(&self) -> bool {
        self.any_part(&|part| matches!(part, Self::Percentage(_)))
    }

    /// Whether any part of the condition depends on the install: a list of installs, or a percentage of them.
    pub(super) fn asks_for_install(&self) -> bool {
        self.any_part(&|part| matches!(part, Self::Percentage(_) | Self::InstallId(_)))
    }

    /// Whether `holds` is true for any leaf of the condition.
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

/// Build numbers from `min` to `max`, inclusive. Either bound may be omitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BuildRange {
    /// The lowest build number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// The highest build number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

/// A percentage of all installs. Raising the percentage keeps every install that was already selected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Percentage {
    /// 0 to 100, in steps of 0.001.
    #[schema(minimum = 0, maximum = 100)]
    pub percent: f64,
    /// Decides the order in which installs are selected. Overrides with the same salt select the same installs;
    /// overrides with different salts select independently. Default: the override's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1_024)]
    pub salt: Option<String>,
}
