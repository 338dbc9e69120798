//! What an evaluation says of one group, with the numbers it stands on.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::machine::Observed;

/// The values of the dimensions, by their names.
pub(super) type Group = BTreeMap<String, String>;

/// What holds for a group at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub group: Group,
    pub observed: Observed,
    pub numbers: Numbers,
    pub sides: Sides,
}

/// The numbers behind it. What does not apply, or was not measured, is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = AlertNumbers)]
pub struct Numbers {
    /// What the measure is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// What it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<f64>,
    /// How many events it stands on, as they were sent.
    pub samples: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_samples: Option<f64>,
    /// `value - base`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
    /// The same as a part of `base`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<f64>,
    /// The bound that it is held against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// The chance of such a difference by accident alone, of this group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// The same, corrected for the groups that are compared (Holm).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_corrected: Option<f64>,
    /// How many groups are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<usize>,
    /// Independent values of the test, on either side: one of each install.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installs: Option<(u64, u64)>,
    /// The relative change where devices are compared with their like: what counts, when it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standardised: Option<f64>,
}

/// What is compared with what. Times are microseconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = AlertSides)]
pub struct Sides {
    pub from: i64,
    pub to: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_from: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_to: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_version: Option<String>,
}

impl Verdict {
    /// As it stands in the control database: the same group is the same text.
    #[must_use]
    pub fn group_key(&self) -> String {
        serde_json::to_string(&self.group).unwrap_or_default()
    }
}

/// What JSON can say.
pub(super) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
