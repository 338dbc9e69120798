//! What an incident does to the remote configuration while it goes on: as the rule says it, and as it was done.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::check::RuleFault;
use super::rule::Metric;
use crate::remote_config::Override;

/// While an incident fires, the devices it is about send more, so that the evidence collects itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertAction)]
pub struct Action {
    /// The shares that are kept, 0 to 1. They are only ever raised.
    #[serde(default)]
    pub sampling: Raised,
    /// Whether the spans that the rule watches by name are traced where they are not. For `spans` only.
    #[serde(default)]
    pub tracing: bool,
    /// How many more events a day all incidents of the rule together may bring. 1 to 1,000,000,000,000.
    #[serde(default = "half_a_million")]
    #[schema(minimum = 1, maximum = 1_000_000_000_000_u64)]
    pub events_per_day: u64,
    /// It ends after so many hours, should the incident go on: 1 to 168.
    #[serde(default = "a_day")]
    #[schema(minimum = 1, maximum = 168)]
    pub hours: u32,
}

/// Shares by signal, as in `sampling` of the remote configuration. What is left out stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertSampling)]
pub struct Raised {
    /// Of the spans that the rule watches by name; else of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub spans: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub frame_windows: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub janks: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub page_loads: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub metrics: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub recompositions: Option<f64>,
}

/// What became of an incident's action.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = IncidentAction)]
pub struct Acted {
    /// `placed`; `refused`: nothing was placed; `ended`: it was taken back, or somebody else did so.
    pub state: String,
    /// Why, of what was refused or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The rule's action when it was tried.
    pub asked: Action,
    /// The revision of the remote configuration in which it was written last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// The shares that fit the budget, by signal: lower than asked, perhaps.
    pub rates: BTreeMap<String, f64>,
    /// How many more events a day it was to bring, by what the installs sent in the 24 hours before.
    pub foreseen_events_per_day: f64,
    /// Installs of the 24 hours before that it changed something for.
    pub installs: u64,
    /// What that does not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Microseconds since the epoch, as are those below.
    pub at: i64,
    /// Until when it holds at the longest.
    pub until: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// The override as it was written.
    #[serde(default, rename = "override", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Override>)]
    pub written: Option<Override>,
}

impl Raised {
    /// By the names that the remote configuration has for them.
    #[must_use]
    pub fn by_name(&self) -> [(&'static str, Option<f64>); 6] {
        [
            ("spans", self.spans),
            ("frame_windows", self.frame_windows),
            ("janks", self.janks),
            ("page_loads", self.page_loads),
            ("metrics", self.metrics),
            ("recompositions", self.recompositions),
        ]
    }
}

impl Action {
    pub(super) fn faults(&self, metric: &Metric) -> Vec<RuleFault> {
        let mut faults = Vec::new();
        let mut fault = |path: String, message: &str| {
            let message = message.to_owned();
            faults.push(RuleFault { path, message });
        };
        let rates = self.sampling.by_name();
        for (name, rate) in rates {
            if rate.is_some_and(|rate| !(0.0..=1.0).contains(&rate)) {
                fault(format!("action.sampling.{name}"), "0 to 1");
            }
        }
        if rates.iter().all(|(_, rate)| rate.is_none()) && !self.tracing {
            fault(
                "action".to_owned(),
                "raise a share in `sampling`, or switch `tracing` on",
            );
        }
        if self.tracing && !names_spans(metric) {
            let message = "spans are watched by name for that: `spans` with `name` in `metric.by` or among the filters";
            fault("action.tracing".to_owned(), message);
        }
        if !(1..=1_000_000_000_000).contains(&self.events_per_day) {
            fault("action.events_per_day".to_owned(), "1 to 1000000000000");
        }
        if !(1..=168).contains(&self.hours) {
            fault("action.hours".to_owned(), "1 to 168");
        }
        faults
    }
}

fn names_spans(metric: &Metric) -> bool {
    let named = metric.by.iter().any(|name| name == "name") || metric.filters.contains_key("name");
    metric.signal == "spans" && named
}

fn half_a_million() -> u64 {
    500_000
}

fn a_day() -> u32 {
    24
}
