//! Rules that fire when a number is above or below a bound.

use crate::alerts::incident::states::Observation;
use crate::alerts::judge::verdict::{Numbers, Sides, Verdict, finite};
use crate::alerts::judge::{Case, Judge};
use crate::alerts::rule::Condition;
use crate::query::QueryError;

pub(in crate::alerts) async fn verdicts(
    judge: &Judge,
    case: &Case<'_>,
) -> Result<Vec<Verdict>, QueryError> {
    let to = case.until();
    let from = to - case.rule.window();
    let rows = judge.rows(case, &case.ask(from, to)).await?;
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
