//! An alert rule as users write it.

pub(crate) mod action;
pub(crate) mod mute_window;
pub(crate) mod templates;
pub(crate) mod validation;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use unjank_database::Severity;
use utoipa::ToSchema;

use crate::alerts::rule::action::Action;
use crate::alerts::rule::mute_window::MuteWindow;

/// What to watch, and when to open an incident.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertRuleDocument)]
pub struct Rule {
    /// The display name: 1 to 200 characters.
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
    #[serde(default = "warning")]
    #[schema(inline)]
    pub severity: Severity,
    /// Who is responsible for the rule, such as a team. At most 200 characters.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub owner: String,
    #[serde(default = "yes")]
    pub enabled: bool,
    pub metric: Metric,
    /// The length of the window up to now: 5 minutes to 30 days. Whole days if the signal is stored per day.
    #[serde(default = "an_hour")]
    #[schema(minimum = 5, maximum = 43_200)]
    pub window_minutes: u32,
    pub condition: Condition,
    /// How long the condition must hold before an incident is opened: up to a week.
    #[serde(default = "five")]
    #[schema(maximum = 10_080)]
    pub for_minutes: u32,
    /// How long an incident stays open while there are too few samples to decide: up to a week.
    #[serde(default = "two_hours")]
    #[schema(maximum = 10_080)]
    pub keep_minutes: u32,
    /// With fewer samples, on either side of a comparison, a group is not judged. Not used for absence.
    #[serde(default = "hundred")]
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub least_samples: u32,
    /// Weekly times in which no incidents are opened. At most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 20)]
    pub mute_windows: Vec<MuteWindow>,
    /// What an incident changes in the remote configuration while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
}

/// The number to watch, with the names of `GET …/query/{signal}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertMetric)]
pub struct Metric {
    /// Such as `spans`.
    pub signal: String,
    /// Such as `p95_us`.
    pub measure: String,
    /// The dimensions to group by, at most two. The 200 largest groups are watched separately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 2)]
    pub by: Vec<String>,
    /// Only events with one of these values, by dimension. With the prefix `contains.`, only events whose value contains one of them.
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

/// Which period of the previous version to compare with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// The same period, from when the newer version was first seen.
    #[default]
    SameDays,
    /// The period at the same age, counted from when each version was first seen.
    SameAge,
}

/// When the number is bad.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schema(as = AlertCondition)]
pub enum Condition {
    /// The number is above or below a bound. Set one of the two.
    Threshold {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        above: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        below: Option<f64>,
        /// An incident ends on the good side of this value. Default: the bound itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recover: Option<f64>,
    },
    /// Worse than in the previous version, with enough samples, an effect, and significance.
    Regression {
        #[serde(default)]
        #[schema(inline)]
        compare: Compare,
        #[serde(default)]
        effect: Effect,
    },
    /// Worse than at the same time last week. The window is whole hours, or whole days from three days on.
    LastWeek {
        #[serde(default)]
        effect: Effect,
    },
    /// Nothing arrived in the window from a group that sent data in the 7 days before.
    Absence {},
    /// A group has `least_samples` events in the window and had none in the days before it.
    Appearance {
        /// For how many days before the window the group must not have occurred: 1 to 60.
        #[serde(default = "four_weeks")]
        #[schema(minimum = 1, maximum = 60)]
        unseen_days: u32,
    },
}

/// Which change counts as worse.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertEffect)]
pub struct Effect {
    /// Which direction is bad. Default: that of the measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub worse: Option<Worse>,
    /// The minimum change, relative to the base: 0.2 is 20 %. 0 to 100.
    #[serde(default = "a_fifth")]
    #[schema(minimum = 0, maximum = 100)]
    pub least_relative: f64,
    /// The minimum change in the unit of the measure.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub least_absolute: f64,
    /// The significance level over all groups together. A change with a lower p-value is significant. 1 turns the test off.
    #[serde(default = "one_in_a_thousand")]
    #[schema(exclusive_minimum = 0, maximum = 1)]
    pub significance: f64,
    /// An incident ends when the change falls below this fraction of the minimum. 0 to 1.
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
    /// Whether both rules watch the same, so that open incidents stay valid.
    #[must_use]
    pub fn watches_the_same(&self, other: &Self) -> bool {
        self.metric == other.metric
            && self.window_minutes == other.window_minutes
            && self.condition == other.condition
            && self.least_samples == other.least_samples
    }

    #[must_use]
    pub(crate) fn window(&self) -> Duration {
        minutes(self.window_minutes)
    }
}

pub(crate) fn minutes(minutes: u32) -> Duration {
    Duration::from_secs(u64::from(minutes) * 60)
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

fn four_weeks() -> u32 {
    28
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
