//! The groups that a preview could not judge, and why.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::alerts::incident::replay::PastRound;
use crate::alerts::incident::states::Observation;
use crate::alerts::judge::comparison::{AppWithoutBase, without_base};
use crate::alerts::judge::verdict::{Group, Numbers};
use crate::alerts::judge::{Case, Judge};
use crate::alerts::rule::{Condition, Rule};
use crate::query::QueryError;

/// A group that was not judged in some evaluations.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = AlertSkippedGroup)]
pub struct SkippedGroup {
    pub group: Group,
    /// The reason in the last of these evaluations.
    pub reason: SkipReason,
    /// The number of evaluations that did not judge it.
    pub evaluations: usize,
    /// The number of events in the window of the last of these evaluations, as sent.
    pub samples: f64,
    /// The same for the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_samples: Option<f64>,
}

/// Why a group was not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = AlertSkipReason)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Fewer than `least_samples`, on either side of a comparison.
    TooFewSamples,
    /// There is no base to compare with.
    NoBase,
    /// The measure has no value, or there are too many groups.
    NoValue,
}

/// Returns the groups without a verdict, most often skipped first.
pub(super) fn skipped_groups(rule: &Rule, rounds: &[PastRound]) -> Vec<SkippedGroup> {
    let mut groups: BTreeMap<&Group, SkippedGroup> = BTreeMap::new();
    for verdict in rounds.iter().flat_map(|round| &round.verdicts) {
        if verdict.observed != Observation::Unknown {
            continue;
        }
        let numbers = &verdict.numbers;
        let before = groups.get(&verdict.group).map_or(0, |one| one.evaluations);
        let skipped = SkippedGroup {
            group: verdict.group.clone(),
            reason: reason(rule, numbers),
            evaluations: before + 1,
            samples: numbers.samples,
            base_samples: numbers.base_samples,
        };
        groups.insert(&verdict.group, skipped);
    }
    let mut all: Vec<_> = groups.into_values().collect();
    all.sort_by(|one, other| {
        let by_count = other.evaluations.cmp(&one.evaluations);
        by_count.then(other.samples.total_cmp(&one.samples))
    });
    all
}

fn reason(rule: &Rule, numbers: &Numbers) -> SkipReason {
    let few = |samples: f64| samples < f64::from(rule.least_samples);
    match numbers.base_samples {
        Some(base) if base <= 0.0 => SkipReason::NoBase,
        _ if few(numbers.samples) => SkipReason::TooFewSamples,
        Some(base) if few(base) && !matches!(rule.condition, Condition::Appearance { .. }) => {
            SkipReason::TooFewSamples
        }
        _ => SkipReason::NoValue,
    }
}

/// Returns the apps that a regression cannot judge now, because they have no two versions with enough samples.
pub(super) async fn apps_without_base(
    judge: &Judge,
    case: &Case<'_>,
) -> Result<Vec<SkippedGroup>, QueryError> {
    if !matches!(case.rule.condition, Condition::Regression { .. }) {
        return Ok(Vec::new());
    }
    let apps = without_base(judge, case).await?;
    let skipped = |AppWithoutBase { app, samples }: AppWithoutBase| SkippedGroup {
        group: Group::from([("app_id".to_owned(), app)]),
        reason: SkipReason::NoBase,
        evaluations: 1,
        samples,
        base_samples: None,
    };
    Ok(apps.into_iter().map(skipped).collect())
}

#[cfg(test)]
mod tests {
    use unjank_foundation::clock::UnixTime;

    use super::*;
    use crate::alerts::judge::verdict::{Sides, Verdict};

    fn rule() -> Rule {
        Rule::from_value(serde_json::json!({
            "name": "Spans", "metric": {"signal": "spans", "measure": "p95_us", "by": ["name"]}, "least_samples": 50,
            "condition": {"kind": "regression"},
        }))
        .unwrap()
    }

    fn verdict(name: &str, observed: Observation, samples: f64, base: Option<f64>) -> Verdict {
        Verdict {
            group: Group::from([("name".to_owned(), name.to_owned())]),
            observed,
            numbers: Numbers {
                samples,
                base_samples: base,
                ..Numbers::default()
            },
            sides: Sides::default(),
        }
    }

    #[test]
    fn a_skipped_group_has_its_latest_reason_and_the_number_of_evaluations() {
        use Observation::{Good, Unknown};
        let round = |at, verdicts| PastRound {
            at: UnixTime::from_micros(at),
            verdicts,
        };
        let rounds = [
            round(
                1,
                vec![
                    verdict("cart", Unknown, 60.0, Some(0.0)),
                    verdict("home", Good, 90.0, Some(90.0)),
                ],
            ),
            round(
                2,
                vec![
                    verdict("cart", Unknown, 60.0, Some(10.0)),
                    verdict("rare", Unknown, 3.0, None),
                ],
            ),
            round(
                3,
                vec![
                    verdict("cart", Unknown, 60.0, Some(0.0)),
                    verdict("odd", Unknown, 90.0, Some(90.0)),
                ],
            ),
        ];
        let skipped = skipped_groups(&rule(), &rounds);
        let found: Vec<_> = skipped
            .iter()
            .map(|one| (one.group["name"].as_str(), one.reason, one.evaluations))
            .collect();
        assert_eq!(
            found,
            [
                ("cart", SkipReason::NoBase, 3),
                ("odd", SkipReason::NoValue, 1),
                ("rare", SkipReason::TooFewSamples, 1),
            ]
        );
    }
}
