//! The numbers that a preview judged and the bounds at which the rule fires, as lines over time.

use std::collections::BTreeSet;

use serde::Serialize;
use utoipa::ToSchema;

use crate::alerts::incident::replay::{PastRound, Transition};
use crate::alerts::incident::states::Observation;
use crate::alerts::judge::comparison::is_worse_up;
use crate::alerts::judge::verdict::{Group, Numbers, Verdict, finite};
use crate::alerts::rule::{Condition, Rule};

/// The numbers of a group, one per evaluation. Missing if the evaluation did not judge the group.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = AlertPreviewLine)]
pub struct Line {
    pub group: Group,
    pub values: Vec<Option<f64>>,
    /// The value beyond which the rule fires. In a comparison, it moves with the base.
    pub bounds: Vec<Option<f64>>,
}

const MOST_LINES: usize = 6;

/// Returns the lines of the groups that fired, in the order in which they fired, then of the groups with the most samples.
pub(super) fn lines(rule: &Rule, rounds: &[PastRound], transitions: &[Transition]) -> Vec<Line> {
    let mut seen = BTreeSet::new();
    let fired = transitions.iter().filter(|one| one.what == "fired");
    let mut groups: Vec<&Group> = fired.map(|one| &one.group).collect();
    let mut latest: Vec<&Verdict> = rounds.last().map_or(Vec::new(), |round| {
        let judged = |one: &&Verdict| one.observed != Observation::Unknown;
        round.verdicts.iter().filter(judged).collect()
    });
    latest.sort_by(|one, other| other.numbers.samples.total_cmp(&one.numbers.samples));
    groups.extend(latest.into_iter().map(|one| &one.group));
    groups.retain(|group| seen.insert(*group));
    groups.truncate(MOST_LINES);
    let line = |group: &Group| {
        let of = |round: &PastRound| {
            let found = round.verdicts.iter().find(|one| one.group == *group);
            found
                .filter(|one| one.observed != Observation::Unknown)
                .map(|one| one.numbers.clone())
        };
        let numbers: Vec<Option<Numbers>> = rounds.iter().map(of).collect();
        Line {
            group: group.clone(),
            values: numbers.iter().map(|one| one.as_ref()?.value).collect(),
            bounds: numbers
                .iter()
                .map(|one| bound(rule, one.as_ref()?))
                .collect(),
        }
    };
    groups.into_iter().map(line).collect()
}

/// Returns the value beyond which the rule fires.
fn bound(rule: &Rule, numbers: &Numbers) -> Option<f64> {
    match &rule.condition {
        Condition::Threshold { .. } => numbers.bound,
        Condition::Regression { effect, .. } | Condition::LastWeek { effect } => {
            let base = numbers.base?;
            let least = (base.abs() * effect.least_relative).max(effect.least_absolute);
            let sign = if is_worse_up(rule) { 1.0 } else { -1.0 };
            finite(base + sign * least)
        }
        Condition::Absence {} | Condition::Appearance { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_must_reach_both_bounds_in_the_bad_direction() {
        let rule = |measure: &str, effect| {
            Rule::from_value(json!({
                "name": "Frames", "metric": {"signal": "frame_windows", "measure": measure},
                "condition": {"kind": "regression", "effect": effect},
            }))
            .unwrap()
        };
        let numbers = Numbers {
            base: Some(60.0),
            ..Numbers::default()
        };
        let relative = json!({"least_relative": 0.5, "least_absolute": 1.0});
        let absolute = json!({"least_relative": 0.1, "least_absolute": 10.0});
        assert_eq!(bound(&rule("jank_share", relative), &numbers), Some(90.0));
        assert_eq!(
            bound(&rule("fps", absolute), &numbers),
            Some(50.0),
            "fewer frames are worse"
        );
    }
}
