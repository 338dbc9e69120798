//! Nothing arrives any more. By arrival: what was collected while a device had no network arrives late, but it arrives.

use std::collections::BTreeMap;

use super::judge::{Case, Judge, MOST_ANSWERED};
use super::machine::Observed;
use super::verdict::{Group, Numbers, Sides, Verdict};
use crate::query::Unanswered;

/// What did arrive in this time before the window is missed.
const LOOK_BACK: i64 = 7 * 86_400_000_000;

pub(super) async fn verdicts(judge: &Judge, case: &Case<'_>) -> Result<Vec<Verdict>, Unanswered> {
    let (from, to) = (case.now - case.rule.window(), case.now);
    // Of more groups than are watched, so that a small one is not taken for a missing one.
    let now = arrived(judge, case, (from, to), Some(MOST_ANSWERED)).await?;
    let all_known = now.len() < usize::try_from(MOST_ANSWERED).unwrap_or(usize::MAX);
    let mut groups: BTreeMap<Group, f64> = if now.is_empty() || !case.rule.metric.by.is_empty() {
        arrived(judge, case, (from - LOOK_BACK, from), None).await?
    } else {
        BTreeMap::new()
    };
    // What is missed already is missed until it comes.
    groups.extend(case.held.iter().map(|held| (held.group.clone(), 0.0)));
    groups.extend(now.keys().map(|group| (group.clone(), 0.0)));
    let verdicts = groups.into_keys().map(|group| {
        let samples = now.get(&group).copied().unwrap_or_default();
        let observed = if samples > 0.0 {
            Observed::Good
        } else if all_known {
            Observed::Bad
        } else {
            Observed::Unknown
        };
        Verdict {
            group,
            observed,
            numbers: Numbers {
                value: Some(samples),
                samples,
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

/// How many samples of each group arrived between two times.
async fn arrived(
    judge: &Judge,
    case: &Case<'_>,
    (from, to): (i64, i64),
    limit: Option<u64>,
) -> Result<BTreeMap<Group, f64>, Unanswered> {
    let mut ask = case.ask(from, to);
    ask.limit = limit.or(ask.limit);
    ask.received = true;
    let rows = judge.rows(case, &ask).await?;
    let groups = rows.into_iter().map(|row| {
        (
            case.group(&row.keys),
            row.now.get(1).copied().unwrap_or_default(),
        )
    });
    Ok(groups.filter(|(_, samples)| *samples > 0.0).collect())
}
