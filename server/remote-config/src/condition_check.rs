//! Compiles a condition to a predicate and collects its faults.

use hashbrown::HashSet;
use unjank_foundation::ids::canonical_id;
use unjank_protocol::{Glob, Network};

use super::check::{closest, hint};
use super::condition::{BuildRange, Condition, Percentage};
use super::fault::{Fault, FaultCode, Faults};
use super::percentage::{Salted, buckets_of};
use super::predicate::{Names, Predicate, TextOf, VersionOf};
use super::requirement::Requirement;

/// The limits of the condition of an override.
#[derive(Clone, Copy, Debug)]
pub struct ConditionLimits;

impl ConditionLimits {
    /// The maximum nesting depth.
    pub const DEPTH: usize = 16;
    /// The maximum number of conditions, nested ones included.
    pub const CONDITIONS: usize = 1_000;
    /// The maximum number of ids in a list. Much higher than for names: ids are looked up in a set, names are compared one by one.
    pub const IDS: usize = 100_000;
    /// The maximum number of names, globs or locales in a list.
    pub const NAMES: usize = 256;
    /// The maximum length of an entry of a list and of a salt, in bytes.
    pub const TEXT_BYTES: usize = 1_024;
}

const MAX_DEPTH: usize = ConditionLimits::DEPTH;
const MAX_CONDITIONS: usize = ConditionLimits::CONDITIONS;
const MAX_IDS: usize = ConditionLimits::IDS;
const MAX_NAMES: usize = ConditionLimits::NAMES;
const MAX_TEXT_BYTES: usize = ConditionLimits::TEXT_BYTES;

/// Compiles the condition of one override.
pub(super) struct ConditionCheck<'a> {
    /// The id of the override: the default salt of a percentage.
    id: &'a str,
    conditions: usize,
    faults: &'a mut Faults,
}

/// Compiles a condition. If there are faults, the returned predicate must not be used.
pub(super) fn compile(
    condition: &Condition,
    path: &str,
    id: &str,
    faults: &mut Faults,
) -> Predicate {
    let before = faults.len();
    let mut check = ConditionCheck {
        id,
        conditions: 0,
        faults,
    };
    let predicate = check.compile(condition, path, 0);
    if faults.len() == before && predicate.constant() == Some(false) {
        let message = "matches no device; to turn the override off, disable it";
        faults.push(Fault::new(path, FaultCode::NeverMatches, message));
    }
    predicate
}

impl ConditionCheck<'_> {
    fn compile(&mut self, condition: &Condition, path: &str, depth: usize) -> Predicate {
        self.conditions += 1;
        if depth > MAX_DEPTH || self.conditions > MAX_CONDITIONS {
            // Reported once: all further conditions exceed the limit too.
            if depth > MAX_DEPTH || self.conditions == MAX_CONDITIONS + 1 {
                let message = format!(
                    "too many conditions: at most {MAX_CONDITIONS} in an override, nested at most {MAX_DEPTH} deep"
                );
                self.fault(path, FaultCode::TooLarge, message);
            }
            return Predicate::all(Vec::new());
        }
        let at = |key: &str| format!("{path}.{key}");
        match condition {
            Condition::All(parts) => Predicate::all(self.parts(parts, &at("all"), depth)),
            Condition::Any(parts) => {
                self.not_empty(parts, &at("any"));
                Predicate::any(self.parts(parts, &at("any"), depth))
            }
            Condition::Not(part) => {
                Predicate::Not(Box::new(self.compile(part, &at("not"), depth + 1)))
            }
            Condition::AppId(ids) => self.ids(ids, &at("app_id"), |device| device.app_id),
            Condition::UserId(ids) => self.ids(ids, &at("user_id"), |device| device.user_id),
            Condition::InstallId(ids) => {
                self.texts(ids, MAX_IDS, &at("install_id"));
                let ids = ids.iter().map(|id| canonical_id(id).into_boxed_str());
                Predicate::OneOf(|device| device.install_id, Names::Exact(ids.collect()))
            }
            Condition::OsName(names) => self.names(names, &at("os_name"), |device| device.os_name),
            Condition::DeviceClass(names) => {
                self.names(names, &at("device_class"), |device| device.device_class)
            }
            Condition::Network(names) => self.networks(names, &at("network")),
            Condition::DeviceModel(globs) => {
                self.texts(globs, MAX_NAMES, &at("device_model"));
                Predicate::DeviceModel(globs.iter().map(|glob| Glob::new(glob)).collect())
            }
            Condition::Locale(locales) => {
                self.texts(locales, MAX_NAMES, &at("locale"));
                Predicate::Locale(boxed(locales))
            }
            Condition::AppVersion(text) => {
                self.requirement(text, &at("app_version"), |facts| facts.app_version.get())
            }
            Condition::OsVersion(text) => {
                self.requirement(text, &at("os_version"), |facts| facts.os_version.get())
            }
            Condition::SdkVersion(text) => {
                self.requirement(text, &at("sdk_version"), |facts| facts.sdk_version.get())
            }
            Condition::Build(range) => self.build(*range, &at("build")),
            Condition::Percentage(percentage) => self.percentage(percentage, &at("percentage")),
        }
    }

    fn parts(&mut self, parts: &[Condition], path: &str, depth: usize) -> Vec<Predicate> {
        let parts = parts.iter().enumerate();
        parts
            .map(|(index, part)| self.compile(part, &format!("{path}[{index}]"), depth + 1))
            .collect()
    }

    fn ids(&mut self, ids: &[String], path: &str, text_of: TextOf) -> Predicate {
        self.texts(ids, MAX_IDS, path);
        let ids: HashSet<Box<str>> = ids.iter().map(|id| id.as_str().into()).collect();
        Predicate::OneOf(text_of, Names::Exact(ids))
    }

    fn names(&mut self, names: &[String], path: &str, text_of: TextOf) -> Predicate {
        self.texts(names, MAX_NAMES, path);
        Predicate::OneOf(text_of, Names::AnyCase(boxed(names)))
    }

    fn networks(&mut self, names: &[String], path: &str) -> Predicate {
        for (index, name) in names.iter().enumerate() {
            let known = Network::ALL.iter().map(|network| network.as_str());
            if !name.is_empty()
                && !known
                    .clone()
                    .any(|network| network.eq_ignore_ascii_case(name))
            {
                let list: Vec<_> = known.clone().collect();
                let message = format!(
                    "`{name}` is not one of {}{}",
                    list.join(", "),
                    hint(closest(name, known))
                );
                self.fault(&format!("{path}[{index}]"), FaultCode::UnknownName, message);
            }
        }
        self.names(names, path, |device| device.network)
    }

    fn requirement(&mut self, text: &str, path: &str, version_of: VersionOf) -> Predicate {
        match Requirement::parse(text) {
            Ok(requirement) => Predicate::Version(version_of, requirement),
            Err(message) => {
                self.fault(path, FaultCode::InvalidRequirement, message);
                Predicate::all(Vec::new())
            }
        }
    }

    fn build(&mut self, range: BuildRange, path: &str) -> Predicate {
        let (min, max) = (range.min.unwrap_or(0), range.max.unwrap_or(u64::MAX));
        if range.min.is_none() && range.max.is_none() {
            let message = "neither `min` nor `max` is set; set at least one";
            self.fault(path, FaultCode::Empty, message);
        } else if min > max {
            let message = format!("`min` {min} is above `max` {max}");
            self.fault(path, FaultCode::NeverMatches, message);
        }
        Predicate::Build { min, max }
    }

    fn percentage(&mut self, percentage: &Percentage, path: &str) -> Predicate {
        let below = buckets_of(percentage.percent).unwrap_or_else(|| {
            let message = format!(
                "is {}; must be 0 to 100 in steps of 0.001",
                percentage.percent
            );
            self.fault(&format!("{path}.percent"), FaultCode::OutOfRange, message);
            0
        });
        let salt = percentage.salt.as_deref();
        if salt.is_some_and(|salt| salt.is_empty() || salt.len() > MAX_TEXT_BYTES) {
            let message = format!(
                "must be 1 to {MAX_TEXT_BYTES} bytes long; omit it to use the override's id"
            );
            self.fault(&format!("{path}.salt"), FaultCode::OutOfRange, message);
        }
        Predicate::Percentage {
            salt: Salted::new(salt.unwrap_or(self.id)),
            below,
        }
    }

    fn texts(&mut self, texts: &[String], at_most: usize, path: &str) {
        self.not_empty(texts, path);
        if texts.len() > at_most {
            let message = format!("has {} entries; the limit is {at_most}", texts.len());
            self.fault(path, FaultCode::TooLarge, message);
            return;
        }
        for (index, text) in texts.iter().enumerate() {
            if text.is_empty() || text.len() > MAX_TEXT_BYTES {
                let message = format!("must be 1 to {MAX_TEXT_BYTES} bytes long");
                self.fault(&format!("{path}[{index}]"), FaultCode::OutOfRange, message);
            }
        }
    }

    fn not_empty<T>(&mut self, list: &[T], path: &str) {
        if list.is_empty() {
            let message =
                "is empty and matches no device; to match every device, write `{\"all\": []}`";
            self.fault(path, FaultCode::Empty, message);
        }
    }

    fn fault(&mut self, path: &str, code: FaultCode, message: impl Into<String>) {
        self.faults.push(Fault::new(path, code, message));
    }
}

fn boxed(texts: &[String]) -> Box<[Box<str>]> {
    texts.iter().map(|text| text.as_str().into()).collect()
}
