//! Previews a rule on the last days. The first pass evaluates the rule backwards from now, so that the latest days are covered if time
//! runs out. The second pass derives the states forwards. Nothing is saved.

use std::time::Duration;

use tokio::time::Instant;
use unjank_foundation::clock::UnixTime;

use crate::alerts::incident::preview_lines::{Line, lines};
use crate::alerts::incident::replay::{LEAST_STEP, Memory, PastRound, Transition};
use crate::alerts::incident::skipped::{SkippedGroup, apps_without_base, skipped_groups};
use crate::alerts::judge::verdict::Verdict;
use crate::alerts::judge::{Case, Judge, OpenGroup, judge};
use crate::alerts::rule::{Condition, Rule};
use crate::query::QueryError;

/// A rule, and the period to preview it on.
pub struct PreviewedPeriod<'p> {
    pub project: &'p str,
    pub rule: &'p Rule,
    pub from: UnixTime,
    pub to: UnixTime,
    /// The minimum time from one evaluation to the next. Steps get longer if `patience` or the memory is too short for all of them.
    pub step: Duration,
    /// The preview stops after this time.
    pub patience: Duration,
}

/// The result of a preview.
pub struct Preview {
    /// The times of the evaluations, earliest first.
    pub times: Vec<UnixTime>,
    /// `false` if time ran out before the start of the period.
    pub complete: bool,
    pub transitions: Vec<Transition>,
    /// The number of groups in the latest evaluation.
    pub groups: usize,
    pub skipped: Vec<SkippedGroup>,
    /// The number of evaluations during a mute window of the rule.
    pub muted_evaluations: usize,
    pub lines: Vec<Line>,
}

/// Maximum number of verdicts in the memory of a preview, at about 600 bytes each.
const MOST_VERDICTS: usize = 50_000;

/// Evaluates a rule at each step of a period, the latest first.
///
/// # Errors
/// If a query fails.
pub async fn preview(
    judged_by: &Judge,
    period: &PreviewedPeriod<'_>,
) -> Result<Preview, QueryError> {
    let began = Instant::now();
    let (mut rounds, complete) = backwards(judged_by, period, began).await?;
    let mut skipped = apps_without_base(judged_by, &period.case(period.to, &[])).await?;
    let mut memory = Memory::default();
    let mut transitions = Vec::new();
    for round in &mut rounds {
        let held = memory.held();
        let case = period.case(round.at, &held);
        if depends_on_open_groups(&case, &round.verdicts) && began.elapsed() < period.patience {
            round.verdicts = judge(judged_by, &case).await?;
        }
        transitions.extend(memory.follow(&case, &round.verdicts));
    }
    skipped.extend(skipped_groups(period.rule, &rounds));
    let windows = &period.rule.mute_windows;
    let is_muted = |round: &&PastRound| windows.iter().any(|window| window.holds(round.at));
    Ok(Preview {
        times: rounds.iter().map(|round| round.at).collect(),
        complete,
        groups: rounds.last().map_or(0, |round| round.verdicts.len()),
        muted_evaluations: rounds.iter().filter(is_muted).count(),
        lines: lines(period.rule, &rounds, &transitions),
        transitions,
        skipped,
    })
}

/// Evaluates from the end of the period to its start, without open incidents. Returns the rounds, earliest first, and whether they
/// reach the start.
async fn backwards(
    judged_by: &Judge,
    period: &PreviewedPeriod<'_>,
    began: Instant,
) -> Result<(Vec<PastRound>, bool), QueryError> {
    let mut rounds = Vec::new();
    let (mut verdicts, mut now) = (0, period.to);
    let complete = loop {
        let found = judge(judged_by, &period.case(now, &[])).await?;
        verdicts += found.len();
        rounds.push(PastRound {
            at: now,
            verdicts: found,
        });
        if now <= period.from {
            break true;
        }
        let so_far = SoFar {
            elapsed: began.elapsed(),
            evaluations: rounds.len(),
            verdicts,
        };
        match so_far.step(period, now) {
            Some(step) => now = (now - step).max(period.from),
            None => break false,
        }
    };
    rounds.reverse();
    Ok((rounds, complete))
}

impl PreviewedPeriod<'_> {
    fn case<'c>(&'c self, now: UnixTime, held: &'c [OpenGroup]) -> Case<'c> {
        Case {
            project: self.project,
            rule: self.rule,
            held,
            now,
        }
    }
}

/// Whether an evaluation that knows the open incidents would have other verdicts: an incident keeps the base version that it began
/// with, a missing group stays missing, and a new group stops being new.
fn depends_on_open_groups(case: &Case<'_>, verdicts: &[Verdict]) -> bool {
    let of = |open: &OpenGroup| verdicts.iter().find(|one| one.group == open.group);
    match case.rule.condition {
        Condition::Regression { .. } => (case.held.iter())
            .any(|open| of(open).is_none_or(|one| one.sides.base_version != open.base)),
        Condition::Absence {} | Condition::Appearance { .. } => {
            case.held.iter().any(|open| of(open).is_none())
        }
        _ => false,
    }
}

/// The resources that a preview has used.
struct SoFar {
    elapsed: Duration,
    evaluations: usize,
    verdicts: usize,
}

impl SoFar {
    /// Returns the step that fits the rest of the period into the time and the memory left, at the pace so far. The pace counts once
    /// a quarter of the time is used. `None` if nothing is left.
    fn step(&self, period: &PreviewedPeriod<'_>, now: UnixTime) -> Option<Duration> {
        // Keep a reserve, because firing groups take more queries.
        let patience = period.patience / 10 * 9;
        let time_left = patience
            .checked_sub(self.elapsed)
            .filter(|left| !left.is_zero())?;
        let memory_left = MOST_VERDICTS
            .checked_sub(self.verdicts)
            .filter(|left| *left > 0)?;
        let each = self.elapsed.as_micros() / divisor(self.evaluations);
        let by_time = if self.elapsed < patience / 4 {
            u128::MAX
        } else {
            time_left.as_micros() / each.max(1)
        };
        let per_evaluation = self.verdicts.div_ceil(self.evaluations.max(1));
        let by_memory = divisor(memory_left) / divisor(per_evaluation);
        let count = by_time.min(by_memory).max(1);
        let rest = now.since(period.from).as_micros();
        let even = u64::try_from(rest.div_ceil(count)).unwrap_or(u64::MAX);
        Some(Duration::from_micros(even).max(period.step).max(LEAST_STEP))
    }
}

/// Converts a count, and 0 to 1.
fn divisor(number: usize) -> u128 {
    u128::try_from(number).unwrap_or(u128::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_get_longer_when_time_or_memory_is_too_short_for_all()
    -> Result<(), Vec<crate::alerts::RuleFault>> {
        let rule = Rule::from_value(serde_json::json!({
            "name": "Spans", "metric": {"signal": "spans", "measure": "count"}, "condition": {"kind": "threshold", "above": 1.0},
        }))?;
        let second = Duration::from_secs(1);
        let period = PreviewedPeriod {
            project: "shop",
            rule: &rule,
            from: UnixTime::default(),
            to: UnixTime::from_micros(1_000),
            step: LEAST_STEP,
            patience: 20 * second,
        };
        let step = |elapsed, evaluations, verdicts| {
            let so_far = SoFar {
                elapsed,
                evaluations,
                verdicts,
            };
            let step = so_far.step(&period, UnixTime::from_micros(900));
            step.map(|step| step.as_micros())
        };
        assert_eq!(step(second, 1, 1), Some(1), "too early");
        // Nine seconds left, at three seconds each: three more evaluations for 900 microseconds.
        assert_eq!(step(9 * second, 3, 3), Some(300));
        assert_eq!(step(18 * second, 6, 6), None, "no time left");
        // Memory is left for 40,000 verdicts: four more evaluations of 10,000.
        assert_eq!(step(second, 1, 10_000), Some(225));
        assert_eq!(step(second, 5, 50_000), None, "no memory left");
        Ok(())
    }
}
