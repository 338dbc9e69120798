//! The parts of a condition that decide whether it holds for a device, for people who ask why.

use serde::Serialize;

use super::condition::{BuildRange, Condition, Percentage};
use super::condition_check;
use super::device::Facts;
use super::fault::Faults;
use super::percentage::{BUCKETS, bucket};
use super::predicate::known;

/// The most parts of a condition that are listed.
const MOST_PARTS: usize = 20;
/// The most values of a part that are listed. A condition may name 100,000 installs.
const MOST_VALUES: usize = 5;

/// The conditions on a single attribute. The names are those of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConditionName {
    AppId,
    AppVersion,
    Build,
    OsName,
    OsVersion,
    DeviceModel,
    DeviceClass,
    Network,
    Locale,
    SdkVersion,
    UserId,
    InstallId,
    Percentage,
}

/// A part of a condition that the device does not meet.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct UnmetPart {
    pub condition: ConditionName,
    /// Whether the device must not match the values. It does.
    pub negated: bool,
    /// The value of the device. `null` if it is unknown. For a percentage, the install id.
    pub device: Option<String>,
    /// The values that the condition lists, or its requirement. At most 5. Empty for a percentage.
    #[schema(max_items = 5)]
    pub wanted: Vec<String>,
    /// The number of values that are not in `wanted`.
    pub left_out: u64,
    /// Only for a percentage.
    pub percentage: Option<PercentageOfInstall>,
}

/// A percentage of installs, and the place of one install in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct PercentageOfInstall {
    /// The condition holds for installs whose place is below this percentage.
    #[schema(minimum = 0, maximum = 100)]
    pub below: f64,
    /// The place of the install, 0 to 100. `null` if the install is unknown.
    #[schema(minimum = 0, maximum = 100)]
    pub install: Option<f64>,
}

/// Judges the conditions of one override for one device.
pub(super) struct Judge<'j, 'd> {
    /// The id of the override: the default salt of a percentage.
    id: &'j str,
    facts: &'j Facts<'d>,
    faults: Faults,
}

/// The result for a condition, and the parts that decide it.
pub(super) struct Judged<'c> {
    pub(super) holds: bool,
    parts: Vec<Part<'c>>,
}

/// A condition on a single attribute.
struct Part<'c> {
    condition: &'c Condition,
    negated: bool,
}

impl<'j, 'd> Judge<'j, 'd> {
    pub(super) fn new(id: &'j str, facts: &'j Facts<'d>) -> Self {
        Self {
            id,
            facts,
            faults: Faults::new(),
        }
    }

    /// Judges a condition. Each part on a single attribute is compiled as for devices, so both get the same result.
    pub(super) fn judge<'c>(&mut self, condition: &'c Condition) -> Judged<'c> {
        match condition {
            Condition::All(parts) => self.joined(parts, false),
            Condition::Any(parts) => self.joined(parts, true),
            Condition::Not(part) => self.judge(part).negated(),
            part => {
                let predicate = condition_check::compile(part, "", self.id, &mut self.faults);
                Judged {
                    holds: predicate.matches(self.facts),
                    parts: vec![Part {
                        condition: part,
                        negated: false,
                    }],
                }
            }
        }
    }

    /// Judges several conditions: one with the result `decisive` decides, otherwise all of them do.
    fn joined<'c>(&mut self, conditions: &'c [Condition], decisive: bool) -> Judged<'c> {
        let judged: Vec<_> = conditions.iter().map(|one| self.judge(one)).collect();
        let is_decided = judged.iter().any(|one| one.holds == decisive);
        let holds = is_decided == decisive;
        let deciding = judged.into_iter().filter(|one| one.holds == holds);
        Judged {
            holds,
            parts: deciding.flat_map(|one| one.parts).collect(),
        }
    }

    /// Returns the deciding parts of a condition that does not hold, at most 20, and the number of all of them.
    pub(super) fn unmet(&self, judged: &Judged<'_>) -> (Vec<UnmetPart>, usize) {
        if judged.holds {
            return (Vec::new(), 0);
        }
        let listed = judged.parts.iter().take(MOST_PARTS);
        let listed = listed.filter_map(|part| self.shown(part)).collect();
        (listed, judged.parts.len())
    }

    fn shown(&self, part: &Part<'_>) -> Option<UnmetPart> {
        let device = &self.facts.device;
        let one = std::slice::from_ref::<String>;
        let range;
        let (condition, value, wanted) = match part.condition {
            Condition::AppId(ids) => (ConditionName::AppId, device.app_id, ids.as_slice()),
            Condition::AppVersion(text) => {
                (ConditionName::AppVersion, device.app_version, one(text))
            }
            Condition::Build(wanted) => {
                range = range_text(*wanted);
                (ConditionName::Build, None, one(&range))
            }
            Condition::OsName(names) => (ConditionName::OsName, device.os_name, names.as_slice()),
            Condition::OsVersion(text) => (ConditionName::OsVersion, device.os_version, one(text)),
            Condition::DeviceModel(globs) => (
                ConditionName::DeviceModel,
                device.device_model,
                globs.as_slice(),
            ),
            Condition::DeviceClass(names) => (
                ConditionName::DeviceClass,
                device.device_class,
                names.as_slice(),
            ),
            Condition::Network(names) => (ConditionName::Network, device.network, names.as_slice()),
            Condition::Locale(names) => (ConditionName::Locale, device.locale, names.as_slice()),
            Condition::SdkVersion(text) => {
                (ConditionName::SdkVersion, device.sdk_version, one(text))
            }
            Condition::UserId(ids) => (ConditionName::UserId, device.user_id, ids.as_slice()),
            Condition::InstallId(ids) => {
                (ConditionName::InstallId, device.install_id, ids.as_slice())
            }
            Condition::Percentage(_) => (
                ConditionName::Percentage,
                device.install_id,
                Default::default(),
            ),
            Condition::All(_) | Condition::Any(_) | Condition::Not(_) => return None,
        };
        let build = device.build.filter(|_| condition == ConditionName::Build);
        Some(UnmetPart {
            condition,
            negated: part.negated,
            device: known(value)
                .map(str::to_owned)
                .or_else(|| build.map(|build| build.to_string())),
            wanted: wanted.iter().take(MOST_VALUES).cloned().collect(),
            left_out: wanted.len().saturating_sub(MOST_VALUES) as u64,
            percentage: match part.condition {
                Condition::Percentage(of) => Some(self.place(of)),
                _ => None,
            },
        })
    }

    /// Returns the place of the install among all installs, in the order in which a percentage selects them.
    fn place(&self, percentage: &Percentage) -> PercentageOfInstall {
        let salt = percentage.salt.as_deref().unwrap_or(self.id);
        let install = known(self.facts.device.install_id);
        let place = |id: &str| f64::from(bucket(salt, id)) * 100.0 / f64::from(BUCKETS);
        PercentageOfInstall {
            below: percentage.percent,
            install: install.map(place),
        }
    }
}

impl Judged<'_> {
    /// Returns the result of the opposite condition.
    fn negated(mut self) -> Self {
        self.holds = !self.holds;
        for part in &mut self.parts {
            part.negated = !part.negated;
        }
        self
    }
}

fn range_text(range: BuildRange) -> String {
    match (range.min, range.max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => String::new(),
    }
}
