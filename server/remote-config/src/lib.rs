//! Remote configuration: validates and compiles what operators write, and resolves it for each device.
//!
//! A [`Configuration`] is a base document and an ordered list of overrides, each with a condition and a JSON Merge
//! Patch. [`Compiled`] is the same, ready to serve: [`Compiled::resolve`] finds the overrides that match a device and
//! returns the document with all of their patches applied in order, so the last one wins.
//!
//! This module is pure: no files, network, database or HTTP, and time is a parameter. The caller passes in the
//! [`Device`] and the current time.

mod attributes;
mod check;
mod compiled;
mod condition;
mod condition_check;
mod configuration;
mod device;
mod document_rules;
mod explain;
mod fault;
mod flags;
mod forecast;
mod json_schema;
mod merge_patch;
mod overrides;
mod percentage;
mod predicate;
mod reach;
mod requirement;
mod resolve;
mod sampling;
mod schema;
mod shadow;
mod shape;
mod unmet;
mod version;

#[cfg(test)]
mod every_key;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod worked_examples;

pub use self::attributes::Attributes;
pub use self::compiled::Compiled;
pub use self::condition::{BuildRange, Condition, Percentage};
pub use self::condition_check::ConditionLimits;
pub use self::configuration::{Configuration, Override};
pub use self::device::Device;
pub use self::explain::{
    Explained, ExplainedKey, ExplainedOverride, KeySource, OverriddenKey, OverrideOutcome,
};
pub use self::fault::{Fault, FaultCode};
pub use self::flags::Reason;
pub use self::forecast::{Forecast, ForecastResult, SignalForecast};
pub use self::json_schema::base_schema;
pub use self::percentage::{BUCKETS, bucket};
pub use self::reach::Reach;
pub use self::resolve::{Resolved, etag};
pub use self::shadow::INCIDENT_ID_PREFIX;
pub use self::unmet::{ConditionName, PercentageOfInstall, UnmetPart};
pub use self::version::{exact_requirement, version_and_build, version_order};
