//! Rules that fire when a new group occurs, such as a new group of janks.

use std::collections::BTreeSet;

use unjank_foundation::clock::{DAY, UnixTime};

use crate::alerts::incident::states::Observation;
use crate::alerts::judge::verdict::{Numbers, Sides, Verdict};
use crate::alerts::judge::{Case, Judge, MAX_ROWS};
use crate::query::{MOST_VALUES, NamedQuery, QueryError};
use crate::store::reads::TableRow;

pub(crate) async fn verdicts(
    judge: &Judge,
    case: &Case<'_>,
    unseen_days: u32,
) -> Result<Vec<Verdict>, QueryError> {
    let to = case.until();
    let from = to - case.rule.window();
    let before = Before {
        judge,
        case,
        from: from - DAY * unseen_days,
        to: from,
    };
    let rows = judge.rows(case, &ask(case, from, to)).await?;
    let least = f64::from(case.rule.least_samples);
    let samples = |values: &[f64]| values.get(1).copied().unwrap_or_default();
    let candidates = rows.iter().filter(|row| samples(&row.now) >= least);
    let candidates: BTreeSet<&Vec<String>> = candidates.map(|row| &row.keys).collect();
    let known = before.known(&candidates).await?;
    let sides = Sides {
        from,
        to,
        base_from: Some(before.from),
        base_to: Some(before.to),
        ..Sides::default()
    };
    let verdicts = rows.iter().map(|row| {
        let samples = samples(&row.now);
        let observed = match &known {
            _ if samples < least => Observation::Unknown,
            Known::All(known) | Known::Part(known) if known.contains(&row.keys) => {
                Observation::Good
            }
            Known::All(_) => Observation::Bad,
            Known::Part(_) | Known::NoData => Observation::Unknown,
        };
        Verdict {
            group: case.group(&row.keys),
            observed,
            numbers: Numbers {
                value: row.now.first().copied(),
                samples,
                base_samples: matches!(known, Known::NoData).then_some(0.0),
                ..Numbers::default()
            },
            sides: sides.clone(),
        }
    });
    let mut verdicts: Vec<Verdict> = verdicts.collect();
    // A group that left the window is no longer new. A group that is missing from an incomplete list may still be in the window.
    for open in case.held {
        if !verdicts.iter().any(|verdict| verdict.group == open.group) {
            verdicts.push(Verdict {
                group: open.group.clone(),
                observed: if are_all(&rows) {
                    Observation::Good
                } else {
                    Observation::Unknown
                },
                numbers: Numbers::default(),
                sides: sides.clone(),
            });
        }
    }
    Ok(verdicts)
}

/// Returns the rule's query for a period. New groups are small, so the query returns more groups than a rule watches.
fn ask(case: &Case<'_>, from: UnixTime, to: UnixTime) -> NamedQuery {
    NamedQuery {
        limit: Some(MAX_ROWS),
        ..case.ask(from, to)
    }
}

/// Whether the rows are all groups. Otherwise the limit has cut the list.
fn are_all(rows: &[TableRow]) -> bool {
    (rows.len() as u64) < MAX_ROWS
}

/// The groups that occurred before the window.
enum Known {
    All(BTreeSet<Vec<String>>),
    /// There are more groups than a query returns.
    Part(BTreeSet<Vec<String>>),
    /// Nothing was stored before, so every group would be new.
    NoData,
}

/// The time before the window.
struct Before<'b> {
    judge: &'b Judge,
    case: &'b Case<'b>,
    from: UnixTime,
    to: UnixTime,
}

impl Before<'_> {
    async fn known(&self, candidates: &BTreeSet<&Vec<String>>) -> Result<Known, QueryError> {
        if candidates.is_empty() {
            return Ok(Known::All(BTreeSet::new()));
        }
        let Some(first) = self.case.rule.metric.by.first() else {
            return Ok(Known::NoData);
        };
        // Filter by the candidates, so that other groups do not displace a candidate with few events.
        let values: BTreeSet<&String> = candidates.iter().filter_map(|keys| keys.first()).collect();
        let values: Vec<&String> = values.into_iter().collect();
        let (mut known, mut all) = (BTreeSet::new(), true);
        for values in values.chunks(MOST_VALUES) {
            let mut ask = ask(self.case, self.from, self.to);
            ask.filters.retain(|(name, _)| name != first);
            let wanted = values.iter();
            ask.filters
                .extend(wanted.map(|value| (first.clone(), (*value).clone())));
            let rows = self.judge.rows(self.case, &ask).await?;
            all &= are_all(&rows);
            known.extend(rows.into_iter().map(|row| row.keys));
        }
        if known.is_empty() && !self.has_data().await? {
            return Ok(Known::NoData);
        }
        Ok(if all {
            Known::All(known)
        } else {
            Known::Part(known)
        })
    }

    async fn has_data(&self) -> Result<bool, QueryError> {
        let ask = NamedQuery {
            by: Vec::new(),
            ..ask(self.case, self.from, self.to)
        };
        let rows = self.judge.rows(self.case, &ask).await?;
        Ok(rows
            .iter()
            .any(|row| row.now.get(1).is_some_and(|samples| *samples > 0.0)))
    }
}
