//! What an incident changes in the remote configuration while it is open: the action of its rule, and the outcome.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unjank_database::ActionState;
use unjank_foundation::clock::UnixTime;
use unjank_remote_config::Override;
use utoipa::ToSchema;

use crate::alerts::rule::Metric;
use crate::alerts::rule::validation::RuleFault;

/// Raises the sampling rates of the affected devices while an incident fires, to collect more evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertAction)]
pub struct Action {
    /// The sampling rates to raise to, 0 to 1. A rate is never lowered.
    #[serde(default)]
    pub sampling: SamplingRates,
    /// Whether to trace the spans that the rule watches by name. Only for `spans`.
    #[serde(default)]
    pub tracing: bool,
    /// The budget of additional events per day for all incidents of the rule together. 1 to 1,000,000,000,000.
    #[serde(default = "half_a_million")]
    #[schema(minimum = 1, maximum = 1_000_000_000_000_u64)]
    pub events_per_day: u64,
    /// The override ends after this many hours even if the incident is still open. 1 to 168.
    #[serde(default = "a_day")]
    #[schema(minimum = 1, maximum = 168)]
    pub hours: u32,
}

/// Sampling rates by signal, as in `sampling` of the remote configuration. A signal that is left out keeps its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AlertSampling)]
pub struct SamplingRates {
    /// For the spans that the rule watches by name. If it watches none by name, for all spans.
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

/// The outcome of an incident's action.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = IncidentAction)]
pub struct ActionOutcome {
    pub state: ActionState,
    /// Why the action was refused or the override ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The rule's action at the time it was tried.
    pub asked: Action,
    /// The revision of the remote configuration that last changed the override.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// The sampling rates that fit the budget, by signal. They can be lower than the requested rates.
    pub rates: BTreeMap<String, f64>,
    /// The expected number of additional events per day, estimated from what installs sent in the 24 hours before.
    pub foreseen_events_per_day: f64,
    /// The number of installs seen in these 24 hours that the override changes something for.
    pub installs: u64,
    /// What the estimate does not cover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// When the action was tried.
    pub at: UnixTime,
    /// When the override expires.
    pub until: UnixTime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<UnixTime>,
    /// The override as saved.
    #[serde(default, rename = "override", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Override>)]
    pub written: Option<Override>,
}

impl SamplingRates {
    /// Returns the rates with their names in the remote configuration.
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

    pub(crate) fn from_names(rates: &BTreeMap<String, f64>) -> Self {
        let rate = |name: &str| rates.get(name).copied();
        Self {
            spans: rate("spans"),
            frame_windows: rate("frame_windows"),
            janks: rate("janks"),
            page_loads: rate("page_loads"),
            metrics: rate("metrics"),
            recompositions: rate("recompositions"),
        }
    }
}

impl Action {
    pub(crate) fn faults(&self, metric: &Metric) -> Vec<RuleFault> {
        let mut faults = Vec::new();
        let mut fault = |path: String, message: &str| {
            let message = message.to_owned();
            faults.push(RuleFault { path, message });
        };
        let rates = self.sampling.by_name();
        for (name, rate) in rates {
            if rate.is_some_and(|rate| !(0.0..=1.0).contains(&rate)) {
                fault(format!("action.sampling.{name}"), "must be between 0 and 1");
            }
        }
        if rates.iter().all(|(_, rate)| rate.is_none()) && !self.tracing {
            fault(
                "action".to_owned(),
                "set a rate in `sampling`, or turn `tracing` on",
            );
        }
        if self.tracing && !names_spans(metric) {
            let message = "requires a rule that watches `spans` by name: add `name` to `metric.by` or to the filters";
            fault("action.tracing".to_owned(), message);
        }
        if !(1..=1_000_000_000_000).contains(&self.events_per_day) {
            let message = "must be between 1 and 1000000000000";
            fault("action.events_per_day".to_owned(), message);
        }
        if !(1..=168).contains(&self.hours) {
            fault("action.hours".to_owned(), "must be between 1 and 168");
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
