//! A rule as people write it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::action::Action;
use super::mute_window::MuteWindow;
use crate::store::control::Severity;

/// What is watched, and when that is worth an incident.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertRuleDocument)]
pub struct Rule {
    /// Names it, for people: 1 to 200 characters.
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
    #[serde(default = "warning")]
    #[schema(inline)]
    pub severity: Severity,
    /// Who looks after it, such as a team. At most 200 characters.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub owner: String,
    #[serde(default = "yes")]
    pub enabled: bool,
    pub metric: Metric,
    /// How much time is looked at, up to now: 5 minutes to 30 days. Of whole days when the signal is kept by the day.
    #[serde(default = "an_hour")]
    #[schema(minimum = 5, maximum = 43_200)]
    pub window_minutes: u32,
    pub condition: Condition,
    /// How long the condition must hold before there is an incident: up to a week.
    #[serde(default = "five")]
    #[schema(maximum = 10_080)]
    pub for_minutes: u32,
    /// How long an incident outlasts the last answer when there are too few samples to say: up to a week.
    #[serde(default = "two_hours")]
    #[schema(maximum = 10_080)]
    pub keep_minutes: u32,
    /// With fewer samples, on either side of a comparison, nothing is said. Not used for absence.
    #[serde(default = "hundred")]
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub least_samples: u32,
    /// When no incidents are opened, each week. At most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 20)]
    pub mute_windows: Vec<MuteWindow>,
    /// What an incident does to the remote configuration, for as long as it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
}

/// A number, in the words of `GET …/query/{signal}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertMetric)]
pub struct Metric {
    /// Such as `spans`.
    pub signal: String,
    /// Such as `p95_us`.
    pub measure: String,
    /// Each group of these dimensions is watched by itself: the 200 largest. Two dimensions at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 2)]
    pub by: Vec<String>,
    /// Only events with one of these values, by dimension; with `contains.` before its name: with this text in the value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filters: BTreeMap<String, Vec<String>>,
}

/// Which direction is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Worse {
    Up,
    Down,
}

/// Which time of the previous version is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// The same time, from when the newer version was first seen.
    #[default]
    SameDays,
    /// The same time of its life, counted from when each was first seen.
    SameAge,
}

/// When it is bad.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schema(as = AlertCondition)]
pub enum Condition {
    /// The number is above or below a bound: one of them.
    Threshold {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        above: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        below: Option<f64>,
        /// An incident ends on the good side of this; the bound itself when left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recover: Option<f64>,
    },
    /// Worse than in the version before: enough samples, an effect, and significance.
    Regression {
        #[serde(default)]
        #[schema(inline)]
        compare: Compare,
        #[serde(default)]
        effect: Effect,
    },
    /// Worse than at the same time last week. Whole hours, or whole days from three days on.
    LastWeek {
        #[serde(default)]
        effect: Effect,
    },
    /// Nothing arrived in the window, of what did arrive in the 7 days before it.
    Absence {},
}

/// What counts as worse.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertEffect)]
pub struct Effect {
    /// Which direction is bad; what the measure says of itself when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub worse: Option<Worse>,
    /// The least change, as a part of what it is compared with: 0.2 is 20 %. 0 to 100.
    #[serde(default = "a_fifth")]
    #[schema(minimum = 0, maximum = 100)]
    pub least_relative: f64,
    /// The least change in the measure's own unit.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub least_absolute: f64,
    /// The chance, by accident alone, of so much of a difference: below it, it counts. Over all groups together. 1: no test is made.
    #[serde(default = "one_in_a_thousand")]
    #[schema(exclusive_minimum = 0, maximum = 1)]
    pub significance: f64,
    /// An incident ends when the change falls below this part of the least one. 0 to 1.
    #[serde(default = "half")]
    #[schema(minimum = 0, maximum = 1)]
    pub recover: f64,
}

impl Default for Effect {
    fn default() -> Self {
        Self {
            worse: None,
            least_relative: a_fifth(),
            least_absolute: 0.0,
            significance: one_in_a_thousand(),
            recover: half(),
        }
    }
}

impl Rule {
    /// Whether both watch the same: incidents of one are incidents of the other.
    #[must_use]
    pub fn watches_the_same(&self, other: &Self) -> bool {
        self.metric == other.metric
            && self.window_minutes == other.window_minutes
            && self.condition == other.condition
            && self.least_samples == other.least_samples
    }

    #[must_use]
    pub(super) fn window(&self) -> i64 {
        minutes(self.window_minutes)
    }
}

pub(super) fn minutes(minutes: u32) -> i64 {
    i64::from(minutes) * 60_000_000
}

fn warning() -> Severity {
    Severity::Warning
}

fn yes() -> bool {
    true
}

fn an_hour() -> u32 {
    60
}

fn five() -> u32 {
    5
}

fn two_hours() -> u32 {
    120
}

fn hundred() -> u32 {
    100
}

fn a_fifth() -> f64 {
    0.2
}

fn one_in_a_thousand() -> f64 {
    0.001
}

fn half() -> f64 {
    0.5
}
