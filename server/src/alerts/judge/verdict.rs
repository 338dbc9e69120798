//! The verdict of an evaluation on a group, with its numbers.

use std::collections::BTreeMap;

use serde::Serialize;
use unjank_database::JsonText;
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;

use crate::alerts::incident::states::Observation;

/// The values of dimensions, by name.
pub(crate) type Group = BTreeMap<String, String>;

/// The result of evaluating a group at a given time.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub group: Group,
    pub observed: Observation,
    pub numbers: Numbers,
    pub sides: Sides,
}

/// The numbers behind a verdict. Numbers that do not apply or were not measured are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = AlertNumbers)]
pub struct Numbers {
    /// The value of the measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The value that it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<f64>,
    /// The number of events behind `value`, as sent.
    pub samples: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_samples: Option<f64>,
    /// `value - base`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
    /// `change` relative to `base`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<f64>,
    /// The bound that the value or its relative change is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// The probability of such a difference by chance, for this group alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// `p`, corrected for the number of compared groups (Holm).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_corrected: Option<f64>,
    /// The number of compared groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<usize>,
    /// The independent values of the test on either side, one per install.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installs: Option<(u64, u64)>,
    /// The relative change between like devices. If known, it decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standardised: Option<f64>,
}

/// The two sides of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = AlertSides)]
pub struct Sides {
    pub from: UnixTime,
    pub to: UnixTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_from: Option<UnixTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_to: Option<UnixTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_version: Option<String>,
}

impl Verdict {
    /// Returns the key of the group in the control database. Equal groups have equal keys.
    #[must_use]
    pub fn group_key(&self) -> JsonText {
        JsonText::new(&self.group)
    }
}

/// Returns the value if JSON can represent it.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
