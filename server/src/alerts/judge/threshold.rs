//! Rules that fire when a number is above or below a bound.

use crate::alerts::incident::states::Observation;
use crate::alerts::judge::verdict::{Numbers, Sides, Verdict, finite};
use crate::alerts::judge::{Case, Judge, samples_of};
use crate::alerts::rule::{Condition, Rule};
use crate::query::QueryError;

pub(crate) async fn verdicts(judge: &Judge, case: &Case<'_>) -> Result<Vec<Verdict>, QueryError> {
    let to = case.until();
    let from = to - case.rule.window();
    let mut ask = case.ask(from, to);
    if watches_devices(case.rule) {
        ask.order = Some(worst_first(case.rule));
        // Groups with few samples are often the worst by chance, and would displace the others.
        let counts_samples = samples_of(&case.rule.metric.signal) == "samples";
        ask.at_least_samples = counts_samples.then_some(u64::from(case.rule.least_samples));
    }
    let mut rows = judge.rows(case, &ask).await?;
    let user = case
        .rule
        .metric
        .by
        .iter()
        .position(|name| name == "user_id");
    if let Some(user) = user {
        // The group of all devices without a user is not one person.
        rows.retain(|row| row.keys.get(user).is_none_or(|key| !key.is_empty()));
    }
    let verdicts = rows.into_iter().map(|row| {
        let value = row.now.first().copied().and_then(finite);
        let samples = row.now.get(1).copied().unwrap_or_default();
        let enough = samples >= f64::from(case.rule.least_samples);
        let (observed, bound) = compare_with_bound(&case.rule.condition, value.filter(|_| enough));
        Verdict {
            group: case.group(&row.keys),
            observed,
            numbers: Numbers {
                value,
                samples,
                bound,
                ..Numbers::default()
            },
            sides: Sides {
                from,
                to,
                ..Sides::default()
            },
        }
    });
    Ok(verdicts.collect())
}

/// Whether each group is one device or person. There are many such groups, all with few samples, so the rule watches the worst ones
/// instead of the largest.
fn watches_devices(rule: &Rule) -> bool {
    let single = ["install_id", "user_id", "session_id"];
    rule.metric
        .by
        .iter()
        .any(|name| single.contains(&name.as_str()))
}

fn worst_first(rule: &Rule) -> String {
    let measure = &rule.metric.measure;
    match &rule.condition {
        Condition::Threshold { above: None, .. } => measure.clone(),
        _ => format!("-{measure}"),
    }
}

/// Returns the observation for a value, and the bound.
fn compare_with_bound(condition: &Condition, value: Option<f64>) -> (Observation, Option<f64>) {
    let Condition::Threshold {
        above,
        below,
        recover,
    } = condition
    else {
        return (Observation::Unknown, None);
    };
    let bound = above.or(*below);
    let (Some(value), Some(bound)) = (value, bound) else {
        return (Observation::Unknown, bound);
    };
    // The sign turns `below` into `above`.
    let sign = if above.is_some() { 1.0 } else { -1.0 };
    let recover = recover.unwrap_or(bound);
    let observed = if sign * value > sign * bound {
        Observation::Bad
    } else if sign * value <= sign * recover {
        Observation::Good
    } else {
        Observation::Between
    };
    (observed, Some(bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(
        above: Option<f64>,
        below: Option<f64>,
        recover: Option<f64>,
        value: f64,
    ) -> Observation {
        let condition = Condition::Threshold {
            above,
            below,
            recover,
        };
        compare_with_bound(&condition, Some(value)).0
    }

    #[test]
    fn the_bound_itself_is_not_bad_and_recovery_has_its_own_bound() {
        for (value, expected) in [
            (100.1, Observation::Bad),
            (100.0, Observation::Between),
            (80.1, Observation::Between),
            (80.0, Observation::Good),
        ] {
            assert_eq!(observed(Some(100.0), None, Some(80.0), value), expected);
            assert_eq!(observed(None, Some(-100.0), Some(-80.0), -value), expected);
        }
        assert_eq!(observed(Some(100.0), None, None, 100.0), Observation::Good);
    }
}
