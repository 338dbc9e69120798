//! Rules that fire when no data arrives. The window is by arrival time, so hours offline with a later upload do not count as a gap.

use std::collections::BTreeMap;
use std::time::Duration;

use unjank_foundation::clock::UnixTime;

use crate::alerts::incident::states::Observation;
use crate::alerts::judge::verdict::{Group, Numbers, Sides, Verdict};
use crate::alerts::judge::{Case, Judge, MAX_ROWS};
use crate::query::QueryError;

/// A group can only be missing if it sent data within this time before the window.
const LOOK_BACK: Duration = Duration::from_secs(7 * 86_400);

pub(crate) async fn verdicts(judge: &Judge, case: &Case<'_>) -> Result<Vec<Verdict>, QueryError> {
    let (from, to) = (case.now - case.rule.window(), case.now);
    // Read more groups than a rule watches, so that a small group is not mistaken for a missing one.
    let now = arrived(judge, case, from, to, Some(MAX_ROWS)).await?;
    let all_known = now.len() < usize::try_from(MAX_ROWS).unwrap_or(usize::MAX);
    let mut groups: BTreeMap<Group, f64> = if now.is_empty() || !case.rule.metric.by.is_empty() {
        arrived(judge, case, from - LOOK_BACK, from, None).await?
    } else {
        BTreeMap::new()
    };
    // A group with an open incident stays missing until it sends data again.
    groups.extend(case.held.iter().map(|held| (held.group.clone(), 0.0)));
    groups.extend(now.keys().map(|group| (group.clone(), 0.0)));
    let verdicts = groups.into_keys().map(|group| {
        let samples = now.get(&group).copied().unwrap_or_default();
        let observed = if samples > 0.0 {
            Observation::Good
        } else if all_known {
            Observation::Bad
        } else {
            Observation::Unknown
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

/// Returns the number of samples per group that arrived in a period.
async fn arrived(
    judge: &Judge,
    case: &Case<'_>,
    from: UnixTime,
    to: UnixTime,
    limit: Option<u64>,
) -> Result<BTreeMap<Group, f64>, QueryError> {
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
